#include "exec/root_access.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "util/files.hpp"

namespace cuda_agent::exec {
namespace {

namespace fs = std::filesystem;

class RootAccess : public testing::Test {
 protected:
  void SetUp() override {
    auto made = util::TemporaryFolder::make(fs::temp_directory_path(), "root-access-test-");
    ASSERT_TRUE(made);
    m_folder = std::move(*made);
  }
  fs::path make(const char* name, fs::perms allowed) {
    fs::path const path = m_folder.path() / name;
    EXPECT_TRUE(util::write_file(path, "words"));
    fs::permissions(path, allowed);
    return path;
  }
  fs::path make_folder(const char* name, fs::perms allowed) {
    fs::path const path = m_folder.path() / name;
    fs::create_directories(path);
    fs::permissions(path, allowed);
    return path;
  }

  util::TemporaryFolder m_folder;
  static constexpr fs::perms for_all = fs::perms(0755);
};

TEST_F(RootAccess, PrivateIsWhatOthersMayNotRead) {
  make("open", fs::perms(0644));
  make_folder("folder", for_all);
  auto const secret = make("folder/secret", fs::perms(0640));
  auto const closed = make_folder("closed", fs::perms(0710));
  make("closed/within", fs::perms(0600));
  fs::create_symlink("folder/secret", m_folder.path() / "link");
  auto found = private_places(m_folder.path());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<fs::path>{closed, secret}));
  EXPECT_EQ(private_places(m_folder.path() / "none"), std::vector<fs::path>());
}

TEST_F(RootAccess, AnothersClosedFolderIsClosedToRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  auto const others = make_folder("others", fs::perms(0700));
  auto const within = make_folder("others/within", for_all);
  EXPECT_EQ(closed_to_root(within), fs::path()) << "root's own";
  ASSERT_EQ(::chown(others.c_str(), 65534, 65534), 0);
  EXPECT_EQ(closed_to_root(within), others);
  fs::permissions(others, fs::perms(0701));
  EXPECT_EQ(closed_to_root(within), fs::path());
}

}  // namespace
}  // namespace cuda_agent::exec
