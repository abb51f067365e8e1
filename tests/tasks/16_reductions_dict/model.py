"""Shape of thing: a dict of several reductions of one input, one of them a 0-d tensor."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, ROWS, COLUMNS = (128, 4096, 4095) if PUBLISHED else (16, 256, 511)


class Model(nn.Module):
    def forward(self, x):
        return {
            "sum": x.sum(dim=1),
            "mean": x.mean(dim=2, keepdim=True),
            "largest": x.amax(dim=(1, 2)),
            "norm": x.pow(2).sum().sqrt(),
        }


def get_inputs():
    return [torch.randn(BATCH, ROWS, COLUMNS)]


def get_init_inputs():
    return []
