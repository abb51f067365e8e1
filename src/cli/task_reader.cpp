#include "cli/task_reader.hpp"

#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "cli/task_reader_script.hpp"
#include "exec/child.hpp"
#include "util/environment.hpp"
#include "util/json.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view k_task_hint =
    "a task file defines class Model(torch.nn.Module), get_inputs() and get_init_inputs()";

tl::unexpected<Error> unusable(const fs::path& task, std::string_view why) {
  return fail(Outcome::task_error, fmt::format("{}: {}", util::escape_untrusted(task.string()), why),
              {std::string(k_task_hint)});
}

}  // namespace

Result<fs::path> any_python(const std::string& requested) {
  std::vector<std::string> names;
  if (!requested.empty()) {
    names = {requested};
  } else {
    if (auto const named = util::get_env("CUDA_AGENT_PYTHON"); named && !named->empty()) names.push_back(*named);
    if (auto const venv = util::get_env("VIRTUAL_ENV"); venv && !venv->empty()) names.push_back(*venv + "/bin/python");
    names.emplace_back("python3");
  }
  for (auto const& name : names) {
    if (auto found = util::find_executable(name)) return fs::absolute(*found);
  }
  return fail(Outcome::environment_error,
              fmt::format("no Python interpreter: {} is not an executable file",
                          util::escape_untrusted(util::join(names, ", nor "))),
              {"give one with --python FILE"});
}

Result<std::string> model_new_for(const fs::path& task, const std::string& kernel, const fs::path& python,
                                  util::Deadline deadline) {
  exec::Command command;
  command.argv = {python.string(), "-I", "-S", "-c", std::string(task_reader_script()), fs::absolute(task).string(),
                  kernel};
  command.env = {{"PATH", util::get_env("PATH").value_or("/usr/bin:/bin")}, {"PYTHONIOENCODING", "utf-8"}};
  command.capture_head = std::size_t{4} << 20;
  auto const completed = exec::run(command, deadline);
  if (!completed) return fail(completed.error());
  auto const answer = util::parse_json(completed->output);
  if (!completed->status.ok() || !answer || !answer->is_object()) {
    return fail(Outcome::environment_error,
                fmt::format("{} could not read the task: {}", util::escape_untrusted(python.string()),
                            completed->status.describe()),
                {"a Python 3.9 or newer is needed: give one with --python FILE"},
                util::escape_untrusted(completed->output, 4096));
  }
  if (answer->contains("error")) return unusable(task, util::escape_untrusted(answer->value("error", ""), 1024));
  return answer->value("model_new", "");
}

}  // namespace cuda_agent::cli
