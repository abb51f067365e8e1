#!/usr/bin/env python3
"""Shows the cases of `cuda-agent selftest` to a naive judge as well, and writes docs/exploits.md.

    python tests/suites.py [--binary PATH] [--only PATTERN] [--jobs N] [--prove-layers] [--write-docs]

The judge's answers are those of `cuda-agent selftest`, which makes the workspaces too. Exit code 0: all as expected, and
every exploit fools the naive judge that its case.json says so of; 1: not; else that of the selftest.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent
REPOSITORY = TESTS.parent
DOCS = REPOSITORY / "docs" / "exploits.md"
EXAMPLE = REPOSITORY / "agent_workdir"

NAIVE_SECONDS = 120
# It takes the mean of a few calls, which one other process can spoil: so many chances to claim a speedup.
NAIVE_ASKS = 3


@dataclass
class Case:
    """One folder with a case.json; what that may say is checked by the selftest, but for what is about the naive judge."""

    folder: Path
    facts: dict

    @property
    def is_exploit(self):
        return self.folder.parent.name == "exploits"

    @property
    def name(self):
        return f"{self.folder.parent.name}/{self.folder.name}"

    @property
    def needs_cuda(self):
        return "cuda" in self.facts.get("needs", [])

    @property
    def fools_naive(self):
        return self.is_exploit and self.facts.get("fools_naive", True)

    @property
    def naive_speedup(self):
        """What the naive judge has to claim to be fooled, beside a pass."""
        return self.facts.get("naive", {}).get("speedup", 0)


def read_cases():
    """Every case by its name, exploits first."""
    cases = {}
    for kind in ("exploits", "honest"):
        for file in sorted((TESTS / kind).glob("*/case.json")):
            case = Case(file.parent, json.loads(file.read_text()))
            if case.is_exploit and not case.fools_naive and not case.facts.get("naive_reason"):
                sys.exit(f"{file}: an exploit that fools nobody needs a naive_reason: say why the naive judge is not fooled")
            cases[case.name] = case
    return cases


# --- the judge --------------------------------------------------------------------------------------------------------


def selftest(options, temporary):
    """(exit code, answer) of the selftest, whose workspaces are kept in `temporary`."""
    command = [str(options.binary), "selftest", "--json", "--keep", "--only", options.only, "--python", str(options.python)]
    command += ["--jobs", str(options.jobs)]
    if options.prove_layers:
        command.append("--prove-layers")
    environment = os.environ | {"CUDA_AGENT_CACHE": str(options.cache), "TMPDIR": temporary}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    answer = json.loads(done.stdout or '{"message": "it said nothing"}')
    if "cases" not in answer:
        sys.exit(f"{options.binary} selftest (exit code {done.returncode}): {answer['message']}")
    return done.returncode, answer


# --- the naive judge --------------------------------------------------------------------------------------------------


def naive_command(case, workspace, options):
    """The naive judge has no sandbox, so it is put into one: nothing of an exploit may reach this machine."""
    cache = options.cache / "naive"
    cache.mkdir(parents=True, exist_ok=True)
    flags = [f"--{flag}" for flag in case.facts.get("naive", {}).get("flags", [])]
    box = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--ro-bind", "/", "/"]
    box += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/dev/shm", "--bind", str(cache), str(cache)]
    box += ["--bind", str(workspace), str(workspace), "--chdir", str(workspace)]
    # A tree of ours may lie where the sandbox has nothing.
    box += ["--ro-bind", str(TESTS / "naive_judge.py"), "/tmp/naive_judge.py"]
    box += ["--setenv", "PYTHONPATH", str(workspace), "--setenv", "PYTHONDONTWRITEBYTECODE", "1"]
    return [*box, "--", str(options.python), "/tmp/naive_judge.py", str(workspace), str(cache), *flags]


def naive_answer(command):
    """The last line that looks like an answer is its answer, as in many a script."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=NAIVE_SECONDS, check=False)
        answers = [line for line in done.stdout.decode(errors="replace").splitlines() if '"result"' in line]
        answer = json.loads(answers[-1]) if answers and done.returncode == 0 else {"result": "none"}
        if not answers:
            answer["error"] = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return answer
    except subprocess.TimeoutExpired:
        return {"result": "hangs"}
    except ValueError:
        return {"result": "garbled"}


