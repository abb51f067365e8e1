"""Shape of thing: a Python int as an input of forward, beside a tensor; a scan."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
ROWS, COLUMNS = (32768, 32768) if PUBLISHED else (256, 4096)


class Model(nn.Module):
    def forward(self, x, dim):
        return torch.cumsum(x.flip(dim), dim).flip(dim)


def get_inputs():
    return [torch.rand(ROWS, COLUMNS), 1]


def get_init_inputs():
    return []
