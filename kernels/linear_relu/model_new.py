"""The candidate: one cuBLASLt call, with bias and ReLU in the product's epilogue."""

import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    """Same constructor, same inputs and same outputs as Model in model.py."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)  # holds weight and bias; never called

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cuda_extension.linear_relu(x, self.linear.weight, self.linear.bias)
