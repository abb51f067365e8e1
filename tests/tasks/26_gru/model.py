"""Shape of thing: a recurrence over time, several layers, hidden state in and out."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
LENGTH, BATCH, FEATURES, HIDDEN, LAYERS = (512, 10, 128, 256, 6) if PUBLISHED else (16, 8, 32, 64, 2)


class Model(nn.Module):
    def __init__(self, features, hidden, layers):
        super().__init__()
        self.gru = nn.GRU(features, hidden, layers)

    def forward(self, x, state):
        return self.gru(x, state)


def get_inputs():
    return [torch.randn(LENGTH, BATCH, FEATURES), torch.randn(LAYERS, BATCH, HIDDEN)]


def get_init_inputs():
    return [FEATURES, HIDDEN, LAYERS]
