import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale
        self.weight = nn.Parameter(torch.rand(64) + 0.5)

    def forward(self, x):
        out = torch.empty(x.shape, dtype=torch.float32, device=x.device)
        return cuda_extension.run(out, [x, self.weight], [self.scale])
