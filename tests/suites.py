#!/usr/bin/env python3
"""Runs the exploits that must be caught and the look-alikes that must pass (docs/exploits.md).

    python tests/suites.py [--binary PATH] [--only PATTERN] [--also-policy] [--naive] [--jobs 2] [--json] [--write-docs]

Every case is a folder of tests/exploits/ or tests/honest/ with a case.json. It is copied to a temporary folder over the
files of its task (tests/exploits/tasks/) and judged there by the binary. Besides the verdict it is checked that nothing
is left: no process, no lock, no file. Exit code 0: all as expected; 1: not.
"""

import argparse
import concurrent.futures
import ctypes
import fcntl
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parent
REPOSITORY = TESTS.parent
TASKS = TESTS / "exploits" / "tasks"
DOCS = REPOSITORY / "docs" / "exploits.md"
LAYERS = ("values", "inputs", "outputs", "sandbox", "seal", "build", "snapshot", "policy", "clock")
KNOWN_KEYS = {
    "what", "row", "task", "expect", "honest_twin", "caught_by", "needs", "flags", "command", "links", "limit",
    "fools_naive", "naive_reason", "naive", "not_caught", "policy_too", "text", "variant_of",
}  # fmt: skip

# What an exploit leaves outside of its sandbox has this in its name, by agreement.
LITTER = "cuda-agent-exploit"
# A judge that is being rebuilt, or a machine that is short of something: asked again.
RETRIED = (1, 3)
RETRIES = 3
# On a machine that is busy one ratio says little: so many asks until a gap is said to be closed.
GAP_ASKS = 5
NAIVE_SECONDS = 120
# It takes the mean of a few calls, which one other process can spoil: so many chances to claim a speedup.
NAIVE_ASKS = 3


@dataclass
class Case:
    """One folder with a case.json."""

    folder: Path
    facts: dict

    @property
    def kind(self):
        return self.folder.parent.name  # "exploits" or "honest"

    @property
    def name(self):
        return f"{self.kind}/{self.folder.name}"

    @property
    def needs_cuda(self):
        return "cuda" in self.facts.get("needs", [])

    @property
    def gap(self):
        """Why an exploit passes for now; empty where it must be caught."""
        return self.facts.get("not_caught", "")

    @property
    def is_for_policy(self):
        """Whether the policy is what must catch it; an exploit for other layers is judged without it."""
        return self.facts.get("caught_by") == "policy"

    @property
    def expected(self):
        """(outcomes, exit codes) as of today."""
        if self.gap:
            return ["pass"], [0]
        return self.facts["expect"]["outcomes"], self.facts["expect"]["exit_codes"]


@dataclass
class Result:
    """What one case came to."""

    name: str
    expected: str
    outcome: str = ""
    exit_code: int = -1
    message: str = ""
    rules: list = field(default_factory=list)  # of the policy's findings
    policy: list = field(default_factory=list)  # the same where the policy was asked besides: --also-policy
    policy_seconds: float = 0.0
    ratio: list = field(default_factory=list)
    reward: object = None
    reward_reason: str = ""
    seconds: float = 0.0
    naive: dict = field(default_factory=dict)
    wrong: list = field(default_factory=list)  # what is not as it should be
    skipped: str = ""


class BadCase(Exception):
    """A case.json that says something impossible."""


def read_case(folder):
    """The Case of a folder; BadCase where its case.json is not as docs/exploits.md describes."""
    facts = json.loads((folder / "case.json").read_text())
    case = Case(folder, facts)
    if unknown := set(facts) - KNOWN_KEYS:
        raise BadCase(f"{case.name}: unknown keys {sorted(unknown)}")
    required = ["what", "row"] + (["expect", "honest_twin", "caught_by"] if case.kind == "exploits" else [])
    if missing := [key for key in required if key not in facts]:
        raise BadCase(f"{case.name}: no {', '.join(missing)}")
    if case.kind == "honest":
        facts.setdefault("expect", {"outcomes": ["pass"], "exit_codes": [0]})
    else:
        check_exploit(case)
    if "task" in facts and not (TASKS / facts["task"]).is_dir():
        raise BadCase(f"{case.name}: no task {facts['task']}")
    return case


