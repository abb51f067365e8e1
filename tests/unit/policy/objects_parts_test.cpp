// The parts of the check of objects: names, rules, instructions.
#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "policy/objects_json.hpp"
#include "policy/objects_names.hpp"
#include "policy/objects_rules.hpp"
#include "policy/objects_x86.hpp"

namespace cuda_agent::policy {
namespace {

TEST(ObjectNames, AreQualifiedNamesAlone) {
  for (auto const& [demangled_name, expected] : std::initializer_list<std::pair<const char*, const char*>>{
           {"dlsym", "dlsym"},
           {"at::_ops::mm::call(at::Tensor const&, at::Tensor const&)", "at::_ops::mm::call"},
           {"float* at::TensorBase::data_ptr<float>() const", "at::TensorBase::data_ptr"},
           {"c10::complex<float> const* at::TensorBase::const_data_ptr<c10::complex<float>, 0>() const",
            "at::TensorBase::const_data_ptr"},
           {"c10::SmallVectorBase<unsigned int>::grow_pod(void const*, unsigned long)",
            "c10::SmallVectorBase::grow_pod"},
           {"std::basic_ostream<char, std::char_traits<char> >& std::operator<< <std::char_traits<char> "
            ">(std::basic_ostream<char, std::char_traits<char> >&, char const*)",
            "std::operator<<"},
           {"std::basic_ostream<char>::operator<<(int)", "std::basic_ostream::operator<<"},
           {"c10::operator<(c10::SymInt const&, int)", "c10::operator<"},
           {"decltype (nullptr) f::g<int>(int)", "f::g"},
           {"operator new(unsigned long)", "operator new"},
           {"operator delete[](void*)", "operator delete[]"},
           {"c10::Scalar::operator-() const", "c10::Scalar::operator-"},
           {"a::b::operator()(int) const", "a::b::operator()"},
           {"c10::DeviceTypeName[abi:cxx11](c10::DeviceType, bool)", "c10::DeviceTypeName"},
           {"(anonymous namespace)::f(int)", "(anonymous namespace)::f"},
           {"vtable for c10::Error", "vtable for c10::Error"},
           {"typeinfo for c10::Foo<int>", "typeinfo for c10::Foo"},
           {"non-virtual thunk to a::B::~B()", "a::B::~B"},
           {"my::operators(int)", "my::operators"},
       }) {
    EXPECT_EQ(qualified_name(demangled_name), expected) << demangled_name;
  }
}

TEST(ObjectNames, WhatIsNotMangledStaysAsItIs) {
  EXPECT_EQ(demangled("f"), "f");
  EXPECT_EQ(demangled("_Z1fi"), "f(int)");
}

const SymbolGroup* group_named(const ObjectRules& rules, const std::string& name) {
  for (auto const& group : rules.groups) {
    if (group.name == name) return &group;
  }
  return nullptr;
}

std::string rule_of(const std::string& group, const std::string& name) {
  auto const rules = object_rules();
  if (!rules) return rules.error().message;
  const SymbolGroup* const found = group_named(*rules, group);
  if (found == nullptr) return "no such group";
  const Refusal* const refusal = refusal_of(*found, name);
  return refusal == nullptr ? "allowed" : refusal->rule;
}

TEST(ObjectRules, RefusalsComeBeforeWhatIsAllowedAndTheRestIsRefused) {
  EXPECT_EQ(rule_of("torch", "at::_ops::empty_like::call"), "allowed");
  EXPECT_EQ(rule_of("torch", "at::_ops::empty_like::redispatch"), "torch-redispatch");
  EXPECT_EQ(rule_of("torch", "at::_ops::zeros::call"), "allowed");
  EXPECT_EQ(rule_of("torch", "at::_ops::sum::call"), "torch-compute");
  EXPECT_EQ(rule_of("torch", "at::native::getCudnnHandle"), "allowed");
  EXPECT_EQ(rule_of("torch", "at::native::softmax"), "torch-compute");
  EXPECT_EQ(rule_of("torch", "aoti_torch_cpu_mm_out"), "torch-jit");
  EXPECT_EQ(rule_of("torch", "something::new_in_torch"), "torch-internal");
  EXPECT_EQ(rule_of("the C library", "memcpy"), "allowed");
  EXPECT_EQ(rule_of("the C library", "__snprintf_chk"), "allowed");
  EXPECT_EQ(rule_of("the C library", "clone"), "process");
  EXPECT_EQ(rule_of("the C library", "memfd_create"), "memory-mapping");
  EXPECT_EQ(rule_of("the C library", "reboot"), "c-library");
  EXPECT_EQ(rule_of("the CUDA runtime", "cudaMemcpyAsync"), "allowed");
  EXPECT_EQ(rule_of("the CUDA runtime", "cudaMemcpyPeerAsync"), "cuda-sharing");
  EXPECT_EQ(rule_of("the CUDA runtime", "cudaIpcGetMemHandle"), "cuda-sharing");
  EXPECT_EQ(rule_of("the CUDA driver", "cuTensorMapEncodeIm2col"), "allowed");
  EXPECT_EQ(rule_of("the CUDA driver", "cuCtxCreate_v4"), "cuda-context");
  EXPECT_EQ(rule_of("cuBLAS", "cublasSgemm_v2"), "allowed");
  EXPECT_EQ(rule_of("cuBLAS", "cublasStrsm_v2"), "library");
  EXPECT_EQ(rule_of("cuBLAS", "cublasLtMatmul"), "allowed");
  EXPECT_EQ(rule_of("cuBLAS", "cublasLtMatrixTransform"), "library");
  EXPECT_EQ(rule_of("cuDNN", "cudnnConvolutionForward"), "allowed");
  EXPECT_EQ(rule_of("cuDNN", "cudnnReduceTensor"), "library");
  EXPECT_EQ(rule_of("Python", "PyDict_New"), "allowed");
  EXPECT_EQ(rule_of("Python", "PyImport_Import"), "python-code");
}

TEST(ObjectRules, WhatIsWrongInTheFileIsSaid) {
  std::string const all(objects_json);
  ASSERT_TRUE(parse_object_rules(all));
  auto const broken = [&](const std::string& what, const std::string& with) {
    std::string text = all;
    auto const at = text.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    text.replace(at, what.size(), with);
    auto const result = parse_object_rules(text);
    return result ? std::string() : result.error().message;
  };
  EXPECT_NE(broken("\"unknown\": {", "\"unknwon\": {").find("unknown key \"unknwon\""), std::string::npos);
  EXPECT_NE(broken("\"rest\": \"allow\"", "\"rest\": 1").find("is not a list"), std::string::npos);
  EXPECT_NE(broken("\"symbols\": [\"*\"]", "\"symbols\": [\"a\"]").find("does not match everything"),
            std::string::npos);
  EXPECT_NE(broken("\"instead\"", "\"insted\"").find("unknown key \"insted\""), std::string::npos);
  EXPECT_FALSE(broken("{", "").empty());
}

Instruction decode(std::initializer_list<unsigned> bytes) {
  std::vector<unsigned char> code;
  for (unsigned const byte : bytes) code.push_back(static_cast<unsigned char>(byte));
  return decode_x86(code.data(), code.size());
}

TEST(X86, InstructionsAreAsLongAsTheAssemblerMakesThem) {
  EXPECT_EQ(decode({0xc3}).size, 1U);                                            // ret
  EXPECT_EQ(decode({0xf3, 0x0f, 0x1e, 0xfa}).size, 4U);                          // endbr64
  EXPECT_EQ(decode({0x48, 0xb8, 0x0f, 0x05, 0, 0, 0, 0, 0, 0}).size, 10U);       // movabs
  EXPECT_EQ(decode({0x66, 0xc7, 0x44, 0x24, 0x08, 0x0f, 0x05}).size, 7U);        // movw, to the stack
  EXPECT_EQ(decode({0x48, 0x8d, 0x3d, 0x0f, 0x05, 0, 0}).size, 7U);              // lea, from rip
  EXPECT_EQ(decode({0x8b, 0x04, 0x8d, 0x0f, 0x05, 0, 0}).size, 7U);              // mov, no base
  EXPECT_EQ(decode({0xf6, 0x04, 0x24, 0x0f}).size, 4U);                          // testb
  EXPECT_EQ(decode({0xf7, 0xd8}).size, 2U);                                      // neg
  EXPECT_EQ(decode({0xc5, 0xf8, 0x77}).size, 3U);                                // vzeroupper
  EXPECT_EQ(decode({0xc4, 0xe3, 0x7d, 0x18, 0xc0, 0x01}).size, 6U);              // vinsertf128
  EXPECT_EQ(decode({0x62, 0xf1, 0x7c, 0x48, 0x10, 0x44, 0x24, 0x01}).size, 8U);  // vmovups zmm
  EXPECT_EQ(decode({0x62, 0xf3, 0xfd, 0x48, 0x1b, 0xc1, 0x01}).size, 7U);        // vextractf64x4
  EXPECT_EQ(decode({0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08}).size, 6U);              // palignr
  EXPECT_EQ(decode({0x66, 0x66, 0x48, 0xe8, 0, 0, 0, 0}).size, 8U);              // call, padded
}

TEST(X86, CallsOfTheOperatingSystemAreSeenAndNothingElse) {
  EXPECT_EQ(decode({0x0f, 0x05}).kernel_call, KernelCall::syscall);
  EXPECT_EQ(decode({0x0f, 0x34}).kernel_call, KernelCall::sysenter);
  EXPECT_EQ(decode({0xcd, 0x80}).kernel_call, KernelCall::int_0x80);
  EXPECT_EQ(decode({0xcd, 0x03}).kernel_call, KernelCall::none);
  EXPECT_EQ(decode({0xb8, 0x0f, 0x05, 0xcd, 0x80}).kernel_call, KernelCall::none);
  EXPECT_EQ(decode({0xc5, 0xf8, 0x05, 0xc0}).kernel_call, KernelCall::none);
}

TEST(X86, WhatIsCutOffOrInvalidHasNoLength) {
  EXPECT_EQ(decode({}).size, 0U);
  EXPECT_EQ(decode({0x0f}).size, 0U);
  EXPECT_EQ(decode({0xe8, 0, 0, 0}).size, 0U);
  EXPECT_EQ(decode({0x06}).size, 0U);
  EXPECT_EQ(
      decode({0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x90}).size,
      0U);
}

}  // namespace
}  // namespace cuda_agent::policy
