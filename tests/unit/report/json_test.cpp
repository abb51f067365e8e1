#include "report/json.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/schema.hpp"

namespace cuda_agent::report {

TEST(JsonReport, IsOneLineOfValidJsonWhateverTheBytesAre) {
  Verdict verdict;
  verdict.message = "two\nlines";
  verdict.candidate_output = "\xff\xfe";
  auto const text = render_json(verdict);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(text).at("message"), "two\nlines");
}

TEST(Schema, IsInTheBinary) {
  auto const schema = nlohmann::json::parse(verdict_schema());
  EXPECT_TRUE(schema.contains("$schema"));
  EXPECT_TRUE(schema.at("properties").contains("outcome"));
}

}  // namespace cuda_agent::report
