"""Shape of thing: half precision (fp16), and a tuple of two outputs of one input."""

import os

import torch
import torch.nn as nn
import torch.nn.functional as F

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
ROWS, COLUMNS = (4096, 393216) if PUBLISHED else (128, 4096)


class Model(nn.Module):
    def forward(self, x):
        return F.gelu(x, approximate="tanh"), x * torch.sigmoid(x)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS).to(torch.float16)]


def get_init_inputs():
    return []
