#include "build/architecture.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex>

#include <spdlog/fmt/fmt.h>

#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

constexpr const char* decided_by =
    "The architecture is decided by --arch, else by TORCH_CUDA_ARCH_LIST, else by the GPU; flags elsewhere are not "
    "used.";

// The first architecture that has an 'a' variant (features of exactly this GPU, such as wgmma).
constexpr int first_with_variant = 90;

int plain_number(const std::string& number) { return std::atoi(number.c_str()); }

bool is_supported(const ArchitectureQuestion& question, const std::string& number) {
  return question.supported.empty() || std::find(question.supported.begin(), question.supported.end(),
                                                 plain_number(number)) != question.supported.end();
}

std::string supported_text(const ArchitectureQuestion& question) {
  std::vector<std::string> names;
  names.reserve(question.supported.size());
  for (int number : question.supported) names.push_back(fmt::format("sm_{}", number));
  return util::join(names, ", ");
}

tl::unexpected<Error> refuse(const ArchitectureQuestion& question, const std::string& where,
                             const std::string& number) {
  return fail(Outcome::environment_error,
              fmt::format("{} asks for sm_{}, which nvcc {} does not compile for (it knows {})", where, number,
                          question.nvcc_version, supported_text(question)),
              {"Choose an architecture that this nvcc knows, e.g. --arch 90a.", decided_by});
}

tl::unexpected<Error> not_an_architecture(const std::string& where, const std::string& text) {
  return fail(
      Outcome::environment_error,
      fmt::format("{}: \"{}\" is not a GPU architecture; expected something like 9.0, 90, 90a or sm_90a", where, text),
      {decided_by});
}

// The names that TORCH_CUDA_ARCH_LIST takes beside numbers.
std::string number_of_family(const std::string& word) {
  static const std::map<std::string, std::string> families = {
      {"Turing", "7.5"}, {"Ampere", "8.0"}, {"Ada", "8.9"}, {"Hopper", "9.0"}, {"Blackwell", "10.0"}};
  auto const found = families.find(word);
  return found == families.end() ? word : found->second;
}

Result<std::vector<std::string>> parse_list(const ArchitectureQuestion& question) {
  std::vector<std::string> numbers;
  std::string words = question.torch_list;
  std::replace(words.begin(), words.end(), ';', ' ');
  std::replace(words.begin(), words.end(), ',', ' ');
  static const std::regex word_pattern(R"(\S+)");
  for (std::sregex_iterator it(words.begin(), words.end(), word_pattern), end; it != end; ++it) {
    std::string word = it->str();
    if (auto const plus = word.find("+PTX"); plus != std::string::npos) word.erase(plus);
    auto const number = parse_architecture(number_of_family(word));
    if (!number) return not_an_architecture("TORCH_CUDA_ARCH_LIST", word);
    if (!is_supported(question, *number)) {
      return refuse(question, fmt::format("TORCH_CUDA_ARCH_LIST=\"{}\"", question.torch_list), *number);
    }
    numbers.push_back(*number);
  }
  return numbers;
}

Result<Architecture> decide_by_list(const ArchitectureQuestion& question) {
  auto numbers = parse_list(question);
  if (!numbers) return fail(numbers.error());
  if (numbers->empty()) return not_an_architecture("TORCH_CUDA_ARCH_LIST", question.torch_list);
  auto const gpu = parse_architecture(question.gpu);
  auto best = numbers->end();
  for (auto it = numbers->begin(); it != numbers->end(); ++it) {
    if (gpu && plain_number(*it) != plain_number(*gpu)) continue;
    bool const better = best == numbers->end() || plain_number(*it) > plain_number(*best) || it->size() > best->size();
    if (better) best = it;
  }
  if (best == numbers->end()) {
    return fail(
        Outcome::environment_error,
        fmt::format("TORCH_CUDA_ARCH_LIST=\"{}\" does not hold the architecture of the GPU here, {}",
                    question.torch_list, question.gpu),
        {fmt::format("Unset TORCH_CUDA_ARCH_LIST, or add {} to it, or give --arch.", question.gpu), decided_by});
  }
  return Architecture{*best, "TORCH_CUDA_ARCH_LIST"};
}

