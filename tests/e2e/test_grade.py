"""The final reward: a pinned task, three asks, a signature, and what check-verdict makes of the file."""

import hashlib
import json
import re

import pytest

from harness import TINY_MODEL, cuda_agent, judged, tiny_mode, tiny_workspace

OTHER_MODEL = TINY_MODEL.replace("torch.relu(x)", "torch.sigmoid(x)")


@pytest.fixture(scope="module")
def key(tmp_path_factory):
    return {"CUDA_AGENT_KEY": str(tmp_path_factory.mktemp("key") / "key.pem")}


def task_folder(folder, text=TINY_MODEL):
    folder.mkdir()
    (folder / "model.py").write_text(text)
    return folder


@pytest.fixture(scope="module")
def graded(tmp_path_factory, key):
    """One grade of the tiny task: its answer and its workspace."""
    folder = tmp_path_factory.mktemp("grade")
    workspace = tiny_workspace(folder / "workspace")
    answer = judged("grade", workspace, "--task", task_folder(folder / "task"), "--baseline", "eager", env=key, timeout=600)
    return answer, workspace


def test_gives_a_signed_final_reward(graded, check_schema):
    answer, workspace = graded
    assert answer.code == 0, str(answer)
    verdict = answer.verdict
    check_schema(verdict)
    assert verdict["command"] == "grade"
    assert verdict["task"]["pinned"]
    assert verdict["reward"]["final"] and verdict["reward"]["value"] in (1, 2)
    runs = verdict["grade"]["runs"]
    assert [run["outcome"] for run in runs] == ["pass"] * 3
    assert len({run["seed"] for run in runs}) == 3
    assert verdict["grade"]["ratios"][0]["ratio"]["low"] == min(run["speed"]["ratios"][0]["ratio"]["low"] for run in runs)
    assert re.fullmatch("[0-9a-f]{64}", verdict["environment"]["cuda-agent.sha256"])
    kept = list((workspace / ".cuda-agent" / "grades").iterdir())
    assert len(kept) == 1 and json.loads(kept[0].read_text()) == verdict


def check(verdict, tmp_path, *arguments, env=None):
    file = tmp_path / "verdict.json"
    file.write_text(verdict if isinstance(verdict, str) else json.dumps(verdict))
    return cuda_agent("check-verdict", file, *arguments, env=env)


def test_check_verdict_holds_on_another_machine(graded, tmp_path):
    answer, _ = graded
    # Another machine: no key, no Python, no torch.
    done = check(answer.out, tmp_path, "--json", env={"CUDA_AGENT_KEY": str(tmp_path / "none"), "CUDA_AGENT_PYTHON": "/not/there", "PATH": "/none"})
    assert done.code == 0, str(done)
    assert done.verdict["valid"] and done.verdict["signed"] and done.verdict["recomputed"] > 20
    assert done.verdict["public_key"] == answer.verdict["signature"]["public_key"]


def with_another_digit(text, at):
    return text[:at] + ("2" if text[at] == "1" else "1") + text[at + 1 :]


def test_a_digit_that_was_changed_is_refused(graded, tmp_path):
    text = graded[0].out
    digit = re.compile(r"\d").search(text, text.index('"spans":[')).start()
    done = check(with_another_digit(text, digit), tmp_path)
    assert done.code == 4, str(done)
    assert "signature" in done.out and "DOES NOT HOLD" in done.out


