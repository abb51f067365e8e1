#include "build/command_line.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::build {
namespace {

using Words = std::vector<std::string>;

const std::map<std::string, std::string> variables = {{"CICC_PATH", "/cuda/bin/../nvvm/bin"}, {"TWO", "a b"}};

TEST(CommandLine, WordsEndAtSpacesAndQuotesHoldThemTogether) {
  EXPECT_EQ(split_command(R"(ptxas -arch=sm_90a  "/a b/x.ptx" -o "")", variables),
            (Words{"ptxas", "-arch=sm_90a", "/a b/x.ptx", "-o", ""}));
}

TEST(CommandLine, QuotesMayBePartOfAWord) {
  EXPECT_EQ(split_command(R"("/usr/bin"/g++ --cmdline="-v  ")", variables), (Words{"/usr/bin/g++", "--cmdline=-v  "}));
}

TEST(CommandLine, AVariableAssignedBeforeIsReplaced) {
  EXPECT_EQ(split_command(R"("$CICC_PATH/cicc" $CICC_PATH)", variables),
            (Words{"/cuda/bin/../nvvm/bin/cicc", "/cuda/bin/../nvvm/bin"}));
}

TEST(CommandLine, WhatAShellWouldTreatInAnotherWayIsNotUnderstood) {
  for (const char* line :
       {"a > b",      "a < b",      "a | b",   "a & b",     "a; b",  "a `b`",      "a $(b)",    "a ${CICC_PATH}",
        "a $UNKNOWN", "a $",        "a $TWO",  "a \\ b",    "a 'b'", "a *",        "a ?",       "a ~",
        "a #",        "a [b]",      "a {b,c}", "a !b",      "a \"b", "a \"$(b)\"", "a \"`b`\"", "a \"\\b\"",
        "a\nb",       "a \"b\nc\"", "a \x01",  "a \xc3\xa4"}) {
    EXPECT_FALSE(split_command(line, variables)) << line;
  }
}

}  // namespace
}  // namespace cuda_agent::build
