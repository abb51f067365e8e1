"""Prints the median microseconds of a task's Model between two CUDA events: by_events.py MODEL_FILE K.

K calls, each on inputs of its own, between the two events, as cuda-agent times it. The cache is flushed before, and the
launches are queued behind a spinning kernel, so that what the processor does is not measured. An empty pair of events is
taken off.
"""

import statistics
import sys
from pathlib import Path

import torch

from gpu_harness import gpu_lock

TURNS, WARM_UP = 25, 5


def measure(text, calls):
    torch.backends.cuda.matmul.allow_tf32 = False
    names = {}
    exec(text, names)
    with torch.device("cuda"):
        inputs = [names["get_inputs"]() for _ in range(calls)]
        model = names["Model"](*names["get_init_inputs"]())
    flush = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
    spans, empty = [], []
    for turn in range(TURNS):
        first, middle, last = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        flush.fill_(turn)
        torch.cuda._sleep(2_000_000)
        first.record()
        middle.record()
        with torch.no_grad():
            results = [model(*own) for own in inputs]
        last.record()
        del results
        torch.cuda.synchronize()
        if turn >= WARM_UP:
            spans.append(middle.elapsed_time(last) * 1e3)
            empty.append(first.elapsed_time(middle) * 1e3)
    return (statistics.median(spans) - statistics.median(empty)) / calls


with gpu_lock():
    print(measure(Path(sys.argv[1]).read_text(), int(sys.argv[2])))
