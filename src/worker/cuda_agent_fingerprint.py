"""Whether a model is still as it was constructed: one that remembers its calls is not."""

import collections

import torch


def fingerprint(model):
    """What a call would change in a model that remembers: the versions of its tensors, its plain attributes, which other
    objects it holds and how long its containers are."""

    def seen(value):
        if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
            return value
        if isinstance(value, torch.Tensor):
            return id(value), None if value.is_inference() else value._version
        size = len(value) if isinstance(value, (list, tuple, dict, set, collections.deque)) else 0
        return id(value), size

    tensors = [(n, seen(v)) for n, v in (*model.named_parameters(), *model.named_buffers())]
    attributes = [(n, k, seen(v)) for n, m in model.named_modules() for k, v in vars(m).items()]
    return tensors, attributes