def check_exploit(case):
    facts = case.facts
    if facts["caught_by"] not in LAYERS:
        raise BadCase(f"{case.name}: caught_by is none of {', '.join(LAYERS)}")
    if case.is_for_policy and "rule" not in facts["expect"]:
        raise BadCase(f"{case.name}: expect names no rule of the policy")
    if case.is_for_policy == ("policy_too" in facts):
        raise BadCase(f"{case.name}: policy_too is for what another layer than the policy catches, and is needed there")
    if not facts.get("fools_naive", True) and not facts.get("naive_reason"):
        raise BadCase(f"{case.name}: an exploit that fools nobody needs a naive_reason")
    if "variant_of" in facts and not (case.folder.parent / facts["variant_of"] / "case.json").is_file():
        raise BadCase(f"{case.name}: a variant of {facts['variant_of']}, which is not there")
    twin = facts["honest_twin"]
    if not (TESTS / "honest" / twin / "case.json").is_file():
        raise BadCase(f"{case.name}: no honest twin {twin}")


def all_cases(pattern="*"):
    """Every case whose name or folder matches a pattern, exploits first."""
    cases = []
    for kind in ("exploits", "honest"):
        for file in sorted((TESTS / kind).glob("*/case.json")):
            case = read_case(file.parent)
            if any(fnmatch.fnmatch(text, pattern) for text in (case.name, case.folder.name)):
                cases.append(case)
    return cases


# --- a workspace of a case --------------------------------------------------------------------------------------------


def make_workspace(case, into):
    """The task's files, over them the case's own."""
    own_bindings = list((case.folder / "kernels").glob("*_binding.cpp"))
    into.mkdir(parents=True)
    (into / "kernels").mkdir()
    if task := case.facts.get("task"):
        shutil.copytree(TASKS / task, into, dirs_exist_ok=True)
        if own_bindings:
            for file in (into / "kernels").iterdir():
                file.unlink()
    if not own_bindings:
        shutil.copy(TASKS / "case_binding.cpp", into / "kernels")
    shutil.copytree(case.folder, into, dirs_exist_ok=True, ignore=shutil.ignore_patterns("case.json", "__pycache__"))
    for link, target in case.facts.get("links", {}).items():
        (into / link).unlink(missing_ok=True)
        (into / link).symlink_to(target)
    return into


def listing(folder):
    """Every path below a folder with a hash of its content, the judge's own state left out."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] == ".cuda-agent":
            continue
        if path.is_symlink():
            found[name] = "-> " + os.readlink(path)
        else:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
    return found


def litter():
    """What exploits have left in places that all can write to."""
    return sorted(str(path) for place in ("/tmp", "/dev/shm") for path in Path(place).glob(f"*{LITTER}*"))


def adopt_orphans():
    """Processes that lose their parent become this one's children, so that they can be seen."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def left_running(within=5.0):
    """Names of this process's children that are still alive after `within` seconds."""
    end = time.monotonic() + within
    while True:
        alive = []
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
                if int(fields["PPid"]) == os.getpid() and not fields["State"].startswith("Z"):
                    alive.append(fields["Name"])
            except (OSError, ValueError, KeyError):
                continue
        if not alive or time.monotonic() > end:
            return alive
        time.sleep(0.05)


def lock_is_free(workspace):
    lock = workspace / ".cuda-agent" / "lock"
    if not lock.exists():
        return True
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


# --- judging ----------------------------------------------------------------------------------------------------------


def command_of(case, workspace, options):
    """The arguments of cuda-agent for a case."""
    command = case.facts.get("command", "verify")
    device = ["--device", "cuda" if case.needs_cuda else "cpu"]
    arguments = [str(options.binary), command, str(workspace), *device, "--timeout", "180"]
    if command != "compile":
        arguments += ["--call-timeout", "6"]
    if command in ("run", "profile"):
        arguments += ["--baseline", "eager"]
    if not case.facts.get("text"):
        arguments.append("--json")
    if case.kind == "exploits" and not case.is_for_policy:
        arguments += ["--policy", "none"]
    return arguments + case.facts.get("flags", [])


def environment(options):
    """The environment of a judge: no settings of the caller's but the cache and the interpreter."""
    unwanted = ("CUDA_AGENT", "CUDA_VISIBLE_DEVICES", "CXX", "NO_COLOR", "TORCH_CUDA_ARCH_LIST")
    result = {name: value for name, value in os.environ.items() if name not in unwanted}
    result["CUDA_AGENT_CACHE"] = str(options.cache)
    return result


