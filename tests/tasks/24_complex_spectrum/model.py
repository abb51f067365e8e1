"""Shape of thing: complex64 in and out, with a conjugate, and a real output beside it."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
ROWS, COLUMNS = (4096, 8192) if PUBLISHED else (128, 2048)


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        response = torch.polar(torch.linspace(1.0, 0.1, columns), torch.linspace(0.0, 6.0, columns))
        self.register_buffer("response", response)

    def forward(self, spectrum):
        filtered = spectrum * self.response
        return filtered, (filtered * spectrum.conj()).real


def get_inputs():
    return [torch.randn(ROWS, COLUMNS, dtype=torch.complex64)]


def get_init_inputs():
    return [COLUMNS]
