// Finding the Python that has torch, and asking it what only it knows.
#include <regex>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "build/extension.hpp"
#include "build/toolchain.hpp"
#include "exec/child.hpp"
#include "util/environment.hpp"
#include "util/files.hpp"
#include "util/hash.hpp"
#include "util/json.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int schema = 2;
constexpr int oldest_torch_major = 2;
constexpr int oldest_torch_minor = 6;
constexpr std::string_view answer_mark = "cuda-agent-interpreter:";

// Run in the interpreter as its user would run it (with PYTHONPATH and user packages); prints one marked JSON line,
// since imports may print as well.
constexpr const char* probe = R"(
import json, os, sys, sysconfig
facts = {
    "executable": sys.executable,
    "python_version": "%d.%d.%d" % sys.version_info[:3],
    "extension_suffix": sysconfig.get_config_var("EXT_SUFFIX"),
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "search_path": [p for p in sys.path if p and os.path.exists(p)],
    "include_dirs": sorted({sysconfig.get_path("include"), sysconfig.get_path("platinclude")}),
    "torch_error": None,
}
try:
    import torch
except BaseException as error:
    facts["torch_error"] = "%s: %s" % (type(error).__name__, error)
else:
    torch_dir = os.path.dirname(os.path.abspath(torch.__file__))
    try:
        from torch.utils import cpp_extension
        torch_includes = cpp_extension.include_paths(device_type="cpu")
    except BaseException:
        torch_includes = [os.path.join(torch_dir, "include"),
                          os.path.join(torch_dir, "include", "torch", "csrc", "api", "include")]
    packages = os.path.join(os.path.dirname(torch_dir), "nvidia")
    wheels = sorted(os.listdir(packages)) if os.path.isdir(packages) else []
    libraries = [os.path.join(torch_dir, "lib")] + [os.path.join(packages, wheel, "lib") for wheel in wheels]
    facts.update({
        "torch_version": str(torch.__version__),
        "torch_cuda": torch.version.cuda or "",
        "cxx11_abi": bool(torch._C._GLIBCXX_USE_CXX11_ABI),
        "torch_dir": torch_dir,
        "include_dirs": torch_includes + facts["include_dirs"],
        "library_dirs": [p for p in libraries if os.path.isdir(p)],
    })
sys.stdout.flush()
print("\ncuda-agent-interpreter:" + json.dumps(facts), flush=True)
os._exit(0)
)";

// Variables by which the user chooses what the interpreter sees.
std::map<std::string, std::string> interpreter_environment() {
  std::map<std::string, std::string> kept{{"PYTHONDONTWRITEBYTECODE", "1"}};
  for (const char* name :
       {"PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONHOME",
        "PYTHONUSERBASE", "PYENV_VERSION", "PYENV_ROOT", "LD_LIBRARY_PATH"}) {
    if (auto value = util::get_env(name)) kept[name] = *value;
  }
  return kept;
}

std::vector<fs::path> paths_from_json(const json& list) {
  std::vector<fs::path> paths;
  for (auto const& item : list) paths.emplace_back(item.get<std::string>());
  return paths;
}

Interpreter interpreter_from_json(const json& facts) {
  Interpreter interpreter;
  interpreter.executable = facts.at("executable").get<std::string>();
  interpreter.python_version = facts.at("python_version");
  interpreter.extension_suffix = facts.at("extension_suffix");
  interpreter.torch_version = facts.at("torch_version");
  interpreter.torch_cuda = facts.at("torch_cuda");
  interpreter.cxx11_abi = facts.at("cxx11_abi");
  interpreter.prefix = facts.at("prefix").get<std::string>();
  interpreter.base_prefix = facts.at("base_prefix").get<std::string>();
  interpreter.torch_dir = facts.at("torch_dir").get<std::string>();
  interpreter.include_dirs = paths_from_json(facts.at("include_dirs"));
  interpreter.library_dirs = paths_from_json(facts.at("library_dirs"));
  interpreter.search_path = paths_from_json(facts.at("search_path"));
  return interpreter;
}

// Importing torch takes three seconds, so the answer is kept, with the states of the files whose change would make it
// wrong: the interpreter, its pyvenv.cfg, torch's version.py and the folders in which packages are installed.
class RememberedAnswer {
 public:
  RememberedAnswer(const Cache* cache, const fs::path& executable) : m_executable(executable) {
    if (cache == nullptr) return;
    util::Sha256 key;
    key.update(fmt::format("{}\n{}\n", schema, executable.string()));
    for (auto const& [name, value] : interpreter_environment()) key.update(fmt::format("{}={}\n", name, value));
    m_file = cache->root / "interpreters" / (key.hex() + ".json");
  }

