"""Shape of thing: buffers (running mean and variance, an integer counter) beside parameters."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, CHANNELS, SIDE = (64, 64, 512) if PUBLISHED else (16, 32, 56)


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        with torch.no_grad():
            self.norm.running_mean.normal_()
            self.norm.running_var.uniform_(0.5, 2.0)
            self.norm.weight.uniform_(0.5, 1.5)
            self.norm.bias.normal_()
        self.register_buffer("offset", torch.linspace(-1.0, 1.0, channels).view(1, channels, 1, 1))

    def forward(self, x):
        return self.norm(x) + self.offset


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS]
