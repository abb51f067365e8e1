"""Shape of thing: double precision (fp64), a batch of products of odd sizes."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, M, K, N = (128, 512, 1024, 2048) if PUBLISHED else (24, 61, 127, 89)


class Model(nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b)


def get_inputs():
    return [torch.randn(BATCH, M, K, dtype=torch.float64), torch.randn(BATCH, K, N, dtype=torch.float64)]


def get_init_inputs():
    return []
