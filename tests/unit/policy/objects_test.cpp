// What the policy refuses in compiled code, and the look-alikes that it must let pass.
#include "policy/objects.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "unit/policy/built.hpp"
#include "util/environment.hpp"
#include "util/files.hpp"

namespace cuda_agent::policy {
namespace {

using build::Target;
using test::Files;
using test::findings_in;
using test::findings_in_library;
using test::listed;

struct Expected {
  const char* rule;
  const char* symbol;  ///< a part of it
  const char* source;
};

bool fits(const ObjectFinding& finding, const Expected& expected) {
  return finding.rule == expected.rule && finding.symbol.find(expected.symbol) != std::string::npos &&
         finding.used_by == std::vector<std::string>{expected.source} &&
         finding.message.find(finding.symbol) != std::string::npos &&
         finding.message.find(expected.source) != std::string::npos && !finding.hint.empty();
}

/// Each expectation is met by a finding, and each finding meets one.
void expect_exactly(const std::vector<ObjectFinding>& findings, const std::vector<Expected>& expected) {
  for (auto const& one : expected) {
    EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [&](auto const& found) { return fits(found, one); }))
        << one.rule << ": " << one.symbol << " is not found in " << one.source;
  }
  for (auto const& found : findings) {
    EXPECT_TRUE(std::any_of(expected.begin(), expected.end(), [&](auto const& one) { return fits(found, one); }))
        << "not expected: " << listed({found});
  }
}

constexpr const char* refused_torch = R"cpp(
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/mm_cpu_dispatch.h>
#include <ATen/ops/mv_ops.h>
#include <ATen/record_function.h>
#include <torch/library.h>
#include <pybind11/eval.h>
#include "../binding_registry.h"

  namespace at::native {
  TORCH_API Tensor relu(const Tensor&);
  }
  namespace torch::jit {
  TORCH_API bool setTensorExprFuserEnabled(bool);
  }
#define PASTE(a, b) at::a##b

  static torch::Tensor refused(const torch::Tensor& x, const torch::Tensor& y) {
    torch::Tensor out = at::matmul(x, y);
    out = torch::relu(x);
    out = x.mm(y);
    torch::Tensor (*const pointer)(const torch::Tensor&, const torch::Tensor&) = &at::bmm;
    out = pointer(x, y);
    out = PASTE(add, cmul)(out, x, y, 1);
    out = x + y;
    out.mul_(y);
    out.relu_();
    out = x.index({y});
    out = torch::cat({x, y});
    out = at::_ops::mv::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), x, y);
    out = at::native::relu(x);
    out = at::cpu::mm(x, y);
    { at::RecordFunctionGuard const off(false); }
    at::clearCallbacks();
    c10::Dispatcher::singleton().findSchema({"aten::mm", ""});
    torch::jit::setTensorExprFuserEnabled(false);
    at::globalContext().setAllowTF32CuBLAS(true);
    at::set_num_threads(1);
    at::intraop_launch([] {});
    c10::impl::IncludeDispatchKeyGuard const keys(c10::DispatchKeySet(c10::DispatchKey::CPU));
    pybind11::exec("pass");
    pybind11::module_::import("torch").attr("matmul")(x, y);
    return out;
  }

  static void bind_refused(pybind11::module& m) { m.def("refused", &refused); }
  REGISTER_BINDING(refused, bind_refused);
)cpp";

