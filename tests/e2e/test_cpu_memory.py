"""Memory of CPU tensors in a worker: freed blocks are used again, so that no timed call pays for new pages."""

from harness import NO_POLICY, judged, reference_as_candidate

MODEL = """import resource

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(4 << 20)]


def get_init_inputs():
    return []
"""

# Counts the page faults of its own forward, whose result is 16 MB.
COUNTING = """

class ModelNew(Model):
    def forward(self, x):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        result = torch.relu(x)
        print("faults", resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
        return result
"""


def test_results_lie_on_memory_that_was_used_before(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    workspace = reference_as_candidate(tmp_path / "model.py", tmp_path / "workspace")
    (workspace / "model_new.py").write_text(MODEL + COUNTING)
    answer = judged("verify", workspace, *NO_POLICY, "--trials", "8")
    assert answer.code == 0, str(answer)
    lines = answer.verdict["candidate"]["output"].splitlines()
    faults = [int(line.split()[1]) for line in lines if line.startswith("faults ")]
    assert len(faults) >= 8, str(answer)  # and those of the probe
    assert max(faults[2:8]) < 64, faults
