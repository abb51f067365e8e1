import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale
        self.weight = nn.Parameter(torch.rand(64) + 0.5)
        self.buffers = {}

    def forward(self, x):
        key = tuple(x.shape)
        if key not in self.buffers:
            self.buffers[key] = torch.empty(key)
        return cuda_extension.run(self.buffers[key], [x, self.weight], [self.scale])
