"""What the GPU tests add to tests/e2e/harness.py."""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from harness import copy_example, cuda_agent  # noqa: E402

TABLE = "CUDA_AGENT_GPU_TABLE"


def add_row(name, **values):
    """A row of the table that ends the run, and of the file $CUDA_AGENT_GPU_TABLE."""
    with open(os.environ[TABLE], "a", encoding="utf-8") as file:
        file.write(json.dumps({"name": name, **values}) + "\n")


@contextlib.contextmanager
def gpu_lock():
    """Holds the lock that cuda-agent takes before it works on the first GPU."""
    uuid = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout.split()[0]
    with open(f"/tmp/cuda-agent-{uuid}.lock", "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def memory_in_use():
    """Bytes of the first GPU."""
    done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0]) << 20


def judged(command, workspace, *arguments, **options):
    """`cuda-agent COMMAND WORKSPACE --device cuda --json ARGUMENTS`."""
    return cuda_agent(command, workspace, "--device", "cuda", "--json", *arguments, **options)


def times(verdict):
    """Microseconds of each arm."""
    return {arm["name"]: arm["time"]["estimate"] for arm in verdict["speed"]["arms"] if arm["time"]}


# A task whose candidate is one kernel of the test's own.
MODEL = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn({elements})]


def get_init_inputs():
    return []
"""

MODEL_NEW = """import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.relu(x)
"""

BINDING = """#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"

extern "C" cudaError_t relu_launch(float* out, const float* x, long count, cudaStream_t stream);

static torch::Tensor relu(const torch::Tensor& x) {
  torch::Tensor out = torch::empty_like(x);
  C10_CUDA_CHECK(relu_launch(out.data_ptr<float>(), x.data_ptr<float>(), x.numel(), c10::cuda::getCurrentCUDAStream()));
  return out;
}

static void bind_relu(pybind11::module& m) { m.def("relu", &relu); }

REGISTER_BINDING(relu, bind_relu);
"""

KERNEL = """#include <cuda_runtime.h>

__global__ void relu(float* out, const float* x, long count) {
  long i = blockIdx.x * 256L + threadIdx.x;
  %s
  if (i < count) out[i] = x[i] > 0 ? x[i] : 0;
}

extern "C" cudaError_t relu_launch(float* out, const float* x, long count, cudaStream_t stream) {
  relu<<<(unsigned)((count + 255) / 256), 256, 0, %s>>>(out, x, count);
  return cudaGetLastError();
}
"""


def relu_workspace(into, body="", stream="stream", elements=1 << 20):
    """A workspace whose candidate is a relu kernel with `body` in front of its work."""
    none = {name: None for name in ("axpby.cu", "axpby_binding.cpp", "axpby_cpu.cpp", "axpby_rms.cu", "axpby_rms_binding.cpp", "axpby_rms_cpu.cpp")}
    kernels = none | {"relu.cu": KERNEL % (body, stream), "relu_binding.cpp": BINDING}
    return copy_example(into, model=MODEL.format(elements=elements), model_new=MODEL_NEW, kernels=kernels)
