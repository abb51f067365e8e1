// A folder for the tests of the selftest, with files.
#pragma once

#include <filesystem>
#include <string_view>

#include <gtest/gtest.h>

#include "util/files.hpp"

namespace cuda_agent::selftest {

class InFolder : public testing::Test {
 protected:
  void SetUp() override {
    auto made = util::TemporaryFolder::make(std::filesystem::temp_directory_path(), "selftest-test-");
    ASSERT_TRUE(made) << made.error().message;
    m_folder = std::move(*made);
  }
  std::filesystem::path at(const std::filesystem::path& name) const { return m_folder.path() / name; }
  void write(const std::filesystem::path& name, std::string_view text) const {
    auto const path = at(name);
    ASSERT_TRUE(util::make_folders(path.parent_path()));
    ASSERT_TRUE(util::write_file(path, text));
  }

 private:
  util::TemporaryFolder m_folder;
};

}  // namespace cuda_agent::selftest
