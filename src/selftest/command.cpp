#include "selftest/command.hpp"

#include "util/environment.hpp"

namespace cuda_agent::selftest {

std::vector<std::string> judge_command(const Case& one, const std::vector<std::string>& off,
                                       const std::filesystem::path& binary, const std::filesystem::path& workspace,
                                       const std::string& python) {
  std::vector<std::string> arguments{binary.string(), one.command, workspace.string()};
  auto const add = [&](std::initializer_list<const char*> more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  };
  // Long enough for the first ask on a machine, which compiles torch's headers.
  add({"--device", one.needs_cuda ? "cuda" : "cpu", "--timeout", "600", "--quiet"});
  if (one.command != "compile") add({"--call-timeout", "6"});
  if (one.command == "run" || one.command == "profile") add({"--baseline", "eager"});
  if (!one.text) add({"--json"});
  arguments.insert(arguments.end(), off.begin(), off.end());
  if (!python.empty()) add({"--python", python.c_str()});
  arguments.insert(arguments.end(), one.flags.begin(), one.flags.end());
  return arguments;
}

std::map<std::string, std::string> judge_environment() {
  auto environment = util::whole_environment();
  // CUDA_VISIBLE_DEVICES stays: it may say which GPU is not ours to use.
  for (auto const* const unwanted : {"CUDA_AGENT", "CXX", "NO_COLOR", "TORCH_CUDA_ARCH_LIST"}) {
    environment.erase(unwanted);
  }
  // Each case has workers of its own: no resident session.
  environment["CI"] = "true";
  return environment;
}

}  // namespace cuda_agent::selftest
