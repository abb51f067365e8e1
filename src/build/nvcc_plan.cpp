#include "build/nvcc_plan.hpp"

#include <algorithm>
#include <regex>
#include <set>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "build/command_line.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

using File = PlannedWord::File;
using PlannedCommand = std::vector<PlannedWord>;

constexpr std::string_view line_start = "#$ ";

// An assignment of another name may be one that a tool needs.
const std::set<std::string> known_variables = {
    "_NVVM_BRANCH_",      "_SPACE_",         "_CUDART_",  "_HERE_",       "_THERE_",
    "_TARGET_SIZE_",      "_TARGET_DIR_",    "TOP",       "PATH",         "INCLUDES",
    "CICC_PATH",          "SYSTEM_INCLUDES", "LIBRARIES", "CUDAFE_FLAGS", "LD_LIBRARY_PATH",
    "NVVMIR_LIBRARY_DIR", "PTXAS_FLAGS"};

std::vector<std::string> split_at_colons(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t end = 0; end != std::string::npos; start = end + 1) {
    end = text.find(':', start);
    parts.push_back(text.substr(start, end == std::string::npos ? end : end - start));
  }
  return parts;
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  fs::path const normal = path.lexically_normal();
  return path.is_absolute() &&
         std::mismatch(folder.begin(), folder.end(), normal.begin(), normal.end()).first == folder.end();
}

bool is_word(const PlannedWord& word, std::string_view text) { return word.file == File::none && word.text == text; }

bool has_word(const PlannedCommand& command, std::string_view text) {
  return std::any_of(command.begin(), command.end(), [&](const PlannedWord& word) { return is_word(word, text); });
}

bool has_word_like(const PlannedCommand& command, std::string_view start) {
  return std::any_of(command.begin(), command.end(),
                     [&](const PlannedWord& word) { return word.text.rfind(start, 0) == 0; });
}

bool is_temporary(const PlannedWord& word, std::string_view suffix) {
  return word.file == File::temporary && word.suffix == suffix;
}

// The word behind an option that must be there once.
const PlannedWord* value_of(const PlannedCommand& command, std::string_view option) {
  const PlannedWord* found = nullptr;
  for (std::size_t i = 0; i + 1 < command.size(); ++i) {
    if (!is_word(command[i], option)) continue;
    if (found != nullptr) return nullptr;
    found = &command[i + 1];
  }
  return found;
}

bool writes(const PlannedCommand& command, std::string_view option, std::string_view suffix) {
  auto const* const word = value_of(command, option);
  return word != nullptr && word->text.empty() && is_temporary(*word, suffix);
}

bool reads(const PlannedCommand& command, std::string_view suffix) {
  return std::any_of(command.begin(), command.end(),
                     [&](const PlannedWord& word) { return word.text.empty() && is_temporary(word, suffix); });
}

std::size_t count_files(const PlannedCommand& command, File file) {
  return static_cast<std::size_t>(
      std::count_if(command.begin(), command.end(), [&](const PlannedWord& word) { return word.file == file; }));
}

class Reader {
 public:
  explicit Reader(const DryRun& dry_run)
      : m_dry_run(dry_run),
        m_toolkit(dry_run.nvcc.parent_path().parent_path().lexically_normal()),
        m_temporary(R"(tmpxft_[0-9a-f]{8}_[0-9a-f]{8}-([0-9]{1,4})_)" + fs::path(dry_run.names.source).stem().string() +
                    R"(\.([a-z0-9_.]{1,40}))") {}

  Understood read() {
    if (m_dry_run.text.size() > longest_dry_run) return {std::nullopt, "it printed too much"};
    for (auto const& line : util::split_lines(m_dry_run.text)) {
      if (line.rfind(line_start, 0) != 0) return {std::nullopt, "it printed a line of another kind: " + line};
      if (auto why_not = read_line(line.substr(line_start.size())); !why_not.empty()) {
        return {std::nullopt, why_not + ": " + line};
      }
    }
    if (m_commands.size() != nvcc_steps + 1 || !m_filters) return {std::nullopt, "the number of steps is another"};
    return recognise();
  }

 private:
  // Why it is not understood; empty when it is.
  std::string read_line(const std::string& line) {
    if (line == fmt::format("-- Filter Dependencies -- > {}", (m_dry_run.names.scratch / "dependencies.d").string())) {
      bool const twice = std::exchange(m_filters, true);
      return twice || m_commands.size() != 2 ? "dependencies where they are not expected" : "";
    }
    static const std::regex assignment(R"(([A-Za-z_][A-Za-z0-9_]*)=([^\n]*))");
    std::smatch match;
    if (line.size() < longest_assignment && std::regex_match(line, match, assignment)) {
      if (!m_commands.empty()) return "an assignment after the first step";
      if (known_variables.count(match[1]) == 0) return "an unknown variable";
      m_variables[match[1]] = util::trim(match[2].str());
      return {};
    }
    auto const words = split_command(line, m_variables);
    if (!words || words->empty()) return "not a plain command";
    PlannedCommand command;
    for (auto const& word : *words) {
      auto planned = plan(word);
      if (!planned) return "a word that names a file in an unknown way";
      command.push_back(std::move(*planned));
    }
    m_commands.push_back(std::move(command));
    return {};
  }