  std::optional<json> recall() const {
    if (m_file.empty()) return std::nullopt;
    auto const text = util::read_file(m_file, 1 << 20);
    if (!text) return std::nullopt;
    auto const kept = util::parse_json(*text);
    if (!kept) return std::nullopt;
    try {
      for (auto const& [path, state] : kept->at("states").items()) {
        if (util::file_state(path) != state.get<std::string>()) return std::nullopt;
      }
      return kept->at("facts");
    } catch (const json::exception&) {
      return std::nullopt;
    }
  }

  // A cache that cannot be written costs three seconds a start, no more.
  void keep(const json& facts) const {
    if (m_file.empty()) return;
    json states = json::object();
    fs::path const torch_dir = facts.at("torch_dir").get<std::string>();
    std::vector<fs::path> witnesses = {m_executable, facts.at("executable").get<std::string>(),
                                       fs::path(facts.at("prefix").get<std::string>()) / "pyvenv.cfg",
                                       torch_dir / "version.py", torch_dir / "lib"};
    for (auto const& path : facts.at("search_path")) witnesses.emplace_back(path.get<std::string>());
    for (auto const& path : witnesses) states[path.string()] = util::file_state(path);
    json const kept = {{"facts", facts}, {"states", std::move(states)}};
    if (util::make_folders(m_file.parent_path())) {
      [[maybe_unused]] auto const written = util::write_file(m_file, kept.dump());
    }
  }

 private:
  fs::path m_executable;
  fs::path m_file;
};

const std::vector<std::string> torch_hints = {
    "Install PyTorch for it: python -m pip install torch==2.11.0",
    "Or name another interpreter with --python PATH or CUDA_AGENT_PYTHON (scripts/setup.sh makes one in .venv)."};

Result<json> read_answer(const fs::path& executable, const std::string& output) {
  for (auto const& line : util::split_lines(output)) {
    if (line.rfind(answer_mark, 0) != 0) continue;
    auto facts = util::parse_json(line.substr(answer_mark.size()));
    if (facts) return *facts;
  }
  return fail(Outcome::environment_error,
              fmt::format("{} did not answer as a Python 3 interpreter would", executable.string()),
              {"Name another interpreter with --python PATH."}, util::escape_untrusted(output, 4096));
}

Result<json> ask(const fs::path& executable, util::Deadline deadline) {
  exec::Command command;
  command.argv = {executable.string(), "-c", probe};
  command.env = interpreter_environment();
  auto const answer = exec::run(command, deadline.earlier(util::Deadline::after(std::chrono::seconds(90))));
  if (!answer && answer.error().outcome == Outcome::timeout) {
    return fail(Outcome::environment_error,
                fmt::format("{} did not finish importing torch in time", executable.string()),
                {"Try: " + executable.string() + " -c 'import torch'"});
  }
  if (!answer) return fail(answer.error());
  if (!answer->status.ok()) {
    return fail(Outcome::environment_error,
                fmt::format("{} ended with {} when asked about torch", executable.string(), answer->status.describe()),
                torch_hints, util::escape_untrusted(answer->output, 4096));
  }
  return read_answer(executable, answer->output);
}

bool is_too_old(const std::string& version) {
  static const std::regex pattern(R"(^(\d+)\.(\d+).*)");
  std::smatch match;
  if (!std::regex_match(version, match, pattern)) return false;
  int const major = std::stoi(match[1]);
  return major < oldest_torch_major || (major == oldest_torch_major && std::stoi(match[2]) < oldest_torch_minor);
}

Result<Interpreter> interpret(const fs::path& executable, const json& facts) {
  try {
    if (!facts.at("torch_error").is_null()) {
      return fail(Outcome::environment_error,
                  fmt::format("{} (Python {}) cannot import torch", executable.string(),
                              facts.at("python_version").get<std::string>()),
                  torch_hints, util::escape_untrusted(facts.at("torch_error").get<std::string>(), 4096));
    }
    auto interpreter = interpreter_from_json(facts);
    if (is_too_old(interpreter.torch_version)) {
      return fail(Outcome::environment_error,
                  fmt::format("{} has torch {}; {}.{} or newer is needed", executable.string(),
                              interpreter.torch_version, oldest_torch_major, oldest_torch_minor),
                  torch_hints);
    }
    return interpreter;
  } catch (const json::exception& error) {
    return fail(Outcome::environment_error,
                fmt::format("{} gave an answer that is not understood", executable.string()),
                {"Name another interpreter with --python PATH."}, error.what());
  }
}

