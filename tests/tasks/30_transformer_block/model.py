"""Shape of thing: a whole block: attention and a feed-forward part, norms, residuals, many parameters."""

import os

import torch
import torch.nn as nn
import torch.nn.functional as F

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
BATCH, LENGTH, FEATURES, HEADS = (128, 512, 768, 8) if PUBLISHED else (2, 64, 128, 4)


class Model(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(features)
        self.to_query_key_value = nn.Linear(features, 3 * features)
        self.from_heads = nn.Linear(features, features)
        self.norm_forward = nn.LayerNorm(features)
        self.widen = nn.Linear(features, 4 * features)
        self.narrow = nn.Linear(4 * features, features)

    def attend(self, x):
        batch, length, features = x.shape
        split = self.to_query_key_value(x).view(batch, length, 3, self.heads, features // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        context = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.from_heads(context.transpose(1, 2).reshape(batch, length, features))

    def forward(self, x):
        x = x + self.attend(self.norm_attention(x))
        return x + self.narrow(F.gelu(self.widen(self.norm_forward(x))))


def get_inputs():
    return [torch.randn(BATCH, LENGTH, FEATURES)]


def get_init_inputs():
    return [FEATURES, HEADS]
