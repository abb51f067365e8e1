"""The task: add a residual and normalise by the root mean square, as between the layers of a language model.

This file is the task and is never changed. The candidate is in model_new.py and kernels/.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """forward(x, residual), each [rows, columns], bfloat16, returns two of the same shape and dtype:
    total = x + residual and normed = weight * (total divided by the root mean square of its row).
    """

    def __init__(self, columns: int, eps: float) -> None:
        super().__init__()
        # As if trained: with ones nobody would notice that it is left out.
        self.weight = nn.Parameter((1.0 + 0.1 * torch.randn(columns)).to(torch.bfloat16))
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor):
        total = x + residual
        wide = total.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return total, self.weight * wide.to(total.dtype)


def get_inputs():
    return [torch.randn(8192, 4096, dtype=torch.bfloat16) for _ in range(2)]


def get_init_inputs():
    return [4096, 1e-5]
