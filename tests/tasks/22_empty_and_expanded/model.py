"""Shape of thing: an expanded input (stride 0), an empty tensor in and an empty tensor out."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
ROWS, COLUMNS = (16384, 16384) if PUBLISHED else (1024, 1024)


class Model(nn.Module):
    def forward(self, x, scale, extra):
        y = torch.tanh(x * scale)
        return y, torch.tanh(extra) * 2


def get_inputs():
    x = torch.randn(ROWS, COLUMNS)
    scale = torch.rand(COLUMNS).expand(ROWS, COLUMNS)
    extra = torch.randn(0, COLUMNS)
    return [x, scale, extra]


def get_init_inputs():
    return []
