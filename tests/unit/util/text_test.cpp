#include "util/text.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::util {
namespace {

using std::string_literals::operator""s;

TEST(EscapeUntrusted, KeepsUtf8NewlinesAndTabs) {
  EXPECT_EQ(escape_untrusted("größer\tals\n\U0001F600 0\n"), "größer\tals\n\U0001F600 0\n");
}

TEST(EscapeUntrusted, ShowsTerminalEscapesInsteadOfSendingThem) {
  EXPECT_EQ(escape_untrusted("\x1b[2Jgone\r\x07\x7f"), "\\x1b[2Jgone\\x0d\\x07\\x7f");
  EXPECT_EQ(escape_untrusted("a\0b"s), "a\\x00b");
}

TEST(EscapeUntrusted, ShowsC1ControlsAndBidirectionalOverrides) {
  EXPECT_EQ(escape_untrusted("\xC2\x9B"
                             "2J"),
            "\\xc2\\x9b2J");
  EXPECT_EQ(escape_untrusted("a\xE2\x80\xAE"
                             "b"),
            "a\\xe2\\x80\\xaeb");
}

TEST(EscapeUntrusted, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(escape_untrusted("\xFFx"), "\\xffx");
  EXPECT_EQ(escape_untrusted("\xC0\xAF"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(escape_untrusted("\xED\xA0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(escape_untrusted("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "past U+10FFFF";
  EXPECT_EQ(escape_untrusted("\xE2\x82"), "\\xe2\\x82") << "cut off";
  EXPECT_EQ(escape_untrusted("\x80z"), "\\x80z") << "continuation alone";
}

TEST(EscapeUntrusted, CutsOutTheMiddleAndCountsIt) {
  std::string const raw = std::string(1000, 'a') + std::string(1000, 'b');
  EXPECT_EQ(escape_untrusted(raw, 20), "aaaaaaaaaa\n[... 1980 bytes left out ...]\nbbbbbbbbbb");
  EXPECT_EQ(escape_untrusted("0123456789", 10), "0123456789");
}

TEST(EscapeUntrusted, NeverCutsInsideACharacter) {
  std::string raw;
  for (int i = 0; i < 1000; ++i) raw += "\xE2\x82\xAC";
  for (std::size_t limit = 0; limit < 40; ++limit) {
    std::string const cut = escape_untrusted(raw, limit);
    EXPECT_EQ(escape_untrusted(cut), cut) << "a cut character would be escaped now, limit " << limit;
    EXPECT_LE(cut.size(), limit + 40);
  }
}

TEST(EscapeUntrusted, LimitCountsWhatIsShown) {
  std::string const shown = escape_untrusted(std::string(100000, '\x1b'), 1000);
  EXPECT_LE(shown.size(), 1040U);
  EXPECT_NE(shown.find("bytes left out"), std::string::npos);
}

TEST(Closest, FindsWhatWasMeant) {
  std::vector<std::string> const commands{"compile", "verify", "profile", "run", "doctor"};
  EXPECT_EQ(closest("complie", commands), "compile");
  EXPECT_EQ(closest("Verify", commands), "verify");
  EXPECT_EQ(closest("profil", commands), "profile");
  EXPECT_EQ(closest("rnu", commands), "run");
}

TEST(Closest, SaysNothingWhenNothingIsNear) {
  std::vector<std::string> const commands{"compile", "run", "x"};
  EXPECT_EQ(closest("banana", commands), std::nullopt);
  EXPECT_EQ(closest("", commands), std::nullopt);
  EXPECT_EQ(closest("y", commands), std::nullopt);
  EXPECT_EQ(closest("compile", {}), std::nullopt);
}

TEST(Join, PutsTheSeparatorBetween) {
  EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(SplitLines, DropsLineEndsOnly) {
  EXPECT_EQ(split_lines("a\r\n\nb"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split_lines("a\n"), std::vector<std::string>{"a"});
  EXPECT_TRUE(split_lines("").empty());
}

TEST(Trim, TakesWhiteSpaceOffBothEnds) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

}  // namespace
}  // namespace cuda_agent::util
