#include "selftest/traces.hpp"

#include <chrono>
#include <filesystem>

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include "exec/child.hpp"
#include "exec/descendants.hpp"
#include "folder.hpp"
#include "util/file_lock.hpp"

namespace cuda_agent::selftest {

namespace fs = std::filesystem;

using Traces = InFolder;

TEST_F(Traces, SeeWhatChangedInAWorkspace) {
  write("kept", "1");
  write("changed", "1");
  write("removed", "1");
  fs::create_symlink("kept", at("link"));
  auto const before = listing(at(""));
  EXPECT_TRUE(changed_paths(before, listing(at(""))).empty());
  write("changed", "2");
  write("folder/new", "");
  write(".cuda-agent/history.jsonl", "{}");
  fs::remove(at("removed"));
  fs::remove(at("link"));
  fs::create_symlink("changed", at("link"));
  EXPECT_EQ(changed_paths(before, listing(at(""))),
            (std::vector<std::string>{"changed", "folder", "folder/new", "link", "removed"}));
}

TEST_F(Traces, SeeALockThatIsHeld) {
  EXPECT_TRUE(lock_is_free(at("")));
  write(".cuda-agent/lock", "");
  EXPECT_TRUE(lock_is_free(at("")));
  auto const held =
      util::FileLock::acquire(at(".cuda-agent/lock"), "a test", util::Deadline::after(std::chrono::seconds(5)), {});
  ASSERT_TRUE(held);
  EXPECT_FALSE(lock_is_free(at("")));
}

TEST_F(Traces, SeeLitter) {
  auto const file = fs::path("/tmp") / fmt::format("x-cuda-agent-exploit-test-{}", ::getpid());
  EXPECT_FALSE(litter().contains(file.string()));
  ASSERT_TRUE(util::write_file(file, ""));
  EXPECT_TRUE(litter().contains(file.string()));
  fs::remove(file);
}

TEST_F(Traces, SeeAProcessThatItsParentLeft) {
  exec::Command command;
  command.argv = {"/bin/sh", "-c", "setsid sleep 60 & exit 0"};
  auto child = exec::spawn(command);
  ASSERT_TRUE(child) << child.error().message;
  ASSERT_TRUE(exec::wait_for_end((*child)->pid(), util::Deadline::after(std::chrono::seconds(20))));
  EXPECT_FALSE(left_running(util::Deadline::after(std::chrono::milliseconds(100))).empty());
  ASSERT_TRUE((*child)->poll());  // which ends what it left
  EXPECT_TRUE(left_running(util::Deadline::after(std::chrono::seconds(5))).empty());
}

}  // namespace cuda_agent::selftest
