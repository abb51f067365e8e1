"""python3 -m utils.verification: checks model_new.py against model.py on fresh random inputs."""

import sys

from utils.judge import ask, print_failure


def main():
    verdict, code = ask("verify", sys.argv[1:])
    correctness = verdict.get("correctness") or {}
    trials, passed = correctness.get("trials", 0), correctness.get("passed", 0)
    for check in range(1, passed + 1):
        print(f"[PASS] check {check}/{trials}")
    if code == 0:
        print("[PASS] verify success")
        return 0
    if not trials:
        print("[FAIL] verify: nothing was checked")
    elif passed < trials:
        print(f"[FAIL] check {passed + 1}/{trials}: {correctness.get('mismatch') or verdict.get('message', '')}")
    print_failure(verdict)
    return code


if __name__ == "__main__":
    sys.exit(main())
