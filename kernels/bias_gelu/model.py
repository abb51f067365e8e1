"""The task: add a bias to every row and apply GELU in its tanh form, as between the two matrices of an MLP.

This file is the task and is never changed. The candidate is in model_new.py and kernels/.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """forward(x) with x [rows, columns], float32: gelu_tanh(x + bias), the same shape."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x + self.bias, approximate="tanh")


def get_inputs():
    return [torch.randn(8192, 8192)]


def get_init_inputs():
    return [8192]
