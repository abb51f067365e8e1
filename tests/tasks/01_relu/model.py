"""Shape of thing: one tensor in, one tensor out, element by element."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
ROWS, COLUMNS = (4096, 393216) if PUBLISHED else (256, 8192)


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
