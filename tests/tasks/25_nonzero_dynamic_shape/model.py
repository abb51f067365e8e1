"""Shape of thing: the shape of the output depends on the values of the input."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
ROWS, COLUMNS = (8192, 8192) if PUBLISHED else (256, 1024)


class Model(nn.Module):
    def forward(self, x, threshold):
        places = torch.nonzero(x > threshold)
        return places, x[places[:, 0], places[:, 1]]


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), 1.0]


def get_init_inputs():
    return []
