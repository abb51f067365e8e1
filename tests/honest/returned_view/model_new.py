import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale
        self.weight = nn.Parameter(torch.rand(64) + 0.5)

    def forward(self, x):
        buffer = torch.empty(2, *x.shape)
        cuda_extension.run(buffer[1], [x, self.weight], [self.scale])
        return buffer[1].view(8, 8, 64).reshape(64, 64)
