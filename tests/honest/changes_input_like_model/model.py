import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale
        self.weight = nn.Parameter(torch.rand(64) + 0.5)

    def forward(self, x):
        return torch.relu_(x).mul_(self.scale).mul_(self.weight)


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return [2.0]
