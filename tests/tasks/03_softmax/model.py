"""Shape of thing: a normalisation over the last dimension, inputs with a few very large values."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
ROWS, COLUMNS = (4096, 393216) if PUBLISHED else (512, 4096)


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, logits):
        return torch.softmax(logits, dim=self.dim)


def get_inputs():
    logits = torch.randn(ROWS, COLUMNS)
    logits[:, ::1024] += 80.0
    return [logits]


def get_init_inputs():
    return [-1]
