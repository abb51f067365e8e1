"""Shape of thing: inputs that share storage (one is the other, one a window of it); an output that is a view of one."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
ROWS, COLUMNS = (16384, 16384) if PUBLISHED else (512, 1024)


class Model(nn.Module):
    def forward(self, x, same, window):
        y = torch.exp(-(x * same))
        return y, x.view(-1, 2).t(), window * 2


def get_inputs():
    x = torch.randn(ROWS, COLUMNS)
    return [x, x, x[1:-1, 8:-8]]


def get_init_inputs():
    return []
