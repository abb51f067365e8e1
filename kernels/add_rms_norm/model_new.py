"""The candidate: sum and norm in one pass over memory."""

import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    """Same constructor, same inputs and same outputs as Model in model.py."""

    def __init__(self, columns: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(columns, dtype=torch.bfloat16))
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor):
        return cuda_extension.add_rms_norm(x, residual, self.weight, self.eps)
