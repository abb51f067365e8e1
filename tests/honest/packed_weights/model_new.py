import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)
        self.packed = None
        self.version = -1

    def forward(self, x):
        weight = self.layer.weight
        if self.version != weight._version:
            self.packed = weight.detach().clone()
            self.version = weight._version
        out = torch.empty(x.shape[0], self.layer.out_features)
        return cuda_extension.run(out, [x, self.packed, self.layer.bias], [x.shape[1]])