TEST(RefusedObjects, ComputingInTorchIsNamedWhateverItIsCalledThrough) {
  constexpr const char* at = "kernels/refused_binding.cpp";
  expect_exactly(findings_in({{at, refused_torch}}, Target::cpu),
                 {{"torch-compute", "at::_ops::matmul::call(", at},
                  {"torch-compute", "at::_ops::relu::call(", at},
                  {"torch-compute", "at::_ops::mm::call(", at},
                  {"torch-compute", "at::_ops::bmm::call(", at},
                  {"torch-compute", "at::_ops::addcmul::call(", at},
                  {"torch-compute", "at::_ops::add_Tensor::call(", at},
                  {"torch-compute", "at::_ops::mul__Tensor::call(", at},
                  {"torch-compute", "at::_ops::relu_::call(", at},
                  {"torch-compute", "at::Tensor::index(", at},
                  {"torch-compute", "at::_ops::cat::call(", at},
                  {"torch-redispatch", "at::_ops::mv::redispatch(", at},
                  {"torch-compute", "at::native::relu(", at},
                  {"torch-compute", "at::cpu::mm(", at},
                  {"torch-recorder", "at::isRecordFunctionEnabled()", at},
                  {"torch-recorder", "at::enableRecordFunction(bool)", at},
                  {"torch-recorder", "at::clearCallbacks()", at},
                  {"torch-redispatch", "c10::Dispatcher::", at},
                  {"torch-redispatch", "c10::OperatorHandle::", at},
                  {"torch-jit", "torch::jit::setTensorExprFuserEnabled(bool)", at},
                  {"torch-state", "at::Context::setAllowTF32CuBLAS(bool)", at},
                  {"torch-state", "at::set_num_threads(int)", at},
                  {"thread", "at::intraop_launch(", at},
                  {"torch-state", "c10::impl::IncludeDispatchKeyGuard::", at},
                  {"python-code", "PyRun_String", at},
                  {"python-code", "PyEval_GetGlobals", at},
                  {"python-code", "PyImport_ImportModule", at}});
}

constexpr const char* through_dispatcher = R"cpp(
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>
#include "../binding_registry.h"
  static at::Tensor relu(const at::Tensor& x) {
    static auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow("aten::relu", "").typed<at::Tensor(const at::Tensor&)>();
    return op.call(x);
  }
  static void bind_relu(pybind11::module& m) { m.def("relu", &relu); }
  REGISTER_BINDING(relu, bind_relu);
)cpp";

TEST(RefusedObjects, WhatAHeaderBringsAlongComesAfterWhatWasCalled) {
  auto const findings = findings_in({{"kernels/refused_binding.cpp", through_dispatcher}}, Target::cpu);
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().rule, "torch-redispatch");
  EXPECT_EQ(findings.back().rule, "unknown-symbol");
}

constexpr const char* refused_system = R"cpp(
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
  extern char** environ;

  void* loading() {
    void* const self = dlopen(nullptr, RTLD_NOW);
    return dlsym(self, "mm");
  }
  void processes() {
    if (fork() == 0) execlp("true", "true", nullptr);
    pid_t child = 0;
    posix_spawn(&child, "/bin/true", nullptr, nullptr, nullptr, environ);
    if (system("true") != 0) _exit(1);
    popen("true", "r");
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    prctl(PR_SET_DUMPABLE, 1);
    kill(child, SIGTERM);
  }
  void threads() {
    pthread_t thread;
    pthread_create(&thread, nullptr, nullptr, nullptr);
    std::thread([] {}).detach();
  }
  void memory() { mprotect(mmap(nullptr, 1, 0, 0, -1, 0), 1, PROT_EXEC); }
  void files() {
    if (write(open("/tmp/x", O_RDONLY), "x", 1) != 1) fopen("/tmp/y", "w");
    std::ofstream("/tmp/z") << 1;
  }
  void rest() {
    socket(AF_INET, SOCK_STREAM, 0);
    syscall(39);
    std::signal(SIGTERM, SIG_IGN);
    struct sigaction action {};
    sigaction(SIGINT, &action, nullptr);
    setenv("A", "B", 1);
    getpid();
    dprintf(1, "[PASS]");
  }
  long directly() {
    long result;
    asm volatile("syscall" : "=a"(result) : "0"(39) : "rcx", "r11", "memory");
    return result;
  }
  __attribute__((constructor)) static void at_load() { rest(); }
  __attribute__((target_clones("avx2", "default"))) int two_ways(int x) { return 3 * x; }
  extern "C" __attribute__((visibility("default"))) int puts(const char*) { return 0; }
  __attribute__((visibility("default"))) int shared_by_all(int x) { return x; }
  extern "C" __attribute__((visibility("default"), weak)) int weak_one() { return 0; }
  namespace at {
  __attribute__((visibility("default"), weak)) int get_num_threads() { return 1; }
  }  // namespace at
)cpp";

