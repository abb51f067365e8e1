"""The task: a linear layer and ReLU.

This file is the task and is never changed. The candidate is in model_new.py and kernels/.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """forward(x) with x [rows, inputs], float32: relu(x @ weight.T + bias), [rows, outputs]."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.linear(x))


def get_inputs():
    return [torch.randn(4096, 2048)]


def get_init_inputs():
    return [2048, 2048]
