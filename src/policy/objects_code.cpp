// Instructions that call the operating system without a function of the C library.
//
// Bytes alone prove nothing: 0f 05 is also part of longer instructions and of constants. So a function is decoded from
// its first byte to its last, and one that cannot be decoded is left at the first doubt.
#include <elf.h>
#include <spdlog/fmt/fmt.h>

#include "policy/objects_input.hpp"
#include "policy/objects_names.hpp"
#include "policy/objects_x86.hpp"

namespace cuda_agent::policy {

namespace {

const char* name_of(KernelCall call) {
  switch (call) {
    case KernelCall::syscall:
      return "syscall";
    case KernelCall::sysenter:
      return "sysenter";
    case KernelCall::int_0x80:
      return "int 0x80";
    case KernelCall::none:
      break;
  }
  return "";
}

KernelCall first_call(const util::ElfBytes& code) {
  for (std::uint64_t at = 0; at < code.size;) {
    auto const instruction = decode_x86(code.data + at, code.size - at);
    if (instruction.size == 0) return KernelCall::none;
    if (instruction.kernel_call != KernelCall::none) return instruction.kernel_call;
    at += instruction.size;
  }
  return KernelCall::none;
}

util::ElfBytes code_of(const ObjectFile& object, const util::ElfSymbol& symbol) {
  if (symbol.type != STT_FUNC || !symbol.is_defined() || symbol.section >= object.sections.size()) return {};
  auto const& section = object.sections[symbol.section];
  if (section.type != SHT_PROGBITS || (section.flags & SHF_EXECINSTR) == 0) return {};
  if (symbol.value > section.bytes.size || section.bytes.size - symbol.value < symbol.size) return {};
  return {section.bytes.data + symbol.value, symbol.size};
}

}  // namespace

void find_kernel_calls(const ObjectInput& input, std::vector<ObjectFinding>& findings) {
  for (auto const& object : input.objects()) {
    if (object.file.machine() != EM_X86_64) continue;
    for (auto const& symbol : object.symbols) {
      auto const call = first_call(code_of(object, symbol));
      if (call == KernelCall::none) continue;
      report(findings, "system-call", demangled(symbol.name), {object.source}, "defines",
             fmt::format("calls the operating system directly (instruction {})", name_of(call)),
             "Nothing in a kernel needs it.");
    }
  }
}

}  // namespace cuda_agent::policy
