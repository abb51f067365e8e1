"""python3 -m utils.profiling: times model_new.py against PyTorch eager and torch.compile."""

import argparse
import sys

from utils.judge import ask, print_failure

ARMS = (("Torch Baseline", "eager"), ("Torch Compile", "compiled"), ("CUDA Extension", "candidate"))


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Time model_new.py against PyTorch eager and torch.compile.",
        epilog="Every other flag goes to `cuda-agent profile`, which see.",
    )
    parser.add_argument("--iters", type=int, help="taken and not used: the judge times until its interval is narrow")
    known, rest = parser.parse_known_args()
    if known.iters is not None:
        print("--iters is not used: the judge times until its interval is narrow enough.", file=sys.stderr)
    return rest


def main():
    verdict, code = ask("profile", parse_arguments())
    speed = verdict.get("speed") or {}
    arms = {arm["name"]: arm for arm in speed.get("arms") or []}
    shown = []
    for label, name in ARMS:
        time = (arms.get(name) or {}).get("time")
        shown.append(f"{label}: {time['estimate']:.3f}us" if time else f"{label}: not measured")
    print(", ".join(shown))
    for label, name in ARMS:
        reason = (verdict.get("not_measured") or {}).get(f"/speed/{name}")
        if reason:
            print(f"{label} was not measured: {reason}")
    for ratio in speed.get("ratios") or []:
        value = ratio["ratio"]
        print(f"vs {ratio['baseline']}: {value['estimate']:.3f}x ({value['low']:.3f} to {value['high']:.3f})")
    if code != 0:
        print_failure(verdict)
    return code


if __name__ == "__main__":
    sys.exit(main())
