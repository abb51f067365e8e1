"""cuda-agent selftest: real cases end as expected; a case that does not makes the command fail, and says which."""

import json
import shutil
import subprocess

import pytest

import harness


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An installed tree, whose cases may be changed."""
    folder = tmp_path_factory.mktemp("selftest") / "installed"
    build = harness.BINARY.resolve().parent.parent
    subprocess.run(["cmake", "--install", str(build), "--prefix", str(folder)], check=True, capture_output=True)
    return folder


def selftest(binary, *arguments, **changes):
    return subprocess.run(
        [str(binary), "selftest", *map(str, arguments)],
        env=harness.environment(**changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def case_file(installed, name):
    return installed / "share" / "cuda-agent" / "selftest" / name / "case.json"


def test_an_exploit_is_caught_and_a_look_alike_passes(tmp_path):
    done = selftest(harness.BINARY, "--only", "honest/prints_words", "--device", "cpu", "-q", TMPDIR=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "1 of 1 honest candidates passed" in done.stdout
    done = selftest(harness.BINARY, "--only", "returns_input", "--device", "cpu", TMPDIR=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1: exploits/returns_input" in done.stderr
    assert "as expected" in done.stderr
    assert done.stdout.splitlines()[-1] == "1 of 1 exploits caught, 0 of 0 honest candidates passed"
    assert not list(tmp_path.glob("cuda-agent-selftest-*"))


def test_as_json_and_with_the_workspaces_kept(tmp_path):
    options = ("--device", "cpu", "--json", "--jobs", "2", "--keep")
    done = selftest(harness.BINARY, "--only", "exploits/linked_*", *options, TMPDIR=tmp_path)
    answer = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert answer["schema"] == "cuda-agent/selftest/1"
    assert answer["exit_code"] == 0
    assert [case["name"] for case in answer["cases"]] == ["exploits/linked_kernel", "exploits/linked_model_new"]
    assert answer["counts"]["caught"] == 2
    for case in answer["cases"]:
        assert (tmp_path / case["workspace"] / "model.py").exists()
        assert case["outcome"] in case["expected"]["outcomes"]
        assert case["seconds"] > 0


def test_an_exploit_gets_through_once_its_layers_are_switched_off():
    """One that the comparison and the policy catch, each alone."""
    done = selftest(harness.BINARY, "--only", "exploits/zeros", "--device", "cpu", "--prove-layers", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    proofs = answer["proofs"]
    assert (proofs["proven"], proofs["not_proven"], proofs["not_switchable"]) == (1, 0, {})
    [case] = answer["cases"]
    assert (case["layer"], case["also"], case["outcome"]) == ("comparison", ["policy"], "wrong")
    assert case["proof"]["state"] == "proven"
    assert case["proof"]["rules"] != []
    through = case["proof"]["through"]
    assert through["switched_off"] == ["--without", "comparison", "--policy", "none"]
    assert (through["outcome"], through["exit_code"]) == ("pass", 0)


def test_a_layer_that_cannot_be_switched_off_is_named():
    done = selftest(harness.BINARY, "--only", "aborts", "--device", "cpu", "--prove-layers", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cannot be switched off: process" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("of 1 the layer cannot be switched off: process 1")


def test_a_case_that_names_the_wrong_layer_is_not_proven(installed):
    file = case_file(installed, "exploits/first_half")
    facts = json.loads(file.read_text())
    file.write_text(json.dumps(facts | {"caught_by": "seal"}))
    done = selftest(
        installed / "bin" / "cuda-agent", "--only", "exploits/first_half", "--device", "cpu", "--prove-layers", "-q"
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "something else than seal catches it: with --without seal --policy none it is still wrong (exit code 6)" in done.stdout
    assert "1 of 1 exploits caught" in done.stdout
    assert "cannot be trusted" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("0 of 1 exploits get through")


def test_a_pattern_without_a_case_is_wrong_usage():
    done = selftest(harness.BINARY, "--only", "exploits/none_such")
    assert done.returncode == 2
    assert "no case matches 'exploits/none_such'" in done.stderr


def test_what_needs_a_gpu_is_left_out(tmp_path):
    done = selftest(harness.BINARY, "--only", "cuda_plain", "--device", "cpu", "-v", TMPDIR=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left out: it needs a GPU" in done.stdout
    assert "1 left out: they need a GPU" in done.stdout


def test_a_case_that_is_not_as_expected_fails(installed):
    file = case_file(installed, "honest/plain")
    facts = json.loads(file.read_text())
    facts["expect"] = {"outcomes": ["wrong"], "exit_codes": [6]}
    file.write_text(json.dumps(facts))
    done = selftest(installed / "bin" / "cuda-agent", "--only", "honest/plain", "--device", "cpu")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "honest/plain: got pass (exit code 0), expected wrong (exit code 6)" in done.stdout
    assert "0 of 1 honest candidates passed" in done.stdout
    assert "cannot be trusted" in done.stdout.splitlines()[-1]


def test_a_broken_installation_is_named(installed):
    binary = installed / "bin" / "cuda-agent"
    file = case_file(installed, "exploits/zeros")
    file.write_text(file.read_text().replace('"what"', '"whta"'))
    done = selftest(binary, "--json")
    assert done.returncode == 3
    assert "unknown key 'whta'" in json.loads(done.stdout)["message"]
    shutil.rmtree(installed / "share" / "cuda-agent" / "selftest")
    done = selftest(binary)
    assert done.returncode == 3
    assert "cases of the selftest are missing" in done.stderr
    done = subprocess.run([str(binary), "policy", "show"], env=harness.environment(), capture_output=True, check=False)
    assert done.returncode == 0, "nothing else needs them"


def test_exploits_are_not_run_without_a_sandbox():
    done = selftest(harness.BINARY, "--only", "zeros", CUDA_AGENT_SANDBOX="none")
    assert done.returncode == 3
    assert "in a sandbox only" in done.stderr


def test_a_python_without_torch_is_the_machines_fault(tmp_path):
    (tmp_path / "python").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python").chmod(0o755)
    done = selftest(harness.BINARY, "--only", "zeros", "--device", "cpu", "--python", tmp_path / "python")
    assert done.returncode == 3, done.stdout + done.stderr
    assert str(tmp_path / "python") in done.stderr
