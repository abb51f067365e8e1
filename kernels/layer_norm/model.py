"""The task: layer normalisation with weight and bias.

This file is the task and is never changed. The candidate is in model_new.py and kernels/.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """forward(x) with x [rows, columns], float32: each row normalised, scaled and shifted; the same shape."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(columns)
        # As if trained: with ones and zeros nobody would notice that they are left out.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.1)
        nn.init.normal_(self.norm.bias, std=0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(16384, 4096)]


def get_init_inputs():
    return [4096]