def ask_naive(case, workspace, options):
    """Its answer, asked again where it has claimed less of a speedup than the case says."""
    for file in ("binding.cpp", "binding_registry.h"):
        shutil.copy(EXAMPLE / file, workspace / file)
    for _ in range(NAIVE_ASKS):
        answer = naive_answer(naive_command(case, workspace, options))
        passed = answer["result"] == "[PASS]"
        answer["fooled"] = case.is_exploit and passed and answer.get("speedup", 0) >= case.naive_speedup
        if answer["fooled"] or not passed or not case.fools_naive:
            break
    return answer


def ask_all_naive(cases, judged, options):
    """The naive judge's answer by the name of a case, for all that have a workspace and run on a CPU."""
    shown = [one for one in judged if one["workspace"] and not cases[one["name"]].needs_cuda]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        answers = pool.map(lambda one: ask_naive(cases[one["name"]], Path(one["workspace"]), options), shown)
        return {one["name"]: answer for one, answer in zip(shown, answers, strict=True)}


def wrong_about_naive(case, answer):
    """A sentence, where the naive judge is fooled and should not be, or the other way round; else nothing."""
    if case.fools_naive == answer["fooled"]:
        return ""
    return f"{case.name}: {'does not fool the naive judge' if case.fools_naive else 'fools the naive judge'}: {answer}"


# --- docs/exploits.md -------------------------------------------------------------------------------------------------


def results_file(options):
    return options.cache / "suites.json"


def kept_results(options):
    file = results_file(options)
    return json.loads(file.read_text()) if file.exists() else {}


def remember(judged, naive, options):
    """Keeps the last answers about every case, for --write-docs."""
    kept = kept_results(options)
    for one in judged:
        new = kept.setdefault(one["name"], {})
        if one["proof"]:
            new["proof"] = one["proof"]
        if one["name"] in naive:
            new["naive"] = naive[one["name"]]
    results_file(options).write_text(json.dumps(kept, indent=1))


