#!/usr/bin/env bash
# Runs clang-tidy over src/ as build/ compiles it: file by file, or in the large pieces of a unity build. src/worker is
# checked against torch's headers by its own build. Exit code 0: clean.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
if [ ! -f build/compile_commands.json ]; then
  stop $EXIT_ENVIRONMENT "there is no build/compile_commands.json: run scripts/setup.sh --with-checks first"
fi
# A unity build's files include .cpp files, as they are meant to.
sed -n 's/^ *"file": "\(.*\.\(cpp\|cxx\)\)",\{0,1\}$/\1/p' build/compile_commands.json | grep -v '/tests/' | tr '\n' '\0' |
  xargs -0 -P "$(nproc)" -n 1 clang-tidy -p build --quiet --config-file=.clang-tidy --checks=-bugprone-suspicious-include \
    2> >(grep -v ' warnings generated.$' >&2)
