#include <sys/stat.h>

#include "unit/workspace/workspace_fixture.hpp"
#include "util/hash.hpp"

namespace cuda_agent::workspace {

namespace fs = std::filesystem;

class TakeSnapshot : public WorkspaceTest {
 protected:
  Result<Snapshot> taken(const SnapshotLimits& limits = {}, SnapshotNeeds needs = {}) const {
    return take_snapshot(opened(), copy(), needs, limits);
  }
};

void expect_refused(const Result<Snapshot>& snapshot, const std::string& name, const std::string& why) {
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().outcome, Outcome::policy_violation);
  EXPECT_EQ(snapshot.error().fault, Fault::candidate);
  EXPECT_NE(snapshot.error().message.find(name), std::string::npos) << snapshot.error().message;
  EXPECT_NE(snapshot.error().message.find(why), std::string::npos) << snapshot.error().message;
}

TEST_F(TakeSnapshot, CopiesWhatCountsReadOnlyWithItsHashes) {
  write("notes.txt", "not copied");
  write("kernels/sub/b.cuh", "// b\n");
  auto const snapshot = taken();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  std::vector<std::string> names;
  for (auto const& [name, hash] : snapshot->manifest) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"kernels/a.cu", "kernels/a_cpu.cpp", "kernels/sub/b.cuh", "model.py",
                                             "model_new.py"}));
  EXPECT_EQ(snapshot->manifest.at("kernels/a.cu"), util::sha256_hex("// a\n"));
  EXPECT_EQ(snapshot->task_sha256, util::sha256_hex("class Model: pass\n"));
  struct stat info {};
  ASSERT_EQ(::stat((copy() / "kernels" / "a.cu").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0444U);
  ASSERT_EQ(::stat((copy() / "kernels").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0555U);
}

TEST_F(TakeSnapshot, TheCandidatesHashFollowsItsFilesAndNotTheTask) {
  auto const hash = [&] {
    auto const snapshot = taken();
    EXPECT_TRUE(remove_tree(copy()));
    return snapshot ? snapshot->candidate_sha256 : snapshot.error().message;
  };
  auto const before = hash();
  write("model.py", "class Model: other\n");
  EXPECT_EQ(hash(), before);
  write("kernels/a.cu", "// changed\n");
  EXPECT_NE(hash(), before);
}

TEST_F(TakeSnapshot, RefusesLinksWhereverTheyPoint) {
  fs::create_symlink("../model.py", root() / "kernels" / "task.cuh");
  expect_refused(taken(), "kernels/task.cuh", "symbolic link");
}

TEST_F(TakeSnapshot, RefusesALinkedKernelsFolder) {
  fs::rename(root() / "kernels", root() / "elsewhere");
  fs::create_directory_symlink("elsewhere", root() / "kernels");
  expect_refused(taken(), "kernels", "symbolic link");
}

TEST_F(TakeSnapshot, ALinkedTaskIsTheTasksFault) {
  fs::rename(root() / "model.py", root() / "other.py");
  fs::create_symlink("other.py", root() / "model.py");
  auto const snapshot = taken();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().outcome, Outcome::task_error);
  EXPECT_EQ(snapshot.error().fault, Fault::task);
}

TEST_F(TakeSnapshot, RefusesAPipeWithoutWaitingForItsWriter) {
  ASSERT_EQ(::mkfifo((root() / "kernels" / "pipe.cu").c_str(), 0600), 0);
  expect_refused(taken(), "kernels/pipe.cu", "not a regular file");
}

TEST_F(TakeSnapshot, RefusesTooManyFiles) {
  SnapshotLimits limits;
  limits.files = 3;
  expect_refused(taken(limits), "kernels/", "more than 3 files");
}

TEST_F(TakeSnapshot, RefusesTooManyBytes) {
  write("kernels/weights.h", std::string(1000, '1'));
  SnapshotLimits limits;
  limits.bytes = 1000;
  expect_refused(taken(limits), "kernels/weights.h", "more than 1000 bytes");
}

TEST_F(TakeSnapshot, RefusesFoldersBeyondTheDepth) {
  write("kernels/1/2/3/deep.cu", "");
  SnapshotLimits limits;
  limits.depth = 2;
  expect_refused(taken(limits), "kernels/1/2/3", "folders deep");
}

TEST_F(TakeSnapshot, ShowsAControlCharacterInANameAndRefusesIt) {
  write("kernels/\033[31m.cu", "");
  auto const snapshot = taken();
  expect_refused(snapshot, "\\x1b", "control characters");
  EXPECT_EQ(snapshot.error().message.find('\033'), std::string::npos);
}

TEST_F(TakeSnapshot, LeavesOutWhatEditorsAndPythonLeaveBehind) {
  fs::create_symlink("user@host.1234", root() / "kernels" / ".#a.cu");
  write("kernels/__pycache__/x.pyc", "");
  auto const snapshot = taken();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(snapshot->manifest.size(), 4U);
}

TEST_F(TakeSnapshot, AMissingModelIsTheTasksFault) {
  fs::remove(root() / "model.py");
  auto const snapshot = taken();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(exit_code(snapshot.error().outcome), 9);
  EXPECT_NE(snapshot.error().hints.front().find("get_inputs"), std::string::npos);
}

TEST_F(TakeSnapshot, AMissingModelNewIsTheCandidatesAndSaysWhatItMustDefine) {
  fs::remove(root() / "model_new.py");
  auto const snapshot = taken();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(exit_code(snapshot.error().outcome), 5);
  EXPECT_NE(snapshot.error().message.find("model_new.py"), std::string::npos);
  EXPECT_NE(snapshot.error().hints.front().find("ModelNew"), std::string::npos);
}

TEST_F(TakeSnapshot, MissingKernelsAreTheCandidates) {
  fs::remove_all(root() / "kernels");
  auto const snapshot = taken();
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(exit_code(snapshot.error().outcome), 5);
  EXPECT_EQ(snapshot.error().fault, Fault::candidate);
  EXPECT_NE(snapshot.error().message.find("kernels/"), std::string::npos);
}

TEST_F(TakeSnapshot, CompilingNeedsTheKernelsOnly) {
  fs::remove(root() / "model.py");
  fs::remove(root() / "model_new.py");
  EXPECT_TRUE(taken({}, {.model = false, .model_new = false}));
}

}  // namespace cuda_agent::workspace
