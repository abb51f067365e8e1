"""The candidate: one block a row, and the row stays in registers."""

import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    """Same constructor, same inputs and same outputs as Model in model.py."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(columns)  # holds weight, bias and eps; never called

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cuda_extension.layer_norm(x, self.norm.weight, self.norm.bias, self.norm.eps)
