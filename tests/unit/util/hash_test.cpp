#include "util/hash.hpp"

#include <filesystem>

#include <gtest/gtest.h>

#include "util/files.hpp"

namespace cuda_agent::util {
namespace {

// FIPS 180-4 examples.
constexpr const char* c_empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* c_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, HashesTheStandardExamples) {
  EXPECT_EQ(sha256_hex(""), c_empty);
  EXPECT_EQ(sha256_hex("abc"), c_abc);
}

TEST(Sha256, PiecesHashLikeTheWholeAndMoreMayFollow) {
  Sha256 hash;
  EXPECT_EQ(hash.hex(), c_empty);
  hash.update("a");
  EXPECT_EQ(hash.hex(), sha256_hex("a"));
  hash.update("bc");
  EXPECT_EQ(hash.hex(), c_abc);
}

TEST(Sha256, HashesAFileAndNamesOneThatIsMissing) {
  auto const folder = TemporaryFolder::make(std::filesystem::temp_directory_path(), "hash-test-");
  ASSERT_TRUE(folder);
  std::string const content(1000000, 'a');
  ASSERT_TRUE(write_file(folder->path() / "f", content));
  EXPECT_EQ(sha256_of_file(folder->path() / "f"), sha256_hex(content));
  auto const missing = sha256_of_file(folder->path() / "none");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("none"), std::string::npos);
}

}  // namespace
}  // namespace cuda_agent::util
