"""What a candidate can do to a GPU, and that the next ask does not feel it."""

import os

import pytest

from harness import NO_POLICY

from gpu_harness import gpu_lock, judged, memory_in_use, relu_workspace

# Ten for a release: CUDA_AGENT_GPU_ROUNDS=10.
ROUNDS = range(int(os.environ.get("CUDA_AGENT_GPU_ROUNDS", "1")))

SPIN = "long long from = clock64(); while (clock64() - from < 4000000LL) {}"
STRAY = """static cudaStream_t stray() {
  static cudaStream_t s = [] { cudaStream_t t; cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking); return t; }();
  return s;
}
"""


def in_launcher(text):
    """A launcher that does `text` first."""
    return lambda source: source.replace("  relu<<<", f"  {text}\n  relu<<<", 1)


def nothing(source):
    return source


# name: what goes wrong in the kernel, what in its launcher, the outcome, the exit code.
FAULTS = {
    "never_ends": ("if (i == 0) while (*(volatile float*)x == *(volatile float*)x) {}", nothing, "timeout", 8),
    "illegal_access": ("if (i == 0) *(float*)16 = 1;", nothing, "crash", 6),
    "misaligned": ("if (i == 0) *(int*)((char*)out + 1) = 1;", nothing, "crash", 6),
    "trap": ('if (i == 0) asm volatile("trap;");', nothing, "crash", 6),
    "out_of_memory": ("", in_launcher("void* p; if (cudaError_t e = cudaMalloc(&p, 1ULL << 40)) return e;"), "crash", 6),
}


def honest(folder):
    answer = judged("verify", relu_workspace(folder))
    assert answer.code == 0, str(answer)


def edited(workspace, change):
    source = workspace / "kernels" / "relu.cu"
    source.write_text(change(source.read_text()))
    return workspace


@pytest.fixture(scope="module")
def empty():
    """Bytes of the GPU that are in use when nothing runs."""
    with gpu_lock():
        return memory_in_use()


def memory_is_back(empty):
    with gpu_lock():
        assert memory_in_use() <= empty + 64e6


@pytest.mark.parametrize("turn", ROUNDS)
@pytest.mark.parametrize("kind", FAULTS)
def test_fault_ends_in_its_verdict_and_the_next_ask_is_right(kind, turn, tmp_path, table, empty):
    body, change, outcome, code = FAULTS[kind]
    answer = judged("verify", edited(relu_workspace(tmp_path / "bad", body), change), *NO_POLICY, "--call-timeout", "4")
    table(f"fault: {kind} {turn}", code=answer.code, seconds=answer.seconds, message=answer.verdict["message"][:100])
    assert (answer.code, answer.verdict["outcome"], answer.verdict["fault"]) == (code, outcome, "candidate"), str(answer)
    honest(tmp_path / "good")
    memory_is_back(empty)


@pytest.mark.parametrize("turn", ROUNDS)
def test_who_takes_all_the_memory_is_to_blame(turn, tmp_path, table, empty):
    hoard = in_launcher("static void* all = [] { size_t left, whole; cudaMemGetInfo(&left, &whole); void* p = nullptr; cudaMalloc(&p, left - (64 << 20)); return p; }(); (void)all;")
    # More than what is left: the task's own model has to ask for memory beside the candidate.
    workspace = edited(relu_workspace(tmp_path / "bad", elements=1 << 26), hoard)
    answer = judged("run", workspace, *NO_POLICY, "--baseline", "compiled", "--call-timeout", "20")
    table(f"fault: hoards {turn}", code=answer.code, seconds=answer.seconds, message=answer.verdict["message"][:140])
    assert answer.verdict["fault"] in ("candidate", None), str(answer)
    assert answer.code in (0, 6), str(answer)
    honest(tmp_path / "good")
    memory_is_back(empty)


@pytest.mark.parametrize("stream", ["stream", "0"])
def test_default_stream_kernel_is_timed_whole(stream, tmp_path, table):
    answer = judged("run", relu_workspace(tmp_path / "slow", SPIN, stream), "--baseline", "eager")
    assert answer.code == 0, str(answer)
    time = {arm["name"]: arm["time"]["estimate"] for arm in answer.verdict["speed"]["arms"]}["candidate"]
    table(f"spinning kernel on stream {stream}", candidate=time)
    assert time > 2000


def test_kernel_on_another_stream_does_not_pass(tmp_path):
    workspace = edited(relu_workspace(tmp_path / "stray", SPIN, "stray()"), lambda text: text.replace('extern "C"', STRAY + 'extern "C"'))
    answer = judged("run", workspace, *NO_POLICY, "--baseline", "eager")
    assert answer.code in (4, 6), str(answer)


def test_a_sealed_worker_starts_no_process_and_opens_no_gpu(tmp_path):
    workspace = relu_workspace(tmp_path / "forks")
    binding = workspace / "kernels" / "relu_binding.cpp"
    text = binding.read_text().replace('#include "../binding_registry.h"', '#include "../binding_registry.h"\n#include <cerrno>\n#include <thread>\n#include <fcntl.h>\n#include <unistd.h>')
    text = text.replace(
        "  torch::Tensor out",
        """  TORCH_CHECK(fork() == -1 && errno == EPERM, "a process was made");
  TORCH_CHECK(open("/dev/nvidiactl", O_RDWR) == -1 && errno == EACCES, "the GPU was opened");
  torch::Tensor out""",
        1,
    )
    binding.write_text(text)
    answer = judged("verify", workspace, *NO_POLICY)
    assert answer.code == 0, str(answer)
    in_force = {one["name"]: one["in_force"] for one in answer.verdict["protections"]}
    assert in_force["system-call filter"] and in_force["device nodes"], answer.verdict["protections"]


def test_no_thread_is_started_while_arms_are_timed(tmp_path):
    workspace = relu_workspace(tmp_path / "threads")
    binding = workspace / "kernels" / "relu_binding.cpp"
    text = binding.read_text().replace('#include "../binding_registry.h"', '#include "../binding_registry.h"\n#include <thread>')
    binding.write_text(text.replace("  torch::Tensor out", "  std::thread([] {}).join();\n  torch::Tensor out", 1))
    assert judged("verify", workspace, *NO_POLICY).code == 0
    answer = judged("run", workspace, *NO_POLICY, "--baseline", "eager")
    assert (answer.code, answer.verdict["fault"]) == (6, "candidate"), str(answer)
