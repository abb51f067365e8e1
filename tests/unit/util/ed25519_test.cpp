#include "util/ed25519.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "util/files.hpp"

namespace cuda_agent::util {
namespace {

class Ed25519 : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::make(std::filesystem::temp_directory_path(), "ed25519-");
    ASSERT_TRUE(folder);
    m_folder = std::move(*folder);
  }
  std::filesystem::path file() const { return m_folder.path() / "state" / "key.pem"; }

 private:
  TemporaryFolder m_folder;
};

TEST_F(Ed25519, AKeyIsMadeOnceForItsOwnerAlone) {
  auto const made = SigningKey::open_or_make(file());
  ASSERT_TRUE(made) << made.error().message;
  auto const again = SigningKey::open_or_make(file());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(made->public_key(), again->public_key());
  struct stat status {};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(file().parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(Ed25519, ASignatureHoldsForItsBytesAndKeyAlone) {
  auto const key = SigningKey::open_or_make(file());
  auto const other = SigningKey::open_or_make(file().parent_path() / "other.pem");
  ASSERT_TRUE(key && other);
  auto const signature = key->sign("a verdict");
  EXPECT_TRUE(verify_signature("a verdict", key->public_key(), signature));
  EXPECT_FALSE(verify_signature("a verdicu", key->public_key(), signature));
  EXPECT_FALSE(verify_signature("a verdict", other->public_key(), signature));
  auto changed = signature;
  changed[5] = changed[5] == '0' ? '1' : '0';
  EXPECT_FALSE(verify_signature("a verdict", key->public_key(), changed));
}

TEST_F(Ed25519, WhatIsMalformedDoesNotHold) {
  EXPECT_FALSE(verify_signature("x", "", ""));
  EXPECT_FALSE(verify_signature("x", std::string(64, 'g'), std::string(128, '0')));
  EXPECT_FALSE(verify_signature("x", std::string(64, '0'), std::string(127, '0')));
}

// RFC 8032, section 7.1, test 2.
TEST_F(Ed25519, AgreesWithTheStandardsExample) {
  EXPECT_TRUE(verify_signature("\x72", "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
                               "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                               "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"));
}

TEST_F(Ed25519, AKeyThatOthersCanReadIsRefused) {
  ASSERT_TRUE(SigningKey::open_or_make(file()));
  ASSERT_EQ(::chmod(file().c_str(), 0644), 0);
  auto const refused = SigningKey::open_or_make(file());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("others"), std::string::npos);
}

TEST_F(Ed25519, AnotherFileIsNoKey) {
  std::filesystem::create_directories(file().parent_path());
  std::ofstream(file()) << "not a key\n";
  ASSERT_EQ(::chmod(file().c_str(), 0600), 0);
  EXPECT_FALSE(SigningKey::open_or_make(file()));
  EXPECT_FALSE(SigningKey::open(file().parent_path() / "absent.pem"));
}

}  // namespace
}  // namespace cuda_agent::util