def ask(arguments, options):
    """(exit code, stdout, stderr, seconds) of a judge, asked again while its binary is being replaced."""
    for attempt in range(RETRIES + 1):
        started = time.monotonic()
        try:
            done = subprocess.run(
                arguments, env=environment(options), stdin=subprocess.DEVNULL, capture_output=True, timeout=400
            )
        except (FileNotFoundError, PermissionError, OSError) as error:
            if attempt == RETRIES:
                raise
            print(f"waiting for the binary: {error}", file=sys.stderr)
            time.sleep(20)
            continue
        if done.returncode not in RETRIED or attempt == RETRIES:
            break
        time.sleep(10)
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    return done.returncode, out, err, time.monotonic() - started


def judge(case, workspace, options, result):
    """Asks the judge and compares its verdict with what the case expects."""
    before, litter_before = listing(workspace), litter()
    code, out, err, result.seconds = ask(command_of(case, workspace, options), options)
    result.exit_code = code
    if "\x1b" in out + err or "\x07" in out + err:
        result.wrong.append("a terminal's escape code reached the output")
    if case.facts.get("text"):
        first = out.splitlines()[0] if out else ""
        outcome = next((word for word in ("pass", "wrong", "crash", "timeout") if first.startswith(word.upper())), first)
        result.outcome, result.message = outcome, first
    else:
        note_verdict(result, out, err)
    outcomes, codes = case.expected
    if result.outcome not in outcomes or code not in codes:
        words = f"got {result.outcome or '?'} (exit code {code}), expected {' or '.join(outcomes)}"
        if case.gap and result.outcome != "pass":
            words += f": it is caught now, so take the mark away ({case.gap})"
        result.wrong.append(words)
    else:
        check_expectation(case, result)
        check_gain(case, result, lambda: ask_ratio(case, workspace, options))
    if left := left_running():
        result.wrong.append(f"left running: {', '.join(left)}")
    if not lock_is_free(workspace):
        result.wrong.append("the workspace is still locked")
    after = listing(workspace)
    if changed := sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)):
        result.wrong.append(f"changed in the workspace: {', '.join(changed)}")
    if more := [path for path in litter() if path not in litter_before]:
        result.wrong.append(f"left outside of the sandbox: {', '.join(more)}")


def note_verdict(result, out, err):
    try:
        verdict = json.loads(out)  # exactly one object
    except ValueError:
        result.outcome = "no verdict"
        result.wrong.append(f"no JSON object on standard output: {(out + err)[-400:]}")
        return
    result.outcome, result.message = verdict["outcome"], verdict["message"]
    result.reward, result.reward_reason = verdict["reward"]["value"], verdict["reward"]["reason"]
    result.rules = rules_of(verdict)
    for one in (verdict.get("speed") or {}).get("ratios", []):
        if one["baseline"] == "eager":
            result.ratio = [one["ratio"]["low"], one["ratio"]["estimate"], one["ratio"]["high"]]


def rules_of(verdict):
    """The rules that a verdict says were broken."""
    return sorted({finding["rule"] for finding in (verdict.get("policy") or {}).get("findings", [])})


def ask_policy(case, workspace, options, result):
    """Judges an exploit of another layer with the policy: is it refused as well, or not, as its case says?"""
    if case.needs_cuda and not has_gpu():
        arguments = [str(options.binary), "compile", str(workspace), "--arch", "90a", "--json", "--timeout", "600"]
    else:
        device = "cuda" if case.needs_cuda else "cpu"
        arguments = [str(options.binary), "verify", str(workspace), "--device", device, "--json", "--timeout", "180"]
        arguments += ["--call-timeout", "6", "--trials", "2"]
    _, out, err, result.policy_seconds = ask(arguments, options)
    try:
        verdict = json.loads(out)
    except ValueError:
        result.wrong.append(f"with the policy: no JSON object on standard output: {(out + err)[-400:]}")
        return
    result.policy = rules_of(verdict)
    if case.facts["policy_too"] and not result.policy:
        result.wrong.append(f"the policy does not refuse it: {verdict['outcome']}, {verdict['message']}")
    if not case.facts["policy_too"] and result.policy:
        result.wrong.append(f"the policy refuses it too, so say policy_too: {verdict['message']}")


