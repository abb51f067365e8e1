"""Fixtures of the end-to-end tests."""

import json

import jsonschema
import pytest

import harness


def pytest_configure():
    if not harness.BINARY.is_file():
        pytest.exit(f"no binary at {harness.BINARY}: build it, or set CUDA_AGENT_BINARY", returncode=3)
    harness.adopt_orphans()


@pytest.fixture
def example(tmp_path):
    """A fresh copy of the example workspace."""
    return harness.copy_example(tmp_path / "workspace")


@pytest.fixture(scope="session")
def check_schema():
    """check_schema(verdict) fails unless the verdict validates against what `cuda-agent schema` prints."""
    answer = harness.cuda_agent("schema")
    assert answer.code == 0, str(answer)
    validator = jsonschema.Draft202012Validator(json.loads(answer.out))

    def check(verdict):
        errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(verdict)]
        assert not errors, "\n".join(errors)

    return check
