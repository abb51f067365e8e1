"""The candidate: every thread computes a small tile of one channel from a window in registers."""

import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    """Same constructor, same inputs and same outputs as Model in model.py."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        # Holds the weight; never called.
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, stride=1, padding=1, groups=channels, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return cuda_extension.depthwise_conv(x, self.conv.weight)