def check_expectation(case, result):
    """What a case asks for beyond outcome and exit code."""
    expect = case.facts["expect"]
    if "rule" in expect and expect["rule"] not in result.rules:
        result.wrong.append(f"not refused by {expect['rule']}, but by {', '.join(result.rules) or 'no rule'}")
    if "rule" in expect and result.reward != -1:
        result.wrong.append(f"reward {result.reward} for a broken rule, expected -1")
    if not case.gap and "message" in expect and not re.search(expect["message"], result.message):
        result.wrong.append(f"the message does not match {expect['message']!r}: {result.message}")
    if not case.gap and "reward" in expect and result.reward != expect["reward"]:
        result.wrong.append(f"reward {result.reward}, expected {expect['reward']}")
    if "reward" in expect and expect["reward"] is None and "--policy none" in result.reward_reason:
        result.wrong.append("there is no reward since the policy is off, which hides why there should be none")


def check_gain(case, result, ask_again):
    """Where an exploit is bound and not refused, it must gain nothing. ask_again: one more ratio of it."""
    most = case.facts["expect"].get("most_speedup")
    if most is None or result.outcome != "pass":
        return
    estimates = [result.ratio[1] if result.ratio else float("inf")]
    if case.gap:
        while max(estimates) <= most and len(estimates) < GAP_ASKS:
            estimates.append(ask_again())
        if max(estimates) <= most:
            words = f"{max(estimates):.2f}x eager at most: it gains nothing now, so take the mark away"
            result.wrong.append(f"{words} ({case.gap})")
        return
    if estimates[0] <= most:
        return
    # Certainly faster, or so in two asks of three.
    if result.ratio and result.ratio[0] <= most:
        estimates += [ask_again(), ask_again()]
    if sorted(estimates)[len(estimates) // 2] > most:
        said = ", ".join(f"{one:.2f}" for one in estimates)
        result.wrong.append(f"{said}x eager, expected {most} at most")


def ask_ratio(case, workspace, options):
    """The ratio to eager of one more ask; infinite where there is none."""
    again = Result(case.name, "")
    _, out, err, _ = ask(command_of(case, workspace, options), options)
    note_verdict(again, out, err)
    return again.ratio[1] if again.ratio else float("inf")


# --- the naive judge --------------------------------------------------------------------------------------------------


def naive_command(case, workspace, options):
    """The naive judge has no sandbox, so it is put into one: nothing of an exploit may reach this machine."""
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        raise SystemExit("--naive needs bubblewrap: exploits are never run without a sandbox")
    cache = options.cache / "naive"
    cache.mkdir(parents=True, exist_ok=True)
    naive = case.facts.get("naive", {})
    flags = [f"--{flag}" for flag in naive.get("flags", [])]
    box = [bubblewrap, "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--ro-bind", "/", "/"]
    box += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/dev/shm", "--bind", str(cache), str(cache)]
    box += ["--bind", str(workspace), str(workspace), "--chdir", str(workspace)]
    box += ["--setenv", "PYTHONPATH", str(workspace), "--setenv", "PYTHONDONTWRITEBYTECODE", "1"]
    return [*box, "--", str(options.python), str(TESTS / "naive_judge.py"), str(workspace), str(cache), *flags]


def naive_answer(command):
    """The last line that looks like an answer is its answer, as in many a script."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=NAIVE_SECONDS)
        answers = [line for line in done.stdout.decode(errors="replace").splitlines() if '"result"' in line]
        answer = json.loads(answers[-1]) if answers and done.returncode == 0 else {"result": "none"}
        if not answers:
            answer["error"] = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return answer
    except subprocess.TimeoutExpired:
        return {"result": "hangs"}
    except ValueError:
        return {"result": "garbled"}


def ask_naive(case, workspace, options, result):
    """Shows a case to the naive judge, and again where it has claimed less of a speedup than the case says."""
    for file in ("binding.cpp", "binding_registry.h"):
        shutil.copy(REPOSITORY / "agent_workdir" / file, workspace / file)
    wanted = case.facts.get("naive", {}).get("speedup", 0)
    for _ in range(NAIVE_ASKS):
        answer = naive_answer(naive_command(case, workspace, options))
        passed = answer["result"] == "[PASS]"
        answer["fooled"] = case.kind == "exploits" and passed and answer.get("speedup", 0) >= wanted
        if answer["fooled"] or not passed or not wanted or not case.facts.get("fools_naive", True):
            break
    result.naive = answer
    if case.kind == "honest":
        return
    if case.facts.get("fools_naive", True) and not answer["fooled"]:
        result.wrong.append(f"does not fool the naive judge: {answer}")
    if not case.facts.get("fools_naive", True) and answer["fooled"]:
        result.wrong.append(f"fools the naive judge after all: {answer}")


# --- all of them ------------------------------------------------------------------------------------------------------


def has_gpu():
    return any(Path("/dev").glob("nvidia[0-9]*"))


def run_case(case, options):
    """The Result of a case; run it in a process of its own, since it looks at that process's children."""
    outcomes, codes = case.expected
    result = Result(case.name, f"{'/'.join(outcomes)} ({'/'.join(map(str, codes))})")
    if case.needs_cuda and not has_gpu() and not options.compile_cuda:
        result.skipped = "needs a GPU"
    asks_policy = options.also_policy and "policy_too" in case.facts
    if result.skipped and not asks_policy:
        return result
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="cuda-agent-suite-") as folder:
        workspace = make_workspace(case, Path(folder) / "workspace")
        if case.needs_cuda and not has_gpu():
            if options.compile_cuda:
                compile_cuda(case, workspace, options, result)
        elif not options.only_naive:
            judge(case, workspace, options, result)
        if asks_policy:
            shutil.rmtree(workspace)
            make_workspace(case, workspace)
            ask_policy(case, workspace, options, result)
        if options.naive and not case.needs_cuda:
            shutil.rmtree(workspace)
            make_workspace(case, workspace)
            ask_naive(case, workspace, options, result)
    return result


