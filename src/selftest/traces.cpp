#include "selftest/traces.hpp"

#include <chrono>
#include <system_error>
#include <thread>

#include "exec/descendants.hpp"
#include "util/file_lock.hpp"
#include "util/hash.hpp"
#include "util/interrupt.hpp"

namespace cuda_agent::selftest {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view litter_word = "cuda-agent-exploit";

std::string content_of(const fs::directory_entry& entry) {
  std::error_code error;
  if (entry.is_symlink(error)) return "-> " + fs::read_symlink(entry.path(), error).string();
  if (entry.is_directory(error)) return "folder";
  auto const hash = util::sha256_of_file(entry.path());
  return hash ? *hash : "neither a file nor a folder";
}

}  // namespace

std::map<std::string, std::string> listing(const fs::path& folder) {
  std::map<std::string, std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (fs::recursive_directory_iterator const end; !error && entry != end; entry.increment(error)) {
    auto const name = entry->path().lexically_relative(folder);
    if (name == ".cuda-agent") {
      entry.disable_recursion_pending();
    } else {
      found[name.string()] = content_of(*entry);
    }
  }
  if (error) found["."] = error.message();
  return found;
}

std::vector<std::string> changed_paths(const std::map<std::string, std::string>& before,
                                       const std::map<std::string, std::string>& after) {
  std::set<std::string> changed;
  for (auto const& [path, content] : before) {
    auto const now = after.find(path);
    if (now == after.end() || now->second != content) changed.insert(path);
  }
  for (auto const& [path, content] : after) {
    if (!before.contains(path)) changed.insert(path);
  }
  return {changed.begin(), changed.end()};
}

std::set<std::string> litter() {
  std::set<std::string> found;
  for (auto const* const place : {"/tmp", "/dev/shm"}) {
    std::error_code error;
    for (fs::directory_iterator entry(place, error), end; !error && entry != end; entry.increment(error)) {
      if (entry->path().filename().string().find(litter_word) != std::string::npos)
        found.insert(entry->path().string());
    }
  }
  return found;
}

bool lock_is_free(const fs::path& workspace) {
  auto const file = workspace / ".cuda-agent" / "lock";
  std::error_code error;
  if (!fs::exists(file, error)) return true;
  return util::FileLock::acquire(file, "cuda-agent selftest", util::Deadline::after(std::chrono::seconds(0)), {})
      .has_value();
}

std::vector<std::string> left_running(util::Deadline deadline) {
  while (true) {
    auto names = exec::running_orphans();
    if (names.empty() || deadline.expired() || util::interrupted()) return names;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace cuda_agent::selftest
