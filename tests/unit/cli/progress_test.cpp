#include <sstream>

#include <gtest/gtest.h>

#include "cli/progress_printers.hpp"

namespace cuda_agent::cli {

TEST(PlainProgress, PrintsALineAStepOnce) {
  std::ostringstream out;
  PlainProgress progress(out);
  progress.step("one");
  progress.step("one");
  progress.note("a fact");
  progress.step("two\033[2J");
  EXPECT_EQ(out.str(), "cuda-agent: one\ncuda-agent: a fact\ncuda-agent: two\\x1b[2J\n");
}

TEST(UpdatingProgress, RewritesItsLineKeepsNotesAndLeavesNothing) {
  std::ostringstream out;
  {
    UpdatingProgress progress(out, [] { return std::size_t{80}; });
    progress.step("one");
    progress.note("a fact");
  }
  EXPECT_EQ(out.str(), "\r\033[Kone\r\033[Ka fact\none\r\033[K");
}

TEST(UpdatingProgress, NeverWrapsTheTerminal) {
  std::ostringstream out;
  UpdatingProgress progress(out, [] { return std::size_t{5}; });
  progress.step("µµµµµµµµ");
  EXPECT_EQ(out.str(), "\r\033[Kµµµµ");
}

}  // namespace cuda_agent::cli
