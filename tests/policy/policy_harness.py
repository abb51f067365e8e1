"""What the tests of the policy's Python rules share: the checker in this process, and small files to give it."""

import json
import sys
import textwrap
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
POLICY = REPOSITORY / "src" / "policy"
sys.path.insert(0, str(POLICY / "rules"))
sys.path.insert(0, str(REPOSITORY / "tests" / "e2e"))  # harness.py runs the binary

from cuda_agent_rules import check_source  # noqa: E402
from policy_config import Config  # noqa: E402

CONFIG = Config(POLICY / "policy.json")
RULES = json.loads((POLICY / "policy.json").read_text())["rules"]

HEAD = """import functools
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
import cuda_extension

"""

MODEL = """
class ModelNew(nn.Module):
    def __init__(self, size, bias=True):
        super().__init__()
        self.size = size
        self.w = nn.Parameter(torch.randn(size))
        self.fc = nn.Linear(size, size, bias=bias)
"""


def file(forward="return cuda_extension.relu(x)", *, init="", methods="", before="", arguments="x"):
    """A model_new.py: the body of forward, more of __init__, more methods, and what stands before the class."""
    text = HEAD + textwrap.dedent(before) + MODEL
    text += textwrap.indent(textwrap.dedent(init), " " * 8) + "\n"
    text += textwrap.indent(textwrap.dedent(methods), " " * 4) + "\n"
    return text + f"    def forward(self, {arguments}):\n" + textwrap.indent(textwrap.dedent(forward).strip("\n"), " " * 8) + "\n"


def findings(text):
    """The findings about a file."""
    return check_source(text.encode() if isinstance(text, str) else text, CONFIG)


def rules_of(text):
    return [finding["rule"] for finding in findings(text)]


def shown(found):
    return "\n".join(f"{f['line']}:{f['column']} {f['rule']}: {f['message']} [{f['reached']}]" for f in found)
