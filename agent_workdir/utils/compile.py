"""python3 -m utils.compile: builds kernels/ and leaves cuda_extension.so here, for scripts that import it."""

import shutil
import sys
from pathlib import Path

from utils.judge import ask, print_failure

OUTPUT = Path("cuda_extension.so")


def main():
    verdict, code = ask("compile", sys.argv[1:])
    build = verdict.get("build") or {}
    sources = [built["source"] for built in build.get("objects") or [] if built["tool"] != "link"]
    if sources:
        print(f"Compiling {len(sources)} files: {', '.join(sources)}")
    if code != 0:
        print("Compilation failed.")
        print_failure(verdict)
        return code
    built = Path(build.get("extension_path") or "")
    if not built.is_file():
        print(f"Compilation finished, but the extension is not at {built}.")
        return 1
    fresh = OUTPUT.with_suffix(".so.new")
    shutil.copyfile(built, fresh)
    fresh.replace(OUTPUT)
    print(f"Compile success: {OUTPUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
