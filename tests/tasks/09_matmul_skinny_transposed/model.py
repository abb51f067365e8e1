"""Shape of thing: non-contiguous inputs: a transposed tall matrix, and every second row of another one."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
TALL, SKINNY = (32768, 32) if PUBLISHED else (16384, 24)


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    a = torch.randn(TALL, SKINNY).t()
    b = torch.randn(2 * TALL, SKINNY)[::2]
    return [a, b]


def get_init_inputs():
    return []
