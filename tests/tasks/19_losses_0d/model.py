"""Shape of thing: 0-d outputs and a 0-d input; integer targets."""

import os

import torch
import torch.nn as nn
import torch.nn.functional as F

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
ROWS, CLASSES = (32768, 4096) if PUBLISHED else (1024, 512)


class Model(nn.Module):
    def forward(self, logits, targets, smoothing):
        certain = F.cross_entropy(logits, targets)
        even = -torch.log_softmax(logits, dim=1).mean()
        return (1 - smoothing) * certain + smoothing * even, certain


def get_inputs():
    return [torch.randn(ROWS, CLASSES), torch.randint(0, CLASSES, (ROWS,)), torch.tensor(0.1)]


def get_init_inputs():
    return []
