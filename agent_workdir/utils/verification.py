"""python3 -m utils.verification: checks model_new.py against model.py on fresh random inputs."""

import argparse
import sys

from utils.judge import ask, print_failure


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Check model_new.py against model.py on fresh random inputs.",
        epilog="Every other flag goes to `cuda-agent verify`, which see.",
    )
    parser.add_argument("--trials", type=int, default=5, help="random inputs to check (default: 5)")
    return parser.parse_known_args()


def main():
    known, rest = parse_arguments()
    verdict, code = ask("verify", ["--trials", str(known.trials), *rest])
    correctness = verdict.get("correctness") or {}
    made, passed = correctness.get("trials", 0), correctness.get("passed", 0)
    for check in range(1, passed + 1):
        print(f"[PASS] check {check}/{known.trials}")
    if code == 0:
        print("[PASS] verify success")
        return 0
    if not made:
        print("[FAIL] verify: nothing was checked")
    elif passed < made:
        print(f"[FAIL] check {passed + 1}/{known.trials}: {correctness.get('mismatch') or verdict.get('message', '')}")
    print_failure(verdict)
    return code


if __name__ == "__main__":
    sys.exit(main())
