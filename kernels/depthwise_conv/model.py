"""The task: a 3x3 depthwise convolution, as in MobileNet.

This file is the task and is never changed. The candidate is in model_new.py and kernels/.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """forward(x) with x [batch, channels, height, width], float32: each channel with its own 3x3 filter; same shape."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, stride=1, padding=1, groups=channels, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


def get_inputs():
    return [torch.randn(32, 256, 56, 56)]


def get_init_inputs():
    return [256]