INTRODUCTION = """# Exploits and their look-alikes

`tests/exploits/` holds ways to cheat an evaluator of kernels, `tests/honest/` code that looks like them and is right. Each exploit must end in a verdict that is not a pass, or gain
nothing; each honest case must pass. `cuda-agent selftest` runs them, one by one with `--only NAME`.

Honest cases are judged with the policy. So are exploits that only the policy catches; all others are judged with `--policy none`, or it would come first and the layers behind it would
go untested.

`cuda-agent selftest --prove-layers` shows that the layer which is said to catch an exploit is what does. It judges each again with its layers switched off, all that catch it: then it must
get through, or gain speed where it is bound and not refused. Where several catch it, each must do so with the others switched off; and the policy, with all others switched off, must
refuse what it is said to refuse, and nothing else. Layers that are how the judge is built cannot be switched off; how many exploits they catch is said at the end.

| layer | is | switched off by |
| --- | --- | --- |
| `comparison` | structure, dtypes and values of every call are compared with eager's, in another process | `--without comparison` |
| `other-inputs` | inputs of other signs, and with one huge value, after the trials | `--only-drawn-inputs` |
| `precision` | the error against float64 | `--precision any` |
| `fresh-inputs` | inputs are drawn anew for every call | `--without fresh-inputs` |
| `seeds` | nothing that a candidate is told of seeds says which inputs come; a seed that was asked for has no reward | |
| `process` | the candidate has a process of its own: what it patches there, or how it ends, decides nothing, and what that process says is checked | |
| `sandbox` | bubblewrap or landlock around that process | |
| `seal` | system calls that are taken from it before it hears of the candidate | `--without seal` |
| `stopping` | it is stopped while it is not called, and that is checked | `--without stopping` |
| `clock` | the supervisor's, outside of that process; on a GPU the gate | |
| `baseline` | eager measured alone, without a candidate that could slow it | |
| `limits` | of time | |
| `printing` | what it prints is captured, cut and escaped | |
| `build` | compilers see `kernels/` and the system, and no task | |
| `snapshot` | what is judged is a copy of the files that count, without links | |
| `policy` | rules on `model_new.py`, an allow-list over what was built | `--policy none` |

`tests/naive_judge.py` is the evaluator that exists many times over: one process, `torch.allclose` on three seeds, `time.perf_counter`. An exploit that does not fool it tests nothing, so
`python tests/suites.py` has the selftest judge the cases and shows each of them to the naive judge as well (in a sandbox: nothing of an exploit reaches this machine). Where an exploit
cannot fool it, the table says why.

A case is a folder with `case.json` and the files that differ from those of its task in `tests/exploits/tasks/`:

| key | means |
| --- | --- |
| `what`, `row` | what it does; the kind of attack it stands for |
| `task` | the folder of `tests/exploits/tasks/` that it starts from |
| `expect` | `outcomes` and `exit_codes`; `message`, a regular expression; `rule` of the policy, among the findings; `reward`; `most_speedup`, what the ratio may reach where an exploit is bound and not refused: by its interval's low end in one ask, or by the median of three |
| `caught_by` | the layer that catches it |
| `also_caught_by` | other layers that would catch it by themselves, `policy` among them |
| `honest_twin` | the honest case that it resembles |
| `needs`, `command`, `flags`, `links`, `text` | `cuda`: a GPU; the command (default `verify`) and more of its flags; links to be made; without `--json` |
| `fools_naive`, `naive_reason`, `naive` | false, with the reason; `flags` of the naive judge, `speedup` that it has to claim |
| `not_caught` | its layer does not catch it: why. With `policy` under `also_caught_by` the policy must, and `--prove-layers` fails once something else does, so that no mark outlives its reason |
| `variant_of` | another case that shows the same |

The tables below are written by `python tests/suites.py --write-docs` from the cases and their last results with `--prove-layers`.
"""


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def layer_in_docs(case, last):
    """What catches it, and which others do."""
    facts = case.facts
    layer, also = facts["caught_by"], list(facts.get("also_caught_by", []))
    if gap := facts.get("not_caught"):
        return f"**{'the policy alone' if 'policy' in also else 'nothing yet'}**, not by {layer}: {gap}", ""
    if layer == "policy":
        layer += f": `{facts['expect']['rule']}`"
    elif "most_speedup" in facts["expect"]:
        layer += " (bound: gains nothing)"
    if last.get("proof", {}).get("rules") == ["no-own-kernel"]:
        also[also.index("policy")] = "policy (no own kernel)"
    return layer, ", ".join(also)


def proof_in_docs(case, last):
    """What becomes of it once its layers are switched off."""
    proof = last.get("proof")
    if not proof:
        return "not shown: needs a GPU" if case.needs_cuda else "not shown"
    words = {"not_proven": "**not shown**", "not_switchable": "cannot be"}
    return words.get(proof["state"], "gains" if "most_speedup" in case.facts["expect"] else "passes")


def naive_in_docs(case, last):
    naive = last.get("naive", {})
    if case.needs_cuda:
        return "not shown: needs a GPU"
    if not case.fools_naive:
        return "not fooled: " + case.facts["naive_reason"]
    if naive.get("fooled") and case.naive_speedup:
        return f"pass, more than {case.naive_speedup:g}×"
    return "pass" if naive.get("result") == "[PASS]" else naive.get("result", "not shown")