def test_any_digit_of_it_counts(graded, tmp_path):
    text = graded[0].out
    digits = [found.start() for found in re.finditer(r"\d", text)]
    # The last digit of a long number is one that a double may not keep.
    last = [found.end() - 1 for found in re.finditer(r"\d\.\d{14,}(?![\de])", text)]
    assert len(last) > 50
    for at in digits[:: len(digits) // 100] + last[:: len(last) // 50]:
        done = check(with_another_digit(text, at), tmp_path)
        # In the place of an exponent it can be a number beyond all numbers, which is no JSON for anybody.
        assert done.code in (2, 4), f"{text[at - 40 : at + 20]}: {done}"
        assert done.code == 4 or "out of range" in done.err, str(done)


def test_a_name_that_is_there_twice_is_refused(graded, tmp_path):
    done = check('{"outcome":"pass",' + graded[0].out[1:], tmp_path)
    assert done.code == 4 and '"outcome"' in done.out, str(done)


def test_a_figure_that_was_changed_and_signed_again_is_refused(graded, tmp_path):
    verdict = json.loads(graded[0].out)
    verdict["signature"] = None
    verdict["grade"]["runs"][1]["speed"]["ratios"][0]["ratio"]["low"] *= 1.5
    done = check(verdict, tmp_path)
    assert done.code == 4, str(done)
    assert "grade.runs[1].speed.ratios.eager.low" in done.out


def test_the_key_that_was_asked_for_must_have_signed(graded, tmp_path, key):
    public = graded[0].verdict["signature"]["public_key"]
    assert check(graded[0].out, tmp_path, "--key", public).code == 0
    other = check(graded[0].out, tmp_path, "--key", "0" * 64)
    assert other.code == 4 and "not by the key" in other.out, str(other)
    own = check(graded[0].out, tmp_path, env=key)
    assert "the key of this machine" in own.out, str(own)


def test_replay_repeats_the_checks(graded, tmp_path):
    answer, workspace = graded
    one = json.loads(answer.out)
    one["grade"]["runs"] = one["grade"]["runs"][:1]  # one ask is enough to see it; the signature does not hold any more
    again = check(one, tmp_path, "--replay", workspace, "--device", "cpu", "--json")
    assert len(again.verdict["replayed"]) == 1, str(again)
    assert not any(problem.startswith("replay") for problem in again.verdict["problems"]), str(again)
    (workspace / "model_new.py").write_text((workspace / "model_new.py").read_text() + "\n")
    changed = check(one, tmp_path, "--replay", workspace, "--device", "cpu", "--json")
    assert any("candidate is another one" in problem for problem in changed.verdict["problems"]), str(changed)


@pytest.mark.parametrize("text", ["", "[1, 2]", "{", '{"schema": "cuda-agent/verdict/1"}', "\x00" * 100, "[" * 100000])
def test_what_is_no_verdict_is_a_usage_error(text, tmp_path):
    done = check(text, tmp_path)
    assert done.code == 2 and "Traceback" not in done.err, str(done)


def test_check_verdict_also_computes_unsigned_verdicts_again(tmp_path):
    answer = judged("run", tiny_workspace(tmp_path / "workspace"), "--baseline", "eager")
    assert answer.code == 0, str(answer)
    done = check(answer.out, tmp_path)
    assert done.code == 0 and "not signed" in done.out, str(done)


def test_needs_a_pinned_task(tmp_path, key):
    answer = judged("grade", tiny_workspace(tmp_path / "workspace"), env=key)
    assert answer.code == 2 and "--task" in answer.err + answer.out, str(answer)


def test_the_first_ask_that_fails_ends_it(tmp_path, key):
    workspace = tiny_workspace(tmp_path / "workspace", model_new=tiny_mode(11))
    answer = judged("grade", workspace, "--task", task_folder(tmp_path / "task"), env=key)
    assert (answer.code, answer.verdict["reward"]["value"], answer.verdict["reward"]["final"]) == (6, -1, True), str(answer)
    assert len(answer.verdict["grade"]["runs"]) == 1
    assert check(answer.out, tmp_path).code == 0


def test_task_folder_counts_and_not_the_workspaces_own(tmp_path):
    workspace = tiny_workspace(tmp_path / "workspace", model=OTHER_MODEL)
    assert judged("verify", workspace).code == 6
    answer = judged("verify", workspace, "--task", task_folder(tmp_path / "task"))
    assert answer.code == 0, str(answer)
    assert answer.verdict["task"]["pinned"]
    assert answer.verdict["task"]["sha256"] == hashlib.sha256(TINY_MODEL.encode()).hexdigest()
    assert any(one["name"] == "pinned task" for one in answer.verdict["protections"])


def test_another_task_than_the_one_asked_for_is_tampering(tmp_path):
    workspace = tiny_workspace(tmp_path / "workspace", model=OTHER_MODEL)
    wanted = hashlib.sha256(TINY_MODEL.encode()).hexdigest()
    answer = judged("verify", workspace, "--task-sha256", wanted)
    assert answer.code == 4 and wanted in answer.verdict["message"], str(answer)
    assert judged("verify", tiny_workspace(tmp_path / "right"), "--task-sha256", wanted).code == 0


def test_a_task_folder_without_a_task_says_so(tmp_path):
    answer = judged("verify", tiny_workspace(tmp_path / "workspace"), "--task", tmp_path)
    assert answer.code == 9 and "no model.py" in answer.verdict["message"], str(answer)


def test_strict_refuses_to_run_with_less(tmp_path):
    workspace = tiny_workspace(tmp_path / "workspace")
    weaker = {"CUDA_AGENT_SANDBOX": "none"}
    answer = judged("run", workspace, "--require-sandbox", "strict", env=weaker)
    assert answer.code == 3 and "not in force" in answer.verdict["message"], str(answer)
    accepted = judged("run", workspace, "--baseline", "eager", env=weaker)
    assert accepted.code == 0 and "weaker sandbox" in accepted.verdict["reward"]["reason"], str(accepted)


def test_a_key_that_cannot_be_made_is_said_before_anything_runs(tmp_path):
    workspace = tiny_workspace(tmp_path / "workspace")
    (tmp_path / "file").write_text("")
    answer = judged("grade", workspace, "--task", task_folder(tmp_path / "task"), env={"CUDA_AGENT_KEY": str(tmp_path / "file" / "key.pem")})
    assert answer.code == 3 and "key" in answer.verdict["message"], str(answer)