TEST(RefusedObjects, ReachingPastTheFunctionThatIsCalled) {
  constexpr const char* at = "kernels/refused_cpu.cpp";
  expect_exactly(
      findings_in({{at, refused_system}, {"kernels/nothing_binding.cpp", test::nothing_binding}}, Target::cpu),
      {{"dynamic-loading", "dlopen", at},
       {"dynamic-loading", "dlsym", at},
       {"process", "fork", at},
       {"process", "execlp", at},
       {"process", "posix_spawn", at},
       {"process", "system", at},
       {"process", "popen", at},
       {"process", "_exit", at},
       {"process-control", "ptrace", at},
       {"process-control", "prctl", at},
       {"process-control", "kill", at},
       {"thread", "pthread_create", at},
       {"thread", "std::thread::", at},
       {"memory-mapping", "mmap", at},
       {"memory-mapping", "mprotect", at},
       {"file", "open", at},
       {"file", "write", at},
       {"file", "fopen", at},
       {"file", "dprintf", at},
       {"file", "std::basic_ofstream", at},
       {"file", "std::basic_filebuf", at},
       {"file", "std::__basic_file", at},
       {"network", "socket", at},
       {"system-call", "syscall", at},
       {"signal", "signal", at},
       {"signal", "sigaction", at},
       {"environment", "setenv", at},
       {"environment", "environ", at},
       {"c-library", "getpid", at},
       {"system-call", "directly()", at},
       {"constructor", "at_load()", at},
       {"ifunc", "two_ways", at},
       {"interposition", "puts", at},
       {"export", "shared_by_all(int)", at},
       {"interposition", "at::get_num_threads()", at},
       {"export", "weak_one", at}});
}

constexpr const char* refused_cuda = R"cpp(
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <cudnn.h>
  extern "C" int cusparseCreate(void**);

  __global__ void nothing() {}
  void refused(void* pointer, cudaStream_t stream) {
    nothing<<<1, 1, 0, stream>>>();
    cudaIpcMemHandle_t handle{};
    cudaIpcOpenMemHandle(&pointer, handle, 0);
    cudaDeviceReset();
    cudaProfilerStart();
    cudaDriverEntryPointQueryResult result{};
    cudaGetDriverEntryPointByVersion("cuCtxCreate", &pointer, 12000, 0, &result);
    cudaLaunchHostFunc(stream, nullptr, nullptr);
    cudaImportExternalMemory(nullptr, nullptr);
    cudaMemcpyPeer(pointer, 0, pointer, 1, 1);
    cuCtxSetCurrent(nullptr);
    cuMemCreate(nullptr, 1, nullptr, 0);
    cuModuleLoadData(nullptr, nullptr);
    cublasSaxpy(nullptr, 1, nullptr, nullptr, 1, nullptr, 1);
    cudnnSoftmaxForward(nullptr, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL, nullptr, nullptr, pointer, nullptr,
                        nullptr, pointer);
    cudnnBackendExecute(nullptr, nullptr, nullptr);
    cusparseCreate(nullptr);
  }
)cpp";

TEST(RefusedObjects, ContextsOtherProcessesAndOtherLibraries) {
  if (auto const reason = test::reason_not_to_build(Target::cuda); !reason.empty()) GTEST_SKIP() << reason;
  constexpr const char* at = "kernels/refused.cu";
  constexpr const char* clock = "kernels/clock.cpp";
  expect_exactly(
      findings_in(
          {{at, refused_cuda},
           {clock,
            "extern \"C\" __attribute__((visibility(\"default\"))) int cudaEventElapsedTime(float* time, void*, "
            "void*) { *time = 0; return 0; }"},
           {"kernels/nothing_binding.cpp", test::nothing_binding}},
          Target::cuda),
      {{"cuda-sharing", "cudaIpcOpenMemHandle", at},
       {"cuda-context", "cudaDeviceReset", at},
       {"cuda-profiler", "cudaProfilerStart", at},
       {"cuda-entry-point", "cudaGetDriverEntryPointByVersion", at},
       {"cuda-host-callback", "cudaLaunchHostFunc", at},
       {"cuda-sharing", "cudaImportExternalMemory", at},
       {"cuda-sharing", "cudaMemcpyPeer", at},
       {"cuda-context", "cuCtxSetCurrent", at},
       {"cuda-sharing", "cuMemCreate", at},
       {"cuda-driver", "cuModuleLoadData", at},
       {"library", "cublasSaxpy", at},
       {"library", "cudnnSoftmaxForward", at},
       {"library", "cudnnBackendExecute", at},
       {"library", "cusparseCreate", at},
       {"interposition", "cudaEventElapsedTime", clock}});
}