def exploit_row(case, last):
    facts = case.facts
    outcomes = "/".join(facts["expect"]["outcomes"])
    if "reward" in facts["expect"]:
        outcomes += f", reward {json.dumps(facts['expect']['reward'])}"
    row = facts["row"].split(":", 1)[-1].strip()
    cells = [row, f"`{case.folder.name}`", facts["what"], *layer_in_docs(case, last), outcomes, proof_in_docs(case, last)]
    return "| " + " | ".join(map(cell, [*cells, naive_in_docs(case, last), f"`{facts['honest_twin']}`"])) + " |"


def write_docs(cases, kept):
    """docs/exploits.md from all cases and the last results."""
    exploits = [case for case in cases.values() if case.is_exploit]
    head = "| attack | case | what it does | caught by | also by | verdict | switched off | naive judge | twin |"
    lines = [INTRODUCTION]
    for section in dict.fromkeys(case.facts["row"].split(":")[0] for case in exploits):
        chosen = [case for case in exploits if case.facts["row"].split(":")[0] == section]
        lines += [f"## {section}", "", head, "| --- " * head.count(" | ") + "| --- |"]
        lines += [exploit_row(case, kept.get(case.name, {})) for case in sorted(chosen, key=lambda case: case.facts["row"])]
        lines.append("")
    lines += ["## Honest look-alikes", "", "| case | what it does |", "| --- | --- |"]
    for case in cases.values():
        if not case.is_exploit:
            needs = " (needs a GPU)" if case.needs_cuda else ""
            lines.append(f"| `{case.folder.name}` | {cell(case.facts['what'])}{needs} |")
    DOCS.write_text("\n".join(lines) + "\n")


# --- the command line -------------------------------------------------------------------------------------------------


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    binary = os.environ.get("CUDA_AGENT_BINARY", REPOSITORY / "build" / "src" / "cuda-agent")
    parser.add_argument("--binary", type=Path, default=Path(binary), help="the judge")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names of cases, such as 'cache_*' or 'honest/*'")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="cases at a time [default: 1]")
    parser.add_argument("--prove-layers", action="store_true", help="as for cuda-agent selftest")
    parser.add_argument("--write-docs", action="store_true", help="write docs/exploits.md from the last results, and end")
    options = parser.parse_args()
    options.binary = options.binary.absolute()
    default_cache = options.binary.parent.parent / "e2e-cache"
    options.cache = Path(os.environ.get("CUDA_AGENT_CACHE", default_cache)).absolute()
    options.python = os.environ.get("CUDA_AGENT_PYTHON") or REPOSITORY / ".venv" / "bin" / "python"
    return options


def main():
    options = parse()
    cases = read_cases()
    if options.write_docs:
        write_docs(cases, kept_results(options))
        return 0
    if shutil.which("bwrap") is None:
        sys.exit("bubblewrap (bwrap) is missing: exploits are never run without a sandbox; install it")
    with tempfile.TemporaryDirectory(prefix="cuda-agent-suites-") as temporary:
        code, answer = selftest(options, temporary)
        naive = ask_all_naive(cases, answer["cases"], options)
    remember(answer["cases"], naive, options)
    print(f"{'case':44} {'judge':24} naive judge")
    for one in answer["cases"]:
        said = naive.get(one["name"], {})
        speed = f" {said['speedup']:.3g}x" if "speedup" in said else ""
        print(f"{one['name']:44} {one['outcome'] or 'left out':24} {said.get('result', '-')}{speed}")
    judged = [f"{one['name']}: {text}" for one in answer["cases"] for text in one["problems"] + (one["proof"] or {}).get("problems", [])]
    wrong = [text for name, said in naive.items() if (text := wrong_about_naive(cases[name], said))]
    fooled = sum(said["fooled"] for said in naive.values())
    proofs = [answer["proofs"]["message"]] if answer["proofs"] else []
    said = f"{fooled} exploits fool the naive judge; {len(wrong)} cases do not do with it what they say"
    print("\n".join([*judged, *wrong, answer["message"], *proofs, said]))
    return code or (1 if wrong else 0)


if __name__ == "__main__":
    sys.exit(main())
