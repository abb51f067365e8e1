#!/usr/bin/env python3
"""How long an agent waits for an answer: the published scripts' protocol and `cuda-agent run`, on the same edits in turn.

    scripts/bench-loop.py [WORKSPACE ...] [--binary FILE] [--python FILE] [--device cpu|cuda] [--times N] [--no-published]

Each workspace (default: the example) is copied, then edited N times a kind: a kernel, a binding, nothing. After each edit
both are asked, at least five seconds after the answer before. Prints a Markdown table: median and 90th percentile in
seconds, and the ratio of the medians. The published protocol, written anew from its description (docs/measured.md): three
processes, torch.utils.cpp_extension into an emptied folder, 5 checks with assert_close at 1e-2, 5 + 10 calls each of the
candidate, eager and torch.compile under torch.profiler. Run it on an idle machine; it needs torch in --python only.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BETWEEN = 5.0  # seconds: an agent thinks meanwhile
LIMIT = 900


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("workspaces", nargs="*", type=Path, default=[ROOT / "agent_workdir"])
    parser.add_argument("--binary", type=Path, default=ROOT / "build" / "src" / "cuda-agent")
    parser.add_argument("--python", type=Path, default=ROOT / ".venv" / "bin" / "python", help="an interpreter with torch")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--times", type=int, default=5, help="edits of each kind [default: 5]")
    parser.add_argument("--published", action=argparse.BooleanOptionalAction, default=True, help="ask in the published way too [default: yes]")
    return parser.parse_args()


# --- the published protocol, a process a step ---------------------------------------------------------------------------

COMMON = """
import importlib.util, shutil, sys, torch
sys.path.insert(0, "build")
device = {device!r}
def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
def models():
    task = load("model", "model.py")
    torch.manual_seed(0)
    model = task.Model(*task.get_init_inputs()).to(device).eval()
    torch.manual_seed(0)
    new = load("model_new", "model_new.py").ModelNew(*task.get_init_inputs()).to(device).eval()
    new.load_state_dict(model.state_dict())
    return task, model, new
def inputs(task):
    return [x.to(device) if isinstance(x, torch.Tensor) else x for x in task.get_inputs()]
"""

STEPS = {
    "compile": """
import glob, os
from torch.utils import cpp_extension
shutil.rmtree("build", ignore_errors=True)
os.makedirs("build")
cuda = device == "cuda"
sources = ["binding.cpp", *sorted(glob.glob("kernels/*_binding.cpp")), *sorted(glob.glob("kernels/*.cu" if cuda else "kernels/*_cpu.cpp"))]
flags = ["-O3", "-DCUDA_AGENT_CUDA=1" if cuda else "-DCUDA_AGENT_CPU=1"] + ([] if cuda else ["-march=native", "-fopenmp"])
cpp_extension.load("cuda_extension", sources, build_directory="build", extra_cflags=flags, with_cuda=cuda,
                   extra_cuda_cflags=["-O3", "--use_fast_math"] if cuda else None)
""",
    "verify": """
task, model, new = models()
with torch.no_grad():
    for _ in range(5):
        x = inputs(task)
        torch.testing.assert_close(new(*x), model(*x), atol=1e-2, rtol=1e-2)
""",
    "profile": """
from torch.profiler import ProfilerActivity, profile
task, model, new = models()
x = inputs(task)
activity = [ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU]
with torch.no_grad():
    for candidate in (new, model, torch.compile(model)):
        for _ in range(5):
            candidate(*x)
        with profile(activities=activity) as record:
            for _ in range(10):
                candidate(*x)
        time = "self_device_time_total" if device == "cuda" else "self_cpu_time_total"
        print(sum(getattr(one, time) for one in record.key_averages()) / 10)
""",
}


def ask_published(workspace, options):
    for step, text in STEPS.items():
        done = subprocess.run([options.python, "-c", COMMON.format(device=options.device) + text], cwd=workspace, capture_output=True, text=True, timeout=LIMIT, check=False)
        if done.returncode != 0:
            raise SystemExit(f"the published protocol's {step} failed in {workspace}: {done.stderr[-2000:]}")


# --- ours ---------------------------------------------------------------------------------------------------------------


def ask_ours(workspace, options, environment):
    command = [options.binary, "run", workspace, "--device", options.device, "--session", "--json", "--quiet", "--python", options.python]
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)
    verdict = json.loads(done.stdout)
    if verdict["outcome"] != "pass":
        raise SystemExit(f"cuda-agent run {workspace}: {verdict['outcome']}: {verdict['message']}")
    return verdict["timings"]


def edit(workspace, kind, device, number):
    if kind == "nothing":
        return
    pattern = "*_binding.cpp" if kind == "binding" else "*.cu" if device == "cuda" else "*_cpu.cpp"
    file = sorted((workspace / "kernels").glob(pattern))[0]
    text = file.read_text().split("\n// edit", 1)[0]
    file.write_text(f"{text}\n// edit\n__attribute__((used)) static const long edit_{number} = {number};\n")


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, round(share * (len(values) - 1)))]


def timed(ask, last):
    """Seconds of one ask, begun late enough; and when it ended."""
    time.sleep(max(0.0, last + BETWEEN - time.monotonic()))
    start = time.monotonic()
    ask()
    end = time.monotonic()
    return end - start, end


def measure(original, folder, options, environment):
    """{kind: {who: [seconds]}} of one workspace."""
    workspace = folder / original.name
    shutil.copytree(original, workspace, ignore=shutil.ignore_patterns(".cuda-agent", "build", "__pycache__"))
    for name in ("binding.cpp", "binding_registry.h"):
        if not (workspace / name).exists():
            shutil.copy(ROOT / "agent_workdir" / name, workspace / name)
    ask_ours(workspace, options, environment)  # what is made once for a machine and a task
    if options.published:
        ask_published(workspace, options)
    found, last = {}, time.monotonic()
    for number in range(options.times):
        for kind in ("kernel", "binding", "nothing"):
            edit(workspace, kind, options.device, 1000 * number + len(kind))
            of_kind = found.setdefault(kind, {"ours": [], "published": []})
            seconds, last = timed(lambda: ask_ours(workspace, options, environment), last)
            of_kind["ours"].append(seconds)
            if options.published:
                seconds, last = timed(lambda: ask_published(workspace, options), last)
                of_kind["published"].append(seconds)
    return found


def main():
    options = arguments()
    print("| workspace | edited | published, median | p90 | cuda-agent, median | p90 | ratio |\n| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="bl-") as folder:
        environment = {k: v for k, v in os.environ.items() if k != "CI"} | {"CUDA_AGENT_SESSIONS": str(Path(folder) / "s")}
        try:
            for original in options.workspaces:
                for kind, seconds in measure(original.resolve(), Path(folder), options, environment).items():
                    ours, published = seconds["ours"], seconds["published"]
                    theirs = f"{statistics.median(published):.2f} | {percentile(published, 0.9):.2f}" if published else "not asked | "
                    ratio = f"{statistics.median(published) / statistics.median(ours):.1f}" if published else ""
                    print(f"| {original.name} | {kind} | {theirs} | {statistics.median(ours):.2f} | {percentile(ours, 0.9):.2f} | {ratio} |", flush=True)
        finally:
            subprocess.run([str(options.binary), "session", "stop"], env=environment, capture_output=True, timeout=60, check=False)


if __name__ == "__main__":
    sys.exit(main())
