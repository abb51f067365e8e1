"""Shape of thing: transposed convolution, output larger than input, unlike strides."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, CHANNELS_IN, CHANNELS_OUT, HEIGHT, WIDTH = (16, 32, 64, 128, 256) if PUBLISHED else (2, 8, 16, 24, 32)


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels_in, channels_out, kernel_size=(3, 5), stride=(2, 3), padding=(1, 2))

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
