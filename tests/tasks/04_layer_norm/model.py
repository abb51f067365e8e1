"""Shape of thing: parameters (weight and bias) that the judge copies by name; normalisation over several dimensions."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, SHAPE = (16, (64, 256, 256)) if PUBLISHED else (16, (32, 32, 64))


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norm = nn.LayerNorm(shape)
        with torch.no_grad():
            self.norm.weight.normal_(1.0, 0.1)
            self.norm.bias.normal_(0.0, 0.1)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(BATCH, *SHAPE) * 3 + 1]


def get_init_inputs():
    return [SHAPE]
