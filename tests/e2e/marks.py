"""Marks for tests that need more of the machine than a host compiler and torch."""

import shutil

import pytest

NVCC = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")

# setup.sh builds the CPU side where there is no nvcc, and says so; CI has one, so there none of these is skipped.
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="nvcc was not found: CUDA sources cannot be compiled here")
