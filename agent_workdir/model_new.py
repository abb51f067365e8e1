"""The candidate: the task's Model on our own kernels."""

import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    """Same constructor, same inputs and same outputs as Model in model.py."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.gain = gain

    def forward(self, voice: torch.Tensor, music: torch.Tensor, room: torch.Tensor):
        mix = cuda_extension.axpby(voice, music, self.gain)
        level = cuda_extension.axpby_rms(voice, room, self.gain)
        return mix, level