struct Linkage {
  const char* rule;
  const char* symbol;
  const char* text;
  std::vector<std::string> flags;
};

TEST(RefusedObjects, WaysOfLinkingThatNoCompilerAsksFor) {
  for (auto const& one : std::vector<Linkage>{
           {"executable-stack", "stack", "asm(\".section .note.GNU-stack,\\\"x\\\",@progbits\\n.text\");", {}},
           {"writable-code", "writable", "asm(\".section .both,\\\"awx\\\",@progbits\\nnop\\n.text\");", {}},
           {"text-relocation", "relocations", "int f() { return 1; }\nasm(\".text\\n.quad _Z1fv\");", {}},
           {"constructor", ".init", "asm(\".section .init,\\\"ax\\\",@progbits\\nnop\\n.text\");", {}},
           {"constructor",
            ".ctors",
            "static int f() { return 1; }\n"
            "__attribute__((section(\".ctors\"), used)) static int (*const now)() = f;",
            {}},
           {"constructor",
            "code without a name",
            "asm(\".section .init_array,\\\"aw\\\",@init_array\\n.quad .Lhere\\n"
            ".text\\n.Lhere: ret\");",
            {}},
           {"export",
            "unique",
            "asm(\".data\\n.globl unique\\n.type unique,@gnu_unique_object\\nunique: .quad "
            "0\\n.size unique,8\\n.text\");",
            {}},
           {"load-order", "/tmp", "int x;", {"-Wl,-rpath,/tmp"}},
           {"load-order", "DT_FLAGS_1", "int x;", {"-Wl,-z,interpose"}},
           {"library",
            "libcrypt",
            "extern \"C\" char* crypt(const char*, const char*);\n"
            "char* f() { return crypt(\"\", \"\"); }",
            {"-l:libcrypt.so.1"}},
           {"unknown-symbol",
            "nowhere",
            "extern \"C\" __attribute__((weak)) int nowhere();\n"
            "int f() { return nowhere ? nowhere() : 0; }",
            {}},
       }) {
    auto const findings = findings_in_library(one.text, one.flags);
    ASSERT_FALSE(findings.empty()) << one.rule << ": " << one.symbol;
    for (auto const& finding : findings) {
      EXPECT_TRUE(finding.rule == one.rule ||
                  (std::string(one.rule) == "library" && finding.message.find("libcrypt") != std::string::npos))
          << one.rule << ": " << listed({finding});
    }
    EXPECT_NE(listed(findings).find(one.symbol), std::string::npos) << listed(findings);
  }
}

TEST(AllowedObjects, AConstantThatLooksLikeASystemCall) {
  EXPECT_EQ(listed(findings_in_library("long f(long x) { return x * 0x050f050f + 0x80cd340f; }", {})), "");
}

