#include "cuda_agent/error.hpp"

#include <gtest/gtest.h>

namespace cuda_agent {
namespace {

TEST(Error, ExitCodesAreThoseOfTheDocuments) {
  EXPECT_EQ(exit_code(Outcome::pass), 0);
  EXPECT_EQ(exit_code(Outcome::internal_error), 1);
  EXPECT_EQ(exit_code(Outcome::usage_error), 2);
  EXPECT_EQ(exit_code(Outcome::environment_error), 3);
  EXPECT_EQ(exit_code(Outcome::policy_violation), 4);
  EXPECT_EQ(exit_code(Outcome::compile_error), 5);
  EXPECT_EQ(exit_code(Outcome::wrong), 6);
  EXPECT_EQ(exit_code(Outcome::crash), 6);
  EXPECT_EQ(exit_code(Outcome::slow), 7);
  EXPECT_EQ(exit_code(Outcome::timeout), 8);
  EXPECT_EQ(exit_code(Outcome::task_error), 9);
  EXPECT_EQ(exit_code(Outcome::interrupted), 130);
}

TEST(Error, AnErrorTakesTheFaultOfItsOutcome) {
  EXPECT_EQ(Error(Outcome::wrong, "x").fault, Fault::candidate);
  EXPECT_EQ(Error(Outcome::task_error, "x").fault, Fault::task);
  EXPECT_EQ(Error(Outcome::environment_error, "x").fault, Fault::environment);
  EXPECT_EQ(Error(Outcome::internal_error, "x").fault, Fault::internal);
}

TEST(Error, OutcomesAndFaultsHaveTheNamesOfTheVerdict) {
  EXPECT_EQ(to_string(Outcome::compile_error), "compile_error");
  EXPECT_EQ(to_string(Outcome::task_error), "task_error");
  EXPECT_EQ(to_string(Fault::candidate), "candidate");
}

}  // namespace
}  // namespace cuda_agent
