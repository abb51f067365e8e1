import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale
        self.weight = nn.Parameter(torch.rand(64) + 0.5)

    def forward(self, x):
        return cuda_extension.run(torch.empty_like(x), [x, self.weight], [self.scale]).transpose(0, 1)
