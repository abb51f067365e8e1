"""Shape of thing: a small network: convolutions, batch norms, a shortcut that is itself a convolution."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, CHANNELS_IN, CHANNELS_OUT, SIDE = (10, 3, 64, 224) if PUBLISHED else (2, 8, 16, 48)


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels_out, 3, stride=2, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels_out)
        self.second = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride=2, bias=False)

    def forward(self, x):
        y = torch.relu(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        return torch.relu(y + self.shortcut(x))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
