import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return (torch.tanh(x) + 4) * 1e-3


def get_inputs():
    return [torch.randn(1)]


def get_init_inputs():
    return []
