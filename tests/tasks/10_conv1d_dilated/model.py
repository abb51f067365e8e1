"""Shape of thing: one-dimensional convolution with stride and dilation."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, CHANNELS_IN, CHANNELS_OUT, LENGTH = (64, 64, 128, 524280) if PUBLISHED else (8, 16, 32, 4096)


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv1d(channels_in, channels_out, kernel_size=3, stride=3, dilation=4, bias=False)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, LENGTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
