"""The task: the length of every row.

This file is the task and is never changed. The candidate is in model_new.py and kernels/.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """forward(x) with x [rows, columns], float32: the L2 norm of each row, [rows]."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.vector_norm(x, dim=-1)


def get_inputs():
    return [torch.randn(4096, 16384)]


def get_init_inputs():
    return []
