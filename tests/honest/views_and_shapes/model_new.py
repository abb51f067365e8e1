import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale
        self.weight = nn.Parameter(torch.rand(64) + 0.5)

    def forward(self, x):
        rows, columns = x.size(0), x.size(-1)
        assert x.dim() == 2 and x.stride() == (columns, 1) and x.is_contiguous() and x.numel() == rows * columns
        flat = x.view(-1)
        out = torch.empty_strided((rows, columns), (columns, 1), dtype=x.dtype, device=x.device)
        return cuda_extension.run(out.flatten(), [flat, self.weight], [self.scale]).reshape(rows, columns)
