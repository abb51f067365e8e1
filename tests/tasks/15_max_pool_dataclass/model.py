"""Shape of thing: a dataclass of a float and an integer tensor, from pooling with indices."""

import os
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, CHANNELS, SIDE = (32, 64, 512) if PUBLISHED else (4, 16, 96)


@dataclass
class Pooled:
    values: torch.Tensor
    places: torch.Tensor


class Model(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window

    def forward(self, x):
        values, places = F.max_pool2d(x, self.window, stride=2, padding=1, return_indices=True)
        return Pooled(values=values, places=places)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [4]