def compile_cuda(case, workspace, options, result):
    """Without a GPU: only that the sources are what a compiler takes, and honest ones what the policy takes."""
    arguments = [str(options.binary), "compile", str(workspace), "--arch", "90a", "--json", "--timeout", "600"]
    if case.kind == "exploits":
        arguments += ["--policy", "none"]
    result.exit_code, out, err, result.seconds = ask(arguments, options)
    note_verdict(result, out, err)
    if result.outcome != "pass":
        result.wrong.append(f"compile: {result.outcome}: {result.message}")
    result.skipped = "compiled, not run: needs a GPU"


def run_in_process(case, options):
    """run_case in a child, so that what a case leaves running is its own."""
    with tempfile.NamedTemporaryFile(prefix="cuda-agent-suite-", suffix=".json") as file:
        command = [sys.executable, __file__, "--one", case.name, "--result", file.name, *options.passed_on]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
        text = Path(file.name).read_text()
    if not text:
        result = Result(case.name, "")
        result.wrong.append("the runner failed: " + done.stderr.decode(errors="replace")[-2000:])
        return result
    return Result(**json.loads(text))


def run_all(cases, options, shown=lambda result: None):
    """The results of all cases, a few at a time, in the order of the cases."""
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        started = [pool.submit(run_in_process, case, options) for case in cases]
        results = []
        for one in started:
            results.append(one.result())
            shown(results[-1])
        return results


def results_file(options):
    return options.cache / "suites.json"


def remember(results, options):
    """Keeps the last result of every case, for --write-docs."""
    file = results_file(options)
    kept = json.loads(file.read_text()) if file.exists() else {}
    for result in results:
        new = asdict(result)
        if not result.naive and result.name in kept:
            new["naive"] = kept[result.name].get("naive", {})
        if not options.also_policy and result.name in kept:
            new["policy"] = kept[result.name].get("policy", [])
        if result.exit_code < 0 and result.name in kept:
            new = {**kept[result.name], "naive": new["naive"], "policy": new["policy"]}
        kept[result.name] = new
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, indent=1))


def say_naive(answer):
    """The naive judge's answer in a few words."""
    if not answer:
        return ""
    speed = f" {answer['speedup']:.3g}x" if "speedup" in answer else ""
    return f"{answer['result']}{speed}" + (", fooled" if answer.get("fooled") else "")


def line_of(result, case):
    state = "skipped" if result.skipped and not result.wrong else "WRONG" if result.wrong else "gap" if case.gap else "ok"
    got = f"{result.outcome} ({result.exit_code})" if result.outcome else "-"
    layer = case.facts.get("caught_by", "-")
    asked = ""
    if result.policy_seconds:
        asked = f" | policy, {result.policy_seconds:.1f} s: {', '.join(result.policy) or 'nothing'}"
    return (
        f"{state:8}{case.name:44} {result.expected:26} {got:26} {layer:9} {result.seconds:6.1f}  "
        f"{say_naive(result.naive):24} {result.message[:90]}{asked}"
    )


