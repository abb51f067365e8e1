import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    def forward(self, x):
        both = cuda_extension.run(torch.empty(2, *x.shape), [x], [])
        return both[0], both[1]
