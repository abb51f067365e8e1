"""Shape of thing: nested structure in and out: a list of three tensors in, (context, [weights a head, …]) out."""

import math
import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, HEADS, LENGTH, FEATURES = (32, 32, 512, 128) if PUBLISHED else (4, 2, 128, 64)


class Model(nn.Module):
    def forward(self, query_key_value):
        query, key, value = query_key_value
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
        return weights @ value, [weights[:, head] for head in range(weights.shape[1])]


def get_inputs():
    return [[torch.randn(BATCH, HEADS, LENGTH, FEATURES) for _ in range(3)]]


def get_init_inputs():
    return []
