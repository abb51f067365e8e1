"""Shape of thing: bf16 with a float32 statistic, returned as a namedtuple."""

import os
from collections import namedtuple

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
ROWS, FEATURES = (112 * 512, 4096) if PUBLISHED else (512, 2048)

Normed = namedtuple("Normed", ["values", "scale"])


class Model(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, dtype=torch.bfloat16))
        self.eps = eps

    def forward(self, x):
        scale = torch.rsqrt(x.float().pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return Normed(values=(x * scale).to(x.dtype) * self.weight, scale=scale.squeeze(-1))


def get_inputs():
    return [torch.randn(ROWS, FEATURES).to(torch.bfloat16)]


def get_init_inputs():
    return [FEATURES, 1e-5]
