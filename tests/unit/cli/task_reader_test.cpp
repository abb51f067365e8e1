#include "cli/task_reader.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "util/files.hpp"

namespace cuda_agent::cli {

class TaskReader : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = util::TemporaryFolder::make(std::filesystem::temp_directory_path(), "cuda-agent-test-");
    ASSERT_TRUE(folder);
    m_folder = std::move(*folder);
  }
  Result<std::string> read(const std::string& task) const {
    EXPECT_TRUE(util::write_file(m_folder.path() / "task.py", task));
    auto const python = any_python("");
    if (!python) return fail(python.error());
    return model_new_for(m_folder.path() / "task.py", "relu", *python, util::Deadline::after(std::chrono::seconds(60)));
  }

 private:
  util::TemporaryFolder m_folder;
};

constexpr const char* k_task = R"(import math
import json
import torch.nn as nn

WIDTH = 4
UNUSED = 5

class Block(nn.Module):
    pass

class Model(nn.Module):
    def __init__(self, n):
        super(Model, self).__init__()
        self.block = Block()
        self.scale = math.sqrt(WIDTH)

    def forward(self, x, y=2):
        return self.block(x) * y

def get_inputs():
    return [1 / 0]

def get_init_inputs():
    return [3]
)";

testing::AssertionResult text_has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in:\n" << text;
}

TEST_F(TaskReader, KeepsTheConstructorAndWhatItNeeds) {
  auto const text = read(k_task);
  ASSERT_TRUE(text) << text.error().message << text.error().detail;
  EXPECT_TRUE(text_has(
      *text, "class ModelNew(nn.Module):\n    def __init__(self, n):\n        super(ModelNew, self).__init__()"));
  EXPECT_TRUE(text_has(*text, "class Block(nn.Module):"));
  EXPECT_TRUE(text_has(*text, "WIDTH = 4"));
  EXPECT_TRUE(text_has(*text, "import math\n"));
  EXPECT_TRUE(text_has(*text, "import cuda_extension\n"));
  for (auto const* const part : {"UNUSED", "json", "get_inputs", "class Model("}) EXPECT_FALSE(text_has(*text, part));
}

TEST_F(TaskReader, SaysWhereToBegin) {
  auto const text = read(k_task);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_TRUE(text_has(*text, "def forward(self, x, y=2):\n"));
  EXPECT_TRUE(text_has(*text, "#     return self.block(x) * y\n"));
  EXPECT_TRUE(text_has(*text, "cuda_extension.relu_forward(x)"));
  EXPECT_TRUE(text_has(*text, "raise NotImplementedError("));
}

TEST_F(TaskReader, NeverRunsTheTask) {
  auto const marker = std::filesystem::temp_directory_path() / "cuda-agent-test-task-ran";
  std::filesystem::remove(marker);
  EXPECT_TRUE(read("open('" + marker.string() + "', 'w')\n" + k_task));
  EXPECT_FALSE(std::filesystem::exists(marker));
}

TEST_F(TaskReader, BlamesTheTaskForWhatIsMissing) {
  for (auto const& [task, why] : std::vector<std::pair<std::string, std::string>>{
           {"x = 1\n", "no class Model"},
           {"class Model:\n    pass\n", "no get_inputs()"},
           {"class Model:\n    pass\ndef get_inputs(): pass\n", "no get_init_inputs()"},
           {"class Model(:\n", "line 1"},
           {std::string("x = '\xff'\n"), "utf-8"}}) {
    auto const text = read(task);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().outcome, Outcome::task_error);
    EXPECT_TRUE(text_has(text.error().message, why));
  }
}

TEST(AnyPython, NamesWhatIsNoInterpreter) {
  auto const python = any_python("/no/such/python");
  ASSERT_FALSE(python);
  EXPECT_EQ(python.error().outcome, Outcome::environment_error);
  EXPECT_TRUE(text_has(python.error().message, "/no/such/python"));
}

}  // namespace cuda_agent::cli