  std::optional<PlannedWord> plan(const std::string& word) const {
    auto const& names = m_dry_run.names;
    std::string const folder = names.scratch.string() + "/";
    if (word == names.source) return PlannedWord{"", File::source, "", ""};
    if (word == (names.cwd / names.source).string()) return PlannedWord{"", File::source_path, "", ""};
    if (word == names.object.string()) return PlannedWord{"", File::object, "", ""};
    auto const in_folder = word.find(folder);
    auto const start = in_folder == std::string::npos ? word.find("tmpxft_") : in_folder + folder.size();
    std::smatch match;
    std::string const name = start == std::string::npos ? std::string() : word.substr(start);
    if (std::regex_match(name, match, m_temporary)) {
      bool const with_folder = in_folder != std::string::npos;
      // Without its folder only as a whole word: the name of a file that is included by another one beside it.
      if (!with_folder && start != 0) return std::nullopt;
      return PlannedWord{word.substr(0, with_folder ? in_folder : 0),
                         with_folder ? File::temporary : File::temporary_name, match[1], match[2]};
    }
    bool const odd = start != std::string::npos || word.find(names.source) != std::string::npos || word[0] == '@';
    if (word.empty() || odd) return std::nullopt;
    return PlannedWord{word, File::none, "", ""};
  }

  Understood recognise() {
    NvccPlan plan;
    if (auto why_not = read_environment(plan); !why_not.empty()) return {std::nullopt, why_not};
    std::size_t step = 0;
    for (std::size_t i = 0; i < m_commands.size(); ++i) {
      if (i == nvcc_steps - 1) {
        if (!is_removal(m_commands[i])) return {std::nullopt, "the step before the last does not remove a file"};
        continue;
      }
      auto const which = static_cast<NvccStep>(step);
      if (!find_tool(which, m_commands[i].front())) return {std::nullopt, "an unknown tool: " + m_commands[i][0].text};
      if (!is_step(which, m_commands[i])) return {std::nullopt, fmt::format("step {} is another", step + 1)};
      plan.commands.at(step++) = std::move(m_commands[i]);
    }
    return {std::move(plan), {}};
  }

  std::string read_environment(NvccPlan& plan) const {
    if (!m_variables.count("_HERE_") || m_variables.at("_HERE_") != (m_toolkit / "bin").string()) {
      return "nvcc says that it is somewhere else";
    }
    for (const char* name : {"LD_LIBRARY_PATH", "NVVMIR_LIBRARY_DIR"}) {
      auto const found = m_variables.find(name);
      if (found == m_variables.end()) return fmt::format("{} is not set", name);
      std::vector<std::string> folders;
      for (auto const& folder : split_at_colons(found->second)) {
        if (folder.empty()) continue;  // the working folder, which holds no library
        if (!lies_in(folder, m_toolkit)) return fmt::format("{} names a folder outside of the toolkit", name);
        folders.push_back(folder);
      }
      plan.environment[name] = util::join(folders, ":");
    }
    auto const cicc = m_variables.find("CICC_PATH");
    if (cicc == m_variables.end()) return "CICC_PATH is not set";
    plan.tool_folders = {fs::path(cicc->second).lexically_normal(), m_toolkit / "bin"};
    return {};
  }

  static bool is_removal(const PlannedCommand& command) {
    return command.size() == 2 && is_word(command[0], "rm") && is_temporary(command[1], "fatbin");
  }

  // Its absolute path becomes the first word.
  bool find_tool(NvccStep step, PlannedWord& word) const {
    if (word.file != File::none) return false;
    switch (step) {
      case NvccStep::preprocess_device:
      case NvccStep::preprocess_host:
      case NvccStep::compile_host:
        return word.text == m_dry_run.host_compiler.string();
      case NvccStep::cicc:
        word.text = fs::path(word.text).lexically_normal().string();
        return word.text == (m_toolkit / "nvvm" / "bin" / "cicc").string();
      case NvccStep::cudafe:
        return take_from_bin(word, "cudafe++");
      case NvccStep::ptxas:
        return take_from_bin(word, "ptxas");
      case NvccStep::fatbinary:
        return take_from_bin(word, "fatbinary");
    }
    return false;
  }

