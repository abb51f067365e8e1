"""Shape of thing: a short chain (convolution, bias, relu, pooling) that a kernel can fuse."""

import os

import torch
import torch.nn as nn
import torch.nn.functional as F

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, CHANNELS_IN, CHANNELS_OUT, SIDE = (128, 64, 128, 128) if PUBLISHED else (4, 8, 16, 64)


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel_size=3, padding=1)

    def forward(self, x):
        return F.max_pool2d(torch.relu(self.conv(x)), kernel_size=2)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
