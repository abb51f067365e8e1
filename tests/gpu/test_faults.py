"""What a kernel can do to a GPU, and that the next ask does not feel it."""

import pytest

from gpu_harness import judged, relu_workspace

SPIN = "long long from = clock64(); while (clock64() - from < 4000000LL) {}"


def honest(folder):
    answer = judged("verify", relu_workspace(folder))
    assert answer.code == 0, str(answer)


@pytest.mark.parametrize(
    ("body", "outcome", "code"),
    [
        ("if (i == 0) while (*(volatile float*)x == *(volatile float*)x) {}", "timeout", 8),
        ("if (i == 0) *(float*)16 = 1;", "crash", 6),
        ("if (i == 0) asm volatile(\"trap;\");", "crash", 6),
    ],
    ids=["never_ends", "illegal_access", "trap"],
)
def test_fault_ends_in_its_verdict_and_the_next_ask_is_right(body, outcome, code, tmp_path, table):
    answer = judged("verify", relu_workspace(tmp_path / "bad", body), "--call-timeout", "5")
    table(f"fault: {outcome}", code=answer.code, seconds=answer.seconds, message=answer.verdict["message"][:100])
    assert (answer.code, answer.verdict["outcome"]) == (code, outcome), str(answer)
    assert answer.verdict["fault"] == "candidate"
    honest(tmp_path / "good")


@pytest.mark.parametrize("stream", ["stream", "0"])
def test_default_stream_kernel_is_timed_whole(stream, tmp_path, table):
    answer = judged("run", relu_workspace(tmp_path / "slow", SPIN, stream), "--baseline", "eager")
    assert answer.code == 0, str(answer)
    time = {arm["name"]: arm["time"]["estimate"] for arm in answer.verdict["speed"]["arms"]}["candidate"]
    table(f"spinning kernel on stream {stream}", candidate=time)
    assert time > 2000


def test_kernel_on_another_stream_does_not_pass(tmp_path):
    workspace = relu_workspace(tmp_path / "stray", SPIN, "stray()")
    source = workspace / "kernels" / "relu.cu"
    stray = "static cudaStream_t stray() { static cudaStream_t s = [] { cudaStream_t t; cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking); return t; }(); return s; }\n"
    source.write_text(source.read_text().replace('extern "C"', stray + 'extern "C"'))
    answer = judged("run", workspace, "--baseline", "eager")
    assert answer.code in (4, 6), str(answer)