def summary(cases, results):
    """Counts, for people."""
    pairs = list(zip(cases, results))
    ran = [(case, result) for case, result in pairs if not result.skipped]
    exploits = [pair for pair in ran if pair[0].kind == "exploits"]
    gaps = [case for case, _ in exploits if case.gap]
    refused = [case for case in gaps if case.facts["policy_too"]]
    wrong = [result for result in results if result.wrong]
    honest = [pair for pair in ran if pair[0].kind == "honest"]
    lines = [f"{result.name}: {text}" for result in wrong for text in result.wrong]
    lines.append(
        f"{len(exploits)} exploits: {len(exploits) - len(gaps)} to be caught, {len(refused)} that the policy alone refuses, "
        f"{len(gaps) - len(refused)} that nothing catches; {len(honest)} honest cases; {len(pairs) - len(ran)} skipped; "
        f"{len(wrong)} not as expected"
    )
    return lines


# --- docs/exploits.md -------------------------------------------------------------------------------------------------

INTRODUCTION = """# Exploits and their look-alikes

`tests/exploits/` holds ways to cheat an evaluator of kernels, `tests/honest/` code that looks like them and is right. Each exploit must end in a verdict that is not a pass, or gain
nothing; each honest case must pass. `python tests/suites.py` runs them, one by one with `--only NAME`.

Honest cases are judged with the policy. So are exploits that only the policy catches; all others are judged with `--policy none`, or it would come first and the layers behind it would
go untested. `--also-policy` tries these with the policy too: the column "policy too" says whether it refuses them as well. Where it says no, the named layer stands alone.

`tests/naive_judge.py` is the evaluator that exists many times over: one process, `torch.allclose` on three seeds, `time.perf_counter`. An exploit that does not fool it tests nothing, so
`--naive` shows each of them to it (in a sandbox: nothing of an exploit reaches this machine). Where an exploit cannot fool it, the table says why.

A case is a folder with `case.json` and the files that differ from those of its task in `tests/exploits/tasks/`:

| key | means |
| --- | --- |
| `what`, `row` | what it does; the kind of attack it stands for |
| `task` | the folder of `tests/exploits/tasks/` that it starts from |
| `expect` | `outcomes` and `exit_codes`; `message`, a regular expression; `rule` of the policy, among the findings; `reward`; `most_speedup`, what the ratio may reach where an exploit is bound and not refused: by its interval's low end in one ask, or by the median of three |
| `caught_by` | the layer that catches it: `values` (the comparison of every call), `inputs` (fresh ones on every call), `outputs` (what may be returned), `sandbox`, `seal` (system calls), `build`, `snapshot`, `policy`, `clock` |
| `policy_too` | whether the policy refuses it as well |
| `honest_twin` | the honest case that it resembles |
| `needs`, `command`, `flags`, `links`, `text` | `cuda`: a GPU; the command (default `verify`) and more of its flags; links to be made; without `--json` |
| `fools_naive`, `naive_reason`, `naive` | false, with the reason; `flags` of the naive judge, `speedup` that it has to claim |
| `not_caught` | its layer does not catch it: why |
| `variant_of` | another case that shows the same |

A case that is marked as a gap and is caught after all fails, so that no mark outlives its reason. The tables below are written by `python tests/suites.py --write-docs` from the cases and
their last results.
"""


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def docs_rows(cases, kept):
    for case in cases:
        facts, last = case.facts, kept.get(case.name, {})
        naive = last.get("naive", {})
        if case.needs_cuda:
            said = "not shown: needs a GPU"
        elif not facts.get("fools_naive", True):
            said = "not fooled: " + facts["naive_reason"]
        elif naive.get("fooled") and facts.get("naive", {}).get("speedup"):
            said = f"pass, more than {facts['naive']['speedup']:g}×"
        else:
            said = "pass" if naive.get("result") == "[PASS]" else naive.get("result", "not shown")
        layer = facts["caught_by"]
        if case.gap:
            layer = f"**{'the policy alone' if facts['policy_too'] else 'nothing yet'}**, not by {layer}: {case.gap}"
        elif case.is_for_policy:
            layer += f": `{facts['expect']['rule']}`"
        elif "most_speedup" in facts["expect"]:
            layer += " (bound: gains nothing)"
        too = "" if case.is_for_policy else "yes" if facts["policy_too"] else "no"
        if last.get("policy") == ["no-own-kernel"]:
            too += ": no own kernel"
        outcomes = "/".join(facts["expect"]["outcomes"])
        if "reward" in facts["expect"]:
            outcomes += f", reward {json.dumps(facts['expect']['reward'])}"
        yield case, said, layer, too, outcomes


