"""Shape of thing: integer output (int64) that must be exact, and a boolean one."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, ROWS, COLUMNS = (128, 4096, 4095) if PUBLISHED else (16, 256, 511)


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return x.argmax(dim=self.dim), (x > 0).all(dim=self.dim)


def get_inputs():
    return [torch.rand(BATCH, ROWS, COLUMNS) - 0.001]


def get_init_inputs():
    return [-1]
