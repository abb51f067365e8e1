"""The task: mix a voice over music, and say how loud the voice is in the room.

This file is the task and is never changed. The candidate is in model_new.py and kernels/.
"""

import torch
import torch.nn as nn


class Model(nn.Module):
    """Two lines of arithmetic that a framework runs as seven passes over memory.

    forward(voice, music, room), each [tracks, samples], float32, returns
      mix    [tracks, samples]  gain * voice + music                        (axpby)
      level  [tracks]           root mean square of gain * voice + room     (axpby fused with a reduction)
    """

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.gain = gain

    def forward(self, voice: torch.Tensor, music: torch.Tensor, room: torch.Tensor):
        mix = self.gain * voice + music
        level = (self.gain * voice + room).pow(2).mean(dim=-1).sqrt()
        return mix, level


def get_inputs():
    """Fresh inputs. A GPU gets 32 times as much, so that a call takes long enough to be timed well."""
    tracks = 2048 if torch.get_default_device().type == "cuda" else 64
    samples = 8192
    return [torch.randn(tracks, samples) for _ in range(3)]


def get_init_inputs():
    return [0.75]