def write_docs(options):
    """docs/exploits.md from all cases and the last results."""
    file = results_file(options)
    kept = json.loads(file.read_text()) if file.exists() else {}
    cases = all_cases()
    exploits = [case for case in cases if case.kind == "exploits"]
    lines = [INTRODUCTION]
    for section in dict.fromkeys(case.facts["row"].split(":")[0] for case in exploits):
        lines += [f"## {section}", "", "| attack | case | what it does | caught by | policy too | verdict | naive judge | twin |"]
        lines.append("| --- " * 8 + "|")
        rows = [one for one in docs_rows(exploits, kept) if one[0].facts["row"].split(":")[0] == section]
        for case, said, layer, too, outcomes in sorted(rows, key=lambda one: one[0].facts["row"]):
            row = case.facts["row"].split(":", 1)[-1].strip()
            twin = f"`{case.facts['honest_twin']}`"
            cells = (row, f"`{case.folder.name}`", case.facts["what"], layer, too, outcomes, said, twin)
            lines.append("| " + " | ".join(map(cell, cells)) + " |")
        lines.append("")
    lines += ["## Honest look-alikes", "", "| case | what it does |", "| --- | --- |"]
    for case in cases:
        if case.kind == "honest":
            needs = " (needs a GPU)" if case.needs_cuda else ""
            lines.append(f"| `{case.folder.name}` | {cell(case.facts['what'])}{needs} |")
    DOCS.write_text("\n".join(lines) + "\n")


# --- the command line -------------------------------------------------------------------------------------------------


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    binary = os.environ.get("CUDA_AGENT_BINARY", REPOSITORY / "build" / "src" / "cuda-agent")
    parser.add_argument("--binary", type=Path, default=Path(binary), help="the judge")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of cases, such as 'cache_*' or 'honest/*'")
    parser.add_argument("--also-policy", action="store_true", help="try exploits of other layers with the policy as well")
    parser.add_argument("--naive", action="store_true", help="show the cases to the naive judge as well")
    parser.add_argument("--only-naive", action="store_true", help="show them to the naive judge alone")
    parser.add_argument("--compile-cuda", action="store_true", help="without a GPU, at least compile what needs one")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--json", action="store_true", help="print the results as one JSON array")
    parser.add_argument("--write-docs", action="store_true", help="write docs/exploits.md from the last results, and end")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--result", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.naive = options.naive or options.only_naive
    options.binary = options.binary.absolute()
    default_cache = options.binary.parent.parent / "e2e-cache"
    options.cache = Path(os.environ.get("CUDA_AGENT_CACHE", default_cache)).absolute()
    options.python = os.environ.get("CUDA_AGENT_PYTHON") or REPOSITORY / ".venv" / "bin" / "python"
    options.passed_on = ["--binary", str(options.binary)]
    for flag in ("also_policy", "naive", "only_naive", "compile_cuda"):
        if getattr(options, flag):
            options.passed_on.append("--" + flag.replace("_", "-"))
    return options


def main():
    options = parse()
    if options.one:
        case = read_case(TESTS / options.one)
        Path(options.result).write_text(json.dumps(asdict(run_case(case, options))))
        return 0
    if options.write_docs:
        write_docs(options)
        return 0
    cases = all_cases(options.only)
    if not cases:
        print(f"no case matches {options.only}", file=sys.stderr)
        return 1
    by_name = {case.name: case for case in cases}
    say = (lambda result: None) if options.json else lambda result: print(line_of(result, by_name[result.name]), flush=True)
    if not options.json:
        print(f"{'':8}{'case':44} {'expected':26} {'got':26} {'layer':9} {'s':>6}  {'naive judge':24} message")
    results = run_all(cases, options, say)
    remember(results, options)
    if options.json:
        print(json.dumps([asdict(result) for result in results], indent=1))
    else:
        print("\n".join(summary(cases, results)))
    return 1 if any(result.wrong for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
