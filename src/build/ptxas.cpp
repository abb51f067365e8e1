#include "build/ptxas.hpp"

#include <cstdlib>
#include <memory>
#include <regex>

#include <cxxabi.h>

#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

std::int64_t number(const std::ssub_match& match) { return std::strtoll(match.str().c_str(), nullptr, 10); }

void read_properties(const std::string& line, KernelResources& kernel) {
  static const std::regex frame(R"((\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads)");
  static const std::regex registers(R"(Used (\d+) registers)");
  static const std::regex shared(R"((\d+)(?:\+(\d+))? bytes smem)");
  std::smatch match;
  if (std::regex_search(line, match, frame)) {
    kernel.stack_frame = number(match[1]);
    kernel.spill_stores = number(match[2]);
    kernel.spill_loads = number(match[3]);
  }
  if (std::regex_search(line, match, registers)) kernel.registers = number(match[1]);
  if (std::regex_search(line, match, shared)) kernel.shared_memory = number(match[1]) + number(match[2]);
}

}  // namespace

std::string demangle(const std::string& name) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

std::vector<KernelResources> parse_ptxas(std::string_view output) {
  static const std::regex entry(R"(ptxas info\s*: Compiling entry function '([^']*)' for '([^']*)')");
  static const std::regex function(R"(Function properties for (\S+))");
  std::vector<KernelResources> kernels;
  std::string current;  // mangled name of the entry being described
  bool about_entry = false;
  for (auto const& line : util::split_lines(output)) {
    std::smatch match;
    if (std::regex_search(line, match, entry)) {
      KernelResources kernel;
      current = match[1];
      kernel.name = demangle(current);
      kernel.architecture = match[2];
      kernels.push_back(std::move(kernel));
      about_entry = true;
    } else if (std::regex_search(line, match, function)) {
      about_entry = match[1] == current;  // device functions that were not inlined are described as well
    } else if (about_entry && !kernels.empty()) {
      read_properties(line, kernels.back());
    }
  }
  return kernels;
}

}  // namespace cuda_agent::build