constexpr const char* allowed_binding = R"cpp(
#include <atomic>
#include <chrono>
#include <deque>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <shared_mutex>
#include <sstream>
#include <thread>
#include <unordered_map>
#include <ATen/Parallel.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>
#include "../binding_registry.h"

  static std::mutex lock;
  static std::unordered_map<std::string, torch::Tensor> cache;

  static torch::Tensor shapes(const torch::Tensor& x) {
    torch::Tensor y = torch::empty({x.size(0), x.numel()}, x.options().dtype(torch::kFloat16).device(x.device()));
    y = torch::zeros({2}, x.options());
    y = torch::full({2}, 3.0, x.options());
    y = torch::empty_like(x, x.options(), at::MemoryFormat::ChannelsLast);
    y = at::empty_strided({1}, {1}, x.options());
    y = x.new_empty({2});
    y = x.contiguous().view({-1}).reshape({1, -1}).transpose(0, 1).permute({1, 0}).unsqueeze(0).squeeze(0).expand(
        {2, -1});
    y = x.select(0, 0).narrow(0, 0, 1).slice(0, 0, 1).flatten();
    y = x[0].as_strided({1}, {1});
    y = x.to(torch::kFloat).to(x.device()).clone().detach();
    y.copy_(x);
    y.zero_();
    y = at::from_blob(x.data_ptr(), {1}, x.options());
    y = torch::tensor({1.0f, 2.0f});
    double const first = x.item<double>() + x.stride(0) + x.element_size() + x.is_contiguous() + x.requires_grad();
    return first > 0 ? x : y;
  }

  static torch::Tensor checks(const torch::Tensor& x, const std::optional<torch::Tensor>& bias) {
    torch::NoGradGuard const guard;
    TORCH_CHECK(x.dim() == 2 && x.defined(), "x is ", x.sizes(), " ", x.strides(), " ", x.dtype(), " ", x.device(), " ",
                x.scalar_type(), " ", 1, " ", 2.5, " ", std::string("text"), " ", x.layout());
    TORCH_CHECK_VALUE(x.is_floating_point(), "x must hold numbers");
    TORCH_INTERNAL_ASSERT(!bias || bias->defined());
    TORCH_WARN_ONCE("slow path for ", x.sizes());
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "checks", [&] {
      x.accessor<scalar_t, 2>();
      x.packed_accessor32<scalar_t, 2>();
      x.mutable_data_ptr<scalar_t>()[0] = *x.const_data_ptr<scalar_t>();
    });
    if (x.numel() < 0) throw std::runtime_error("negative " + std::to_string(x.numel()));
    return x;
  }

  static torch::Tensor standard_library(const torch::Tensor& x) {
    std::lock_guard<std::mutex> const held(lock);
    auto& kept = cache["x"];
    if (!kept.defined()) kept = torch::zeros_like(x);
    static std::once_flag once;
    std::call_once(once, [] {});
    static std::shared_mutex shared;
    std::shared_lock<std::shared_mutex> const reading(shared);
    std::map<int, std::vector<std::string>> lists{{1, {"a"}}};
    std::set<long> const numbers{1, 2};
    std::deque<float> queue(3);
    auto const pointer = std::make_shared<std::atomic<long>>(1);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    queue.push_back(normal(random));
    std::ostringstream text;
    text << std::setw(4) << x.sizes() << numbers.size() << pointer->load();
    auto const now = std::chrono::steady_clock::now().time_since_epoch().count();
    std::cout << text.str() << now << std::endl;
    std::cerr << lists[1][0] << "\n";
    std::printf("%zu\n", queue.size());
    std::vector<int> sorted(9 + std::thread::hardware_concurrency());
    std::sort(sorted.begin(), sorted.end());
    std::function<int()> const function = [&] { return sorted[0]; };
    return function() == 0 ? kept : x;
  }

  static torch::Tensor on_the_cpu(const torch::Tensor& x) {
    torch::Tensor out = torch::empty_like(x);
    float* const to = out.data_ptr<float>();
    const float* const from = x.data_ptr<float>();
    at::parallel_for(0, x.numel(), 1024, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = from[i];
    });
    return out;
  }

  static pybind11::dict dictionary(const torch::Tensor& x) {
    pybind11::dict result;
    result["x"] = x;
    result["names"] = std::vector<std::string>{"a"};
    return result;
  }
  static pybind11::list list(const torch::Tensor& x) {
    pybind11::list result;
    result.append(x);
    return result;
  }
  static std::tuple<torch::Tensor, double> two(const torch::Tensor& x) { return {x, 1.5}; }
  static pybind11::object nothing(pybind11::object x, pybind11::args, pybind11::kwargs) {
    return x.is_none() ? pybind11::none() : pybind11::cast(x.cast<std::vector<int64_t>>());
  }
  static std::vector<torch::Tensor> several(std::vector<torch::Tensor> x, at::IntArrayRef, at::Scalar, at::ScalarType) {
    return x;
  }

  enum class Kind { fast };
  struct Plan {
    long calls = 0;
    torch::Tensor run(torch::Tensor x) {
      ++calls;
      return x;
    }
  };

  static void bind_allowed(pybind11::module& m) {
    m.doc() = "what kernels need";
    m.def("shapes", &shapes, pybind11::arg("x"));
    m.def("checks", &checks, pybind11::arg("x"), pybind11::arg("bias") = pybind11::none());
    m.def("standard_library", &standard_library, pybind11::call_guard<pybind11::gil_scoped_release>());
    m.def("on_the_cpu", &on_the_cpu);
    m.def("dictionary", &dictionary);
    m.def("list", &list);
    m.def("two", &two);
    m.def("nothing", &nothing);
    m.def("several", &several);
    m.attr("version") = 1;
    pybind11::enum_<Kind>(m, "Kind").value("fast", Kind::fast).export_values();
    pybind11::class_<Plan, std::shared_ptr<Plan>>(m, "Plan").def(pybind11::init<>()).def("run", &Plan::run);
  }
  REGISTER_BINDING(allowed, bind_allowed);
)cpp";

