#include <gtest/gtest.h>

#include "unit/build/sample.hpp"

namespace cuda_agent::build {
namespace {

namespace fs = std::filesystem;
using test::Variable;

util::Deadline soon() { return util::Deadline::after(std::chrono::seconds(100)); }

// A stand-in for Python that prints an answer and counts how often it is asked.
class FakePython {
 public:
  FakePython() {
    auto folder = util::TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-python-");
    if (!folder) throw std::runtime_error(folder.error().message);
    m_folder = std::move(*folder);
    fs::create_directories(root() / "torch");
    EXPECT_TRUE(util::write_file(root() / "torch" / "version.py", "2.11.0"));
  }

  fs::path root() const { return m_folder.path(); }
  fs::path executable() const { return root() / "python"; }
  Cache cache() const { return {root() / "cache"}; }

  void answer(const std::string& torch_version, const std::string& torch_error = "null") const {
    std::string const at = root().string();
    std::string const json = R"({"executable": ")" + executable().string() +
                             R"(", "python_version": "3.11.7", "extension_suffix": ".so", "prefix": ")" + at +
                             R"(", "base_prefix": ")" + at + R"(", "search_path": [], "include_dirs": [], )" +
                             R"("library_dirs": [], "torch_dir": ")" + at + R"(/torch", "torch_cuda": "13.0", )" +
                             R"("cxx11_abi": true, "torch_version": ")" + torch_version + R"(", "torch_error": )" +
                             torch_error + "}";
    EXPECT_TRUE(util::write_file(
        executable(),
        "#!/bin/sh\necho asked >> " + at + "/count\necho a warning\necho 'cuda-agent-interpreter:" + json + "'\n"));
    fs::permissions(executable(), fs::perms::owner_all);
  }

  std::size_t times_asked() const {
    auto const count = util::read_file(root() / "count", 4096);
    return count ? count->size() / 6 : 0;
  }

 private:
  util::TemporaryFolder m_folder;
};

TEST(InterpreterSearch, AnswerIsKeptUntilTorchChanges) {
  FakePython const python;
  python.answer("2.11.0+cu130");
  Cache const cache = python.cache();
  for (int i = 0; i < 2; ++i) {
    auto const found = find_interpreter(python.executable(), soon(), &cache);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->torch_version, "2.11.0+cu130");
    EXPECT_EQ(found->executable, python.executable());
  }
  EXPECT_EQ(python.times_asked(), 1U);
  ASSERT_TRUE(util::write_file(python.root() / "torch" / "version.py", "a longer text than before"));
  ASSERT_TRUE(find_interpreter(python.executable(), soon(), &cache));
  EXPECT_EQ(python.times_asked(), 2U);
}

TEST(InterpreterSearch, AFailureIsNotKept) {
  FakePython const python;
  Cache const cache = python.cache();
  python.answer("", "\"ModuleNotFoundError: No module named 'torch'\"");
  auto const without = find_interpreter(python.executable(), soon(), &cache);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().outcome, Outcome::environment_error);
  EXPECT_NE(without.error().message.find("cannot import torch"), std::string::npos);
  EXPECT_NE(without.error().detail.find("No module named"), std::string::npos);
  python.answer("2.11.0");
  EXPECT_TRUE(find_interpreter(python.executable(), soon(), &cache));
}

TEST(InterpreterSearch, TooOldTorchIsRefused) {
  FakePython const python;
  python.answer("2.5.1+cu121");
  Cache const cache = python.cache();
  auto const found = find_interpreter(python.executable(), soon(), &cache);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("2.6"), std::string::npos);
}

TEST(InterpreterSearch, WhatIsNamedIsTakenOrRefused) {
  auto const missing = find_interpreter("/nonexistent/python", soon());
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/nonexistent/python"), std::string::npos);
  FakePython const python;
  python.answer("2.11.0");
  Cache const cache = python.cache();
  Variable const named("CUDA_AGENT_PYTHON", python.executable().string());
  auto const found = find_interpreter({}, soon(), &cache);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->executable, python.executable());
}

TEST(InterpreterSearch, AProgramThatIsNoPythonIsAnError) {
  FakePython const python;
  Cache const cache = python.cache();
  auto const found = find_interpreter("/bin/true", soon(), &cache);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().outcome, Outcome::environment_error);
}

TEST(CacheFolder, IsTheNamedOneOrAnError) {
  auto const folder = util::TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-cache-");
  ASSERT_TRUE(folder);
  {
    Variable const named("CUDA_AGENT_CACHE", (folder->path() / "a" / "b").string());
    auto const cache = open_cache({});
    ASSERT_TRUE(cache);
    EXPECT_EQ(cache->root, folder->path() / "a" / "b");
  }
  {
    Variable const named("CUDA_AGENT_CACHE", "/proc/nowhere");
    EXPECT_FALSE(open_cache(folder->path()));
  }
  Variable const unnamed("CUDA_AGENT_CACHE", std::nullopt);
  Variable const base("XDG_CACHE_HOME", "/proc/nowhere");
  Variable const home("HOME", "/proc/nowhere");
  auto const fallback = open_cache(folder->path() / "fallback");
  ASSERT_TRUE(fallback);
  EXPECT_EQ(fallback->root, folder->path() / "fallback");
}

}  // namespace
}  // namespace cuda_agent::build