Result<Interpreter> ask_or_recall(const fs::path& executable, const Cache* cache, util::Deadline deadline) {
  RememberedAnswer const remembered(cache, executable);
  if (auto const facts = remembered.recall()) {
    if (auto interpreter = interpret(executable, *facts)) return interpreter;
  }
  auto const facts = ask(executable, deadline);
  if (!facts) return fail(facts.error());
  auto interpreter = interpret(executable, *facts);
  if (interpreter) remembered.keep(*facts);
  return interpreter;
}

// The environment that scripts/setup.sh makes lies beside the build folder or in the installation.
std::optional<fs::path> python_of_installation() {
  fs::path folder = util::own_executable().parent_path();
  for (int level = 0; level < 4 && folder.has_relative_path(); ++level, folder = folder.parent_path()) {
    if (auto found = util::find_executable((folder / ".venv" / "bin" / "python").string())) return found;
  }
  return std::nullopt;
}

// Where a choice came from, for messages.
struct Choice {
  fs::path executable;
  std::string from;
};

std::vector<Choice> implied_choices() {
  std::vector<Choice> choices;
  if (auto const found = python_of_installation()) choices.push_back({*found, "the installation's .venv"});
  if (auto const venv = util::get_env("VIRTUAL_ENV"); venv && !venv->empty()) {
    if (auto found = util::find_executable((fs::path(*venv) / "bin" / "python").string())) {
      choices.push_back({*found, "VIRTUAL_ENV"});
    }
  }
  for (const char* name : {"python3", "python"}) {
    if (auto const found = util::find_executable(name)) choices.push_back({*found, "PATH"});
  }
  return choices;
}

Result<Choice> explicit_choice(const std::string& text, const std::string& from) {
  std::error_code error;
  fs::path const path = text.find('/') == std::string::npos ? fs::path(text) : fs::absolute(text, error);
  if (auto found = util::find_executable(path.string())) return Choice{*found, from};
  return fail(Outcome::environment_error,
              fmt::format("the interpreter from {}, \"{}\", is not an executable file", from,
                          util::escape_untrusted(text, 400)),
              {"Give the path of a python3 that has torch, e.g. --python .venv/bin/python."});
}

Result<Interpreter> first_that_works(const std::vector<Choice>& choices, const Cache* cache, util::Deadline deadline) {
  std::vector<std::string> tried;
  std::string detail;
  for (auto const& choice : choices) {
    auto interpreter = ask_or_recall(choice.executable, cache, deadline);
    if (interpreter || interpreter.error().outcome == Outcome::interrupted) return interpreter;
    if (choices.size() == 1) return interpreter;
    tried.push_back(fmt::format("{} (from {})", choice.executable.string(), choice.from));
    detail += fmt::format("{}\n{}\n", interpreter.error().message, interpreter.error().detail);
  }
  if (tried.empty()) {
    return fail(Outcome::environment_error, "no Python interpreter: there is no python3 on PATH", torch_hints);
  }
  return fail(Outcome::environment_error,
              fmt::format("no Python interpreter with torch was found; asked: {}", util::join(tried, ", ")),
              torch_hints, util::trim(detail));
}

}  // namespace

Result<Interpreter> find_interpreter(const fs::path& requested, util::Deadline deadline, const Cache* cache) {
  std::optional<Cache> usual;
  if (cache == nullptr) {
    if (auto opened = open_cache({})) usual = *opened;
    cache = usual ? &*usual : nullptr;
  }
  auto const variable = util::get_env("CUDA_AGENT_PYTHON");
  if (!requested.empty() || (variable && !variable->empty())) {
    auto choice = requested.empty() ? explicit_choice(*variable, "CUDA_AGENT_PYTHON")
                                    : explicit_choice(requested.string(), "--python");
    if (!choice) return fail(choice.error());
    return first_that_works({*choice}, cache, deadline);
  }
  return first_that_works(implied_choices(), cache, deadline);
}

}  // namespace cuda_agent::build