constexpr const char* allowed_optimised = R"cpp(
#include <ATen/Parallel.h>
#include <torch/types.h>
  torch::Tensor doubled(const torch::Tensor& x) {
    TORCH_CHECK(x.is_contiguous(), "doubled: x is ", x.sizes(), " with strides ", x.strides());
    torch::Tensor out = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "doubled", [&] {
      auto* const to = out.data_ptr<scalar_t>();
      const auto* const from = x.const_data_ptr<scalar_t>();
      at::parallel_for(0, x.numel(), 1024, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = 2 * from[i];
      });
    });
    return out.view({-1}).unsqueeze(0);
  }
)cpp";

class AllowedWithCompiler : public testing::TestWithParam<const char*> {};

TEST_P(AllowedWithCompiler, WhatBindingsAndKernelsOnTheCpuNeed) {
  if (!util::find_executable(GetParam())) GTEST_SKIP() << "no " << GetParam() << " here";
  EXPECT_EQ(listed(findings_in(
                {{"kernels/allowed_binding.cpp", allowed_binding}, {"kernels/optimised_cpu.cpp", allowed_optimised}},
                Target::cpu, GetParam())),
            "");
}

INSTANTIATE_TEST_SUITE_P(Objects, AllowedWithCompiler, testing::Values("g++", "clang++"),
                         [](auto const& compiler) { return std::string(compiler.param) == "g++" ? "Gcc" : "Clang"; });

constexpr const char* allowed_cuda = R"cpp(
#include <cooperative_groups.h>
#include <cub/cub.cuh>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn.h>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>

  __constant__ float table[4];
  __global__ void kernel(float* x) {
    x[threadIdx.x] += table[0];
    cooperative_groups::this_grid().sync();
    if (x[0] < 0) printf("%f", x[0]);
  }

  float allowed(float* x, int count, cudaStream_t stream) {
    auto const policy = thrust::cuda::par.on(stream);
    thrust::sort(policy, x, x + count);
    float result = thrust::reduce(policy, x, x + count);
    std::size_t bytes = 0;
    void* scratch = nullptr;
    cub::DeviceReduce::Sum(scratch, bytes, x, x, count, stream);
    cudaMallocAsync(&scratch, bytes, stream);
    cub::DeviceScan::ExclusiveSum(scratch, bytes, x, x, count, stream);
    cudaFreeAsync(scratch, stream);
    cudaMemcpyToSymbol(table, x, sizeof(table));
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
    int blocks = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 32, 0);
    void* arguments[] = {&x};
    cudaLaunchCooperativeKernel(reinterpret_cast<void*>(kernel), dim3(blocks), dim3(32), arguments, 0, stream);
    cudaLaunchConfig_t config{};
    cudaLaunchKernelEx(&config, kernel, x);
    cudaStream_t side = nullptr;
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEvent_t event = nullptr;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(side, event, 0);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t graph_exec = nullptr;
    cudaStreamBeginCapture(side, cudaStreamCaptureModeThreadLocal);
    cudaStreamEndCapture(side, &graph);
    cudaGraphInstantiate(&graph_exec, graph, 0);
    cudaGraphLaunch(graph_exec, side);
    CUtensorMap map;
    cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, x, nullptr, nullptr, nullptr, nullptr,
                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    cublasHandle_t blas = nullptr;
    cublasCreate(&blas);
    cublasSetStream(blas, stream);
    cublasSetMathMode(blas, CUBLAS_TF32_TENSOR_OP_MATH);
    cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &result, x, 1, x, 1, &result, x, 1);
    cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &result, x, CUDA_R_32F, 1, x, CUDA_R_32F, 1, &result, x,
                 CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    cudnnHandle_t dnn = nullptr;
    cudnnCreate(&dnn);
    cudnnConvolutionDescriptor_t convolution = nullptr;
    cudnnCreateConvolutionDescriptor(&convolution);
    cudnnTensorDescriptor_t tensor = nullptr;
    cudnnCreateTensorDescriptor(&tensor);
    cudnnFilterDescriptor_t filter = nullptr;
    cudnnCreateFilterDescriptor(&filter);
    cudnnConvolutionForward(dnn, &result, tensor, x, filter, x, convolution, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                            x, 0, &result, tensor, x);
    cudaDeviceSynchronize();
    return result;
  }
)cpp";

