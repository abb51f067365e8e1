"""Calls the cuda-agent binary and gives back its verdict.

Nothing is judged here: this file and its neighbours only print what the verdict says. Changing them changes no result.
"""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ENVIRONMENT_ERROR = 3
PATH_FILE = Path(".cuda-agent/binary")


def find_binary():
    """$CUDA_AGENT, else the path that `cuda-agent init` noted in .cuda-agent/binary, else cuda-agent on PATH."""
    asked = os.environ.get("CUDA_AGENT")
    if asked:
        return asked
    if PATH_FILE.is_file():
        noted = PATH_FILE.read_text(encoding="utf-8").strip()
        if os.access(noted, os.X_OK):
            return noted
    found = shutil.which("cuda-agent")
    if found:
        return found
    print(
        "cuda-agent was not found: it is not on PATH, and $CUDA_AGENT and .cuda-agent/binary do not name it. "
        "Set CUDA_AGENT=/path/to/cuda-agent.",
        file=sys.stderr,
    )
    sys.exit(ENVIRONMENT_ERROR)


def python_arguments():
    """This interpreter is the one to judge with, if it has torch and nobody said otherwise."""
    if "CUDA_AGENT_PYTHON" in os.environ or importlib.util.find_spec("torch") is None:
        return []
    return ["--python", sys.executable]


def ask(command, arguments):
    """Runs `cuda-agent COMMAND . --json ARGUMENTS` and returns (verdict, exit code).

    The binary's progress goes to stderr as it comes. An interrupt is left to the binary, which ends what it started
    and answers with a verdict of its own.
    """
    argv = [find_binary(), command, ".", "--json", *python_arguments(), *arguments]
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE)
    except OSError as error:
        print(f"cuda-agent could not be started: {argv[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(ENVIRONMENT_ERROR)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    text, _ = process.communicate()
    try:
        verdict = json.loads(text)
    except ValueError:
        sys.stdout.write(text.decode("utf-8", "replace"))
        sys.exit(process.returncode or 1)
    return verdict, process.returncode


def print_failure(verdict):
    """What went wrong, where, and what to do next."""
    for built in (verdict.get("build") or {}).get("objects") or []:
        for found in built.get("diagnostics") or []:
            place = ":".join(str(part) for part in (found["file"], found["line"], found["column"]) if part)
            print(f"{place}: {found['severity']}: {found['message']}")
    print(verdict.get("message", ""))
    if verdict.get("detail"):
        print(verdict["detail"])
    for hint in verdict.get("hints") or []:
        print(f"hint: {hint}")
    printed = (verdict.get("candidate") or {}).get("output")
    if printed:
        print("The candidate printed:")
        print(printed)