Result<Architecture> decide_by_gpu(const ArchitectureQuestion& question) {
  auto number = parse_architecture(question.gpu);
  if (!number) return not_an_architecture("the GPU", question.gpu);
  if (!is_supported(question, *number)) return refuse(question, "the GPU", *number);
  if (plain_number(*number) >= first_with_variant && std::isdigit(static_cast<unsigned char>(number->back()))) {
    *number += 'a';
  }
  return Architecture{*number, "gpu"};
}

Result<Architecture> decide_without_variables(const ArchitectureQuestion& question) {
  if (!question.requested.empty()) {
    auto const number = parse_architecture(question.requested);
    if (!number) return not_an_architecture("--arch", question.requested);
    if (!is_supported(question, *number)) return refuse(question, "--arch " + question.requested, *number);
    return Architecture{*number, "--arch"};
  }
  if (!question.torch_list.empty()) return decide_by_list(question);
  if (!question.gpu.empty()) return decide_by_gpu(question);
  return fail(Outcome::environment_error, "there is no GPU here, so nothing says which architecture to compile for",
              {"Give one, e.g. --arch 90a for an H100 or H200.", "Or set TORCH_CUDA_ARCH_LIST, e.g. 9.0a."});
}

// Other flags in the variables are simply not passed on; one about the architecture would contradict the decision.
std::optional<Error> contradiction(const ArchitectureQuestion& question, const Architecture& decided) {
  static const std::regex flag(
      R"((?:-gencode|--generate-code|-arch|--gpu-architecture|-code|--gpu-code)(?:=|\s+)(\S+))");
  static const std::regex target(R"((?:sm|compute|lto)_([0-9]+[af]?))");
  for (auto const& [variable, value] : question.variables) {
    for (std::sregex_iterator it(value.begin(), value.end(), flag), end; it != end; ++it) {
      std::string const argument = (*it)[1].str();
      for (std::sregex_iterator t(argument.begin(), argument.end(), target); t != end; ++t) {
        std::string const number = (*t)[1].str();
        if (number == decided.number) continue;
        std::string const where = fmt::format("{}=\"{}\" in the environment: {}", variable, value, it->str());
        if (!is_supported(question, number)) return refuse(question, where, number).value();
        return Error(Outcome::environment_error,
                     fmt::format("{} contradicts {}, which {} decided", where, decided.name(), decided.from),
                     {fmt::format("Unset {}.", variable), decided_by});
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> Architecture::nvcc_flags() const {
  return {"-gencode", fmt::format("arch=compute_{0},code=sm_{0}", number)};
}

std::optional<std::string> parse_architecture(std::string_view text) {
  static const std::regex dotted(R"((\d{1,2})\.(\d)([af]?))");
  static const std::regex joined(R"((?:sm_|compute_)?(\d{2,3}[af]?))");
  std::cmatch match;
  if (std::regex_match(text.data(), text.data() + text.size(), match, dotted)) {
    return match[1].str() + match[2].str() + match[3].str();
  }
  if (std::regex_match(text.data(), text.data() + text.size(), match, joined)) return match[1].str();
  return std::nullopt;
}

Result<Architecture> decide_architecture(const ArchitectureQuestion& question) {
  auto decided = decide_without_variables(question);
  if (!decided) return decided;
  if (auto error = contradiction(question, *decided)) return fail(*error);
  return decided;
}

std::vector<int> parse_supported(std::string_view text) {
  std::vector<int> numbers;
  for (auto const& line : util::split_lines(text)) {
    if (auto const number = parse_architecture(util::trim(line))) numbers.push_back(plain_number(*number));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace cuda_agent::build
