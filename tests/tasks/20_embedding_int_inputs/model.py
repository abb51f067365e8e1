"""Shape of thing: integer inputs (int64 ids, int32 lengths) that index a table of weights."""

import os

import torch
import torch.nn as nn

PUBLISHED = os.environ.get("CUDA_AGENT_TASK_SIZES") == "published"
WORDS, FEATURES, BATCH, LENGTH = (50000, 1024, 256, 512) if PUBLISHED else (4000, 128, 64, 64)


class Model(nn.Module):
    def __init__(self, words, features):
        super().__init__()
        self.table = nn.Embedding(words, features)

    def forward(self, ids, lengths):
        inside = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        return (self.table(ids) * inside[:, :, None]).sum(dim=1) / lengths[:, None]


def get_inputs():
    ids = torch.randint(0, WORDS, (BATCH, LENGTH))
    lengths = torch.randint(1, LENGTH + 1, (BATCH,), dtype=torch.int32)
    return [ids, lengths]


def get_init_inputs():
    return [WORDS, FEATURES]
