"""Shape of thing: five-dimensional tensors, a kernel that is no cube."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, CHANNELS_IN, CHANNELS_OUT, SHAPE = (16, 3, 64, (64, 64, 64)) if PUBLISHED else (4, 3, 16, (16, 24, 24))


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv3d(channels_in, channels_out, kernel_size=(3, 5, 3), padding=(1, 2, 1))

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, *SHAPE)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
