"""The exploits that must be caught and the look-alikes that must pass (docs/exploits.md), one test a case.

Variants (`variant_of` in case.json) are left to `python tests/suites.py`, or CUDA_AGENT_ALL_CASES=1: each costs the start
of two workers.
"""

import os
import sys

import pytest

from harness import BINARY, CACHE, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests"))

import suites  # noqa: E402

ALL = bool(os.environ.get("CUDA_AGENT_ALL_CASES"))
CASES = [case for case in suites.all_cases() if ALL or "variant_of" not in case.facts]
JOBS = 2


@pytest.fixture(scope="module")
def results(request):
    """The results of all cases that were asked for: the machine is kept busy while pytest looks at them one by one."""
    os.environ["CUDA_AGENT_CACHE"] = str(CACHE)
    options = suites.parse(["--binary", str(BINARY), "--jobs", str(JOBS)])
    wanted = {item.callspec.params["case"].name for item in request.session.items if hasattr(item, "callspec") and "case" in item.callspec.params}
    cases = [case for case in CASES if case.name in wanted]
    return {result.name: result for result in suites.run_all(cases, options)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case, results):
    result = results[case.name]
    if result.skipped:
        pytest.skip(result.skipped)
    assert not result.wrong, "\n".join([f"{case.facts['what']}:", *result.wrong, result.message])


def test_the_suites_are_large_enough():
    """A folder that is not found would look like one whose cases all pass."""
    kinds = [case.kind for case in suites.all_cases()]
    assert kinds.count("exploits") >= 40
    assert kinds.count("honest") >= 20
