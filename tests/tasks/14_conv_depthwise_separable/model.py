"""Shape of thing: grouped convolution, weights in a nested module; input in channels-last strides."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, CHANNELS_IN, CHANNELS_OUT, SIDE = (16, 64, 128, 512) if PUBLISHED else (8, 32, 32, 48)


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(channels_in, channels_in, kernel_size=3, padding=1, groups=channels_in),
            nn.Conv2d(channels_in, channels_out, kernel_size=1),
        )

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    x = torch.randn(BATCH, CHANNELS_IN, SIDE, SIDE)
    return [x.contiguous(memory_format=torch.channels_last)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