  bool take_from_bin(PlannedWord& word, const std::string& name) const {
    if (word.text != name) return false;
    word.text = (m_toolkit / "bin" / name).string();
    return true;
  }

  static bool is_step(NvccStep step, const PlannedCommand& command) {
    // Nothing but the preprocessors reads the source, and nothing but the last step writes the object.
    bool const preprocesses = step == NvccStep::preprocess_device || step == NvccStep::preprocess_host;
    std::size_t const objects = step == NvccStep::compile_host ? 1 : 0;
    if (count_files(command, File::object) != objects) return false;
    bool const front_end = step == NvccStep::cudafe || step == NvccStep::cicc;
    if (count_files(command, File::source) != (preprocesses || front_end ? 1U : 0U)) return false;
    if (count_files(command, File::source_path) != (front_end ? 1U : 0U)) return false;
    switch (step) {
      case NvccStep::preprocess_device:
        return has_word(command, "-E") && has_word_like(command, "-D__CUDA_ARCH__=") &&
               writes(command, "-o", "cpp1.ii");
      case NvccStep::preprocess_host:
        return has_word(command, "-E") && !has_word_like(command, "-D__CUDA_ARCH__=") &&
               writes(command, "-o", "cpp4.ii");
      case NvccStep::cudafe:
        return has_word(command, "--gen_module_id_file") && writes(command, "--module_id_file_name", "module_id") &&
               writes(command, "--gen_c_file_name", "cudafe1.cpp") && reads(command, "cpp4.ii") &&
               is_temporary(command.back(), "cpp4.ii");
      case NvccStep::cicc:
        return !has_word(command, "--gen_module_id_file") && writes(command, "--module_id_file_name", "module_id") &&
               writes(command, "--gen_c_file_name", "cudafe1.c") &&
               writes(command, "--stub_file_name", "cudafe1.stub.c") &&
               writes(command, "--gen_device_file_name", "cudafe1.gpu") && reads(command, "cpp1.ii") &&
               writes(command, "-o", "ptx");
      case NvccStep::ptxas:
        return reads(command, "ptx") && writes(command, "-o", "cubin");
      case NvccStep::fatbinary:
        return is_fatbinary(command);
      case NvccStep::compile_host:
        return has_word(command, "-c") && reads(command, "cudafe1.cpp") && has_object(command);
    }
    return false;
  }

  // One image: machine code, from the one cubin.
  static bool is_fatbinary(const PlannedCommand& command) {
    std::size_t images = 0;
    std::size_t results = 0;
    for (auto const& word : command) {
      if (word.text.rfind("--image3=kind=elf,", 0) == 0 && is_temporary(word, "cubin")) ++images;
      if (word.text == "--embedded-fatbin=" && is_temporary(word, "fatbin.c")) ++results;
    }
    return images == 1 && results == 1 && count_files(command, File::temporary) == 2;
  }

  static bool has_object(const PlannedCommand& command) {
    auto const* const word = value_of(command, "-o");
    return word != nullptr && word->file == File::object;
  }

  static constexpr std::size_t longest_assignment = 8192;  // std::regex recurses

  const DryRun& m_dry_run;
  fs::path m_toolkit;
  std::regex m_temporary;
  std::map<std::string, std::string> m_variables;
  std::vector<PlannedCommand> m_commands;
  bool m_filters = false;  // nvcc makes the list of dependencies itself, from what the preprocessor wrote
};

std::string render(const PlannedWord& word, const NvccNames& names) {
  auto const temporary = [&] {
    return fmt::format("tmpxft-{}_{}.{}", word.number, fs::path(names.source).stem().string(), word.suffix);
  };
  switch (word.file) {
    case File::none:
      return word.text;
    case File::source:
      return word.text + names.source;
    case File::source_path:
      return word.text + (names.cwd / names.source).string();
    case File::object:
      return word.text + names.object.string();
    case File::temporary:
      return word.text + (names.scratch / temporary()).string();
    case File::temporary_name:
      return word.text + temporary();
  }
  return word.text;
}

}  // namespace

std::vector<std::string> NvccPlan::argv(NvccStep step, const NvccNames& names) const {
  std::vector<std::string> words;
  for (auto const& word : commands.at(static_cast<std::size_t>(step))) words.push_back(render(word, names));
  return words;
}

std::string NvccPlan::value(NvccStep step, const std::string& option, const NvccNames& names) const {
  auto const* const word = value_of(commands.at(static_cast<std::size_t>(step)), option);
  return word == nullptr ? std::string() : render(*word, names);
}

Understood understand(const DryRun& dry_run) { return Reader(dry_run).read(); }

}  // namespace cuda_agent::build
