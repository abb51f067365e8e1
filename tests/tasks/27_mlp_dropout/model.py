"""Shape of thing: a stack of linear layers with dropout: nothing in evaluation mode (the default contract), active when
the task is judged as given, in training mode (`--contract kernelbench`)."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, SIZES = (128, (16384, 16384, 16384, 8192)) if PUBLISHED else (64, (256, 512, 512, 64))


class Model(nn.Module):
    def __init__(self, sizes, dropout):
        super().__init__()
        layers = []
        for size_in, size_out in zip(sizes[:-2], sizes[1:-1]):
            layers += [nn.Linear(size_in, size_out), nn.ReLU(), nn.Dropout(dropout)]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    return [torch.randn(BATCH, SIZES[0])]


def get_init_inputs():
    return [SIZES, 0.2]
