"""Checks whether a candidate's model_new.py keeps the rules (docs/policy.md). The file is read, never run.

    python -I -S -B cuda_agent_rules.py POLICY.JSON MODEL_NEW.PY

Its own lines begin with "cuda-agent-rules: ": "ready" before the file is opened (what goes wrong earlier is not the
candidate's fault), then one JSON object {"findings": [...]}.
"""

import ast
import io
import json
import os
import sys
import tokenize

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

MARK = "cuda-agent-rules: "
OLDEST_PYTHON = (3, 11)


def finding(rule, message, config, line=0, column=0, source=""):
    return {
        "rule": rule,
        "line": line,
        "column": column,
        "source": source.strip()[:160],
        "message": message,
        "reached": "",
        "hint": config.hints.get(rule, ""),
    }


def depth_of(tree):
    """How deep the syntax tree nests, and how many nodes it has, without recursion."""
    deepest, count, waiting = 0, 0, [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        count += 1
        deepest = max(deepest, depth)
        waiting.extend((child, depth + 1) for child in ast.iter_child_nodes(node))
    return deepest, count


def decoded(content, config):
    """The text of the file, or a finding."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        if encoding not in ("utf-8", "utf-8-sig"):
            return None, finding("unreadable", f"the file says that it is encoded as {encoding}", config, 1)
        return content.decode("utf-8-sig"), None
    except (SyntaxError, UnicodeDecodeError) as error:
        return None, finding("unreadable", f"the file is not UTF-8: {error}", config)


def parsed(content, config):
    """(tree, text, None) or (None, "", finding)."""
    if len(content) > config.limits["bytes"]:
        message = f"the file has {len(content)} bytes; at most {config.limits['bytes']} are read"
        return None, "", finding("too-large", message, config)
    text, problem = decoded(content, config)
    if problem:
        return None, "", problem
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        return ast.parse(text, type_comments=False), text, None
    except SyntaxError as error:
        lines = text.split("\n")
        line = error.lineno or 0
        source = lines[line - 1] if 0 < line <= len(lines) else ""
        return None, "", finding("unreadable", f"the file cannot be parsed: {error.msg}", config, line, error.offset or 0, source)
    except ValueError as error:
        return None, "", finding("unreadable", f"the file cannot be parsed: {error}", config)
    except (RecursionError, MemoryError):
        return None, "", finding("too-deep", "the file nests too deeply to be parsed", config)


def check_source(content, config):
    """The findings about a file, given as bytes."""
    from policy_interpreter import Interpreter, TooMuchWork

    tree, text, problem = parsed(content, config)
    if problem:
        return [problem]
    deepest, count = depth_of(tree)
    if deepest > config.limits["depth"]:
        return [finding("too-deep", f"the file nests {deepest} levels deep; at most {config.limits['depth']} are read", config)]
    if count > config.limits["nodes"]:
        return [finding("too-large", f"the file has {count} parts of syntax; at most {config.limits['nodes']} are read", config)]
    sys.setrecursionlimit(50000)
    try:
        return Interpreter(tree, text, config).check()
    except TooMuchWork:
        return [finding("too-deep", "following the file takes too many steps", config)]
    except (RecursionError, MemoryError):
        return [finding("too-deep", "the file nests too deeply to be followed", config)]


def limited(findings, most):
    """The first ones; the last of them says how many are left out."""
    if len(findings) > most:
        left = len(findings) - most
        findings = findings[:most]
        findings[-1] = dict(findings[-1], message=f"{findings[-1]['message']} (and {left} more findings)")
    return findings


def say(text):
    sys.stdout.write(MARK + text + "\n")
    sys.stdout.flush()


def main(config_path, path):
    if sys.version_info[:2] < OLDEST_PYTHON:
        sys.exit("the rules need Python %d.%d or newer, this is %s" % (OLDEST_PYTHON + (sys.version.split()[0],)))
    from policy_config import Config

    config = Config(config_path)
    with open(path, "rb") as file:
        say("ready")
        content = file.read(config.limits["bytes"] + 1)
    say(json.dumps({"findings": limited(check_source(content, config), config.limits["findings"])}))


if __name__ == "__main__":
    main(*sys.argv[1:])