constexpr const char* allowed_cuda_binding = R"cpp(
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>
#include "../binding_registry.h"

  float allowed(float* x, int count, cudaStream_t stream);

  static double run(const torch::Tensor& x) {
    c10::cuda::CUDAGuard const guard(x.device());
    at::cuda::OptionalCUDAGuard const optional(at::device_of(x));
    auto const stream = c10::cuda::getCurrentCUDAStream();
    auto const side = c10::cuda::getStreamFromPool();
    c10::cuda::CUDAStreamGuard const streams(side);
    at::cuda::CUDAEvent event;
    event.record(stream);
    event.block(side);
    x.record_stream(side);
    auto const scratch = c10::cuda::CUDACachingAllocator::get()->allocate(1024);
    TORCH_CHECK(at::cuda::getCurrentCUDABlasHandle() != nullptr && scratch.get() != nullptr, "no handle");
    TORCH_CHECK(at::cuda::getCurrentDeviceProperties()->multiProcessorCount > 0, "no processors");
    C10_CUDA_CHECK(cudaStreamSynchronize(stream));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    AT_CUDA_CHECK(cudaGetLastError());
    return allowed(x.data_ptr<float>(), static_cast<int>(x.numel()), stream);
  }

  static void bind_run(pybind11::module& m) { m.def("run", &run); }
  REGISTER_BINDING(run, bind_run);
)cpp";

TEST(AllowedObjects, WhatKernelsOnTheGpuNeed) {
  if (auto const reason = test::reason_not_to_build(Target::cuda); !reason.empty()) GTEST_SKIP() << reason;
  EXPECT_EQ(
      listed(findings_in({{"kernels/allowed.cu", allowed_cuda}, {"kernels/allowed_binding.cpp", allowed_cuda_binding}},
                         Target::cuda)),
      "");
}

TEST(AllowedObjects, TheExampleOnTheCpu) {
  EXPECT_EQ(listed(findings_in(test::kernels_of("agent_workdir"), Target::cpu)), "");
}

TEST(AllowedObjects, TheTinyTaskOfTheEndToEndTests) {
  EXPECT_EQ(listed(findings_in({{"kernels/tiny_cpu.cpp", test::harness_text("TINY_KERNEL")},
                                {"kernels/tiny_binding.cpp", test::harness_text("TINY_BINDING")}},
                               Target::cpu)),
            "");
}

class AllowedWorkspace : public testing::TestWithParam<const char*> {};

TEST_P(AllowedWorkspace, ForTheGpu) {
  if (auto const reason = test::reason_not_to_build(Target::cuda); !reason.empty()) GTEST_SKIP() << reason;
  EXPECT_EQ(listed(findings_in(test::kernels_of(GetParam()), Target::cuda)), "");
}

INSTANTIATE_TEST_SUITE_P(Objects, AllowedWorkspace,
                         testing::Values("agent_workdir", "kernels/add_rms_norm", "kernels/bias_gelu",
                                         "kernels/depthwise_conv", "kernels/layer_norm", "kernels/linear_relu",
                                         "kernels/row_norm", "kernels/softmax"),
                         [](auto const& folder) { return std::filesystem::path(folder.param).filename().string(); });

TEST(Objects, AFileThatCannotBeReadIsNamed) {
  auto const result = check_objects({"/nonexistent/cuda_extension.so", {}, {}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().outcome, Outcome::environment_error);
  EXPECT_NE(result.error().message.find("/nonexistent/cuda_extension.so"), std::string::npos);
}

}  // namespace
}  // namespace cuda_agent::policy
