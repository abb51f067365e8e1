"""Shape of thing: a boolean mask, a Python float, a bool flag and None as inputs of forward."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
ROWS, COLUMNS = (16384, 4096) if PUBLISHED else (256, 2048)


class Model(nn.Module):
    def forward(self, scores, mask, temperature, bias=None, log=False):
        scores = scores / temperature
        if bias is not None:
            scores = scores + bias
        scores = scores.masked_fill(~mask, float("-inf"))
        return torch.log_softmax(scores, dim=-1) if log else torch.softmax(scores, dim=-1)


def get_inputs():
    mask = torch.rand(ROWS, COLUMNS) > 0.3
    mask[:, 0] = True
    return [torch.randn(ROWS, COLUMNS), mask, 0.7, None, True]


def get_init_inputs():
    return []
