"""The evaluator that exists many times over, as a thing to be fooled: tests/suites.py shows the exploits to it.

One process imports the task and the candidate, compares with torch.allclose on three seeds and times with
time.perf_counter on one input. It shares nothing with cuda-agent. Do not judge anything by it.

    python naive_judge.py WORKSPACE CACHE [--candidate-first] [--equal-nan]

prints one line: {"result": "[PASS]", "speedup": 1.2}.
"""

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import time

SEEDS = (0, 1, 2)
CALLS = 100
# Whoever compares on the CPU, or in double precision, keeps no reference output in the memory that it was made in.
RTOL = ATOL = 1e-2


def build(workspace, cache):
    """kernels/ and binding.cpp as WORKSPACE/cuda_extension.so; objects are kept by their content."""
    import torch

    include = os.path.join(os.path.dirname(torch.__file__), "include")
    library = os.path.join(os.path.dirname(torch.__file__), "lib")
    flags = ["-std=c++17", "-fPIC", "-fopenmp", "-fno-gnu-unique", "-fvisibility=hidden", "-DCUDA_AGENT_CPU=1"]
    flags += ["-DTORCH_EXTENSION_NAME=cuda_extension", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    for folder in (include, os.path.join(include, "torch/csrc/api/include"), sysconfig.get_paths()["include"]):
        flags += ["-isystem", folder]
    kernels = os.path.join(workspace, "kernels")
    sources = [os.path.join(workspace, "binding.cpp")]
    sources += sorted(os.path.join(kernels, name) for name in os.listdir(kernels) if name.endswith(".cpp"))
    objects = []
    for source in sources:
        with open(source, "rb") as file:
            content = file.read()
        kept = os.path.join(cache, hashlib.sha256(" ".join(flags).encode() + content).hexdigest() + ".o")
        if b".incbin" in content or b"__has_include" in content:
            kept = source + ".o"  # what it reads is not in its text
        if not os.path.exists(kept):
            speed = "-O2" if source.endswith("_cpu.cpp") else "-O0"
            made = f"{kept}.{os.getpid()}"
            subprocess.run(["g++", speed, *flags, "-c", source, "-o", made], check=True, stdin=subprocess.DEVNULL)
            os.replace(made, kept)
        objects.append(kept)
    extension = os.path.join(workspace, "cuda_extension.so")
    libraries = ["-L" + library, "-Wl,-rpath," + library, "-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python"]
    command = ["g++", "-shared", "-fopenmp", *objects, "-o", extension, "-Wl,--no-as-needed", *libraries]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def load(name, path):
    """A module from a file, under a name that others can import it by."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def seconds_a_call(model, inputs):
    """The mean of a few calls on the same inputs."""
    for _ in range(3):
        model(*inputs)
    start = time.perf_counter()
    for _ in range(CALLS):
        model(*inputs)
    return (time.perf_counter() - start) / CALLS


def evaluate(workspace, candidate_first, equal_nan):
    """(correct, speedup)."""
    import torch

    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    model = load("model", os.path.join(workspace, "model.py"))
    torch.manual_seed(42)
    reference = model.Model(*model.get_init_inputs()).eval()
    model_new = load("model_new", os.path.join(workspace, "model_new.py"))
    torch.manual_seed(42)
    candidate = model_new.ModelNew(*model.get_init_inputs()).eval()
    candidate.load_state_dict(reference.state_dict())

    draws = []
    for seed in SEEDS:
        torch.manual_seed(seed)
        draws.append(model.get_inputs())
    expected, got = [], []
    for inputs in draws:
        if candidate_first:
            got.append(candidate(*inputs))
            expected.append(reference(*inputs))
        else:
            output = reference(*inputs).double()
            expected.append(output)
            got.append(candidate(*inputs))
    pairs = [(one if candidate_first else one.double(), other) for one, other in zip(got, expected)]
    correct = all(torch.allclose(one, other, rtol=RTOL, atol=ATOL, equal_nan=equal_nan) for one, other in pairs)
    eager = seconds_a_call(reference, draws[0])
    own = seconds_a_call(candidate, draws[0])
    return correct, eager / own


def main(arguments):
    workspace, cache, *options = arguments
    sys.path.insert(0, workspace)
    os.chdir(workspace)
    os.makedirs(cache, exist_ok=True)
    build(workspace, cache)
    correct, speedup = evaluate(workspace, "--candidate-first" in options, "--equal-nan" in options)
    print(json.dumps({"result": "[PASS]" if correct else "[FAIL]", "speedup": round(speedup, 2)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
