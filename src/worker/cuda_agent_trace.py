"""Which kernels a call runs on the GPU. Importing this takes a while: only where it is asked for."""

import torch
from torch.profiler import ProfilerActivity, profile

MOST_KERNELS = 500


def trace_kernels(call):
    """What ran on the GPU for one call, copies included: name, number and microseconds in all, longest first."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as seen:
        call()
        torch.cuda.synchronize()
    found = {}
    for event in seen.events():
        if event.device_type != torch.autograd.DeviceType.CUDA or event.is_user_annotation:
            continue
        one = found.setdefault(event.name, {"name": event.name[:1000], "calls": 0, "microseconds": 0.0})
        one["calls"] += 1
        one["microseconds"] += event.time_range.elapsed_us()
    return sorted(found.values(), key=lambda one: -one["microseconds"])[:MOST_KERNELS]
