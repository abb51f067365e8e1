#!/usr/bin/env bash
# Runs clang-tidy over src/, each library in one piece: what costs the time is the headers. It also shows names that two
# files of a library have in common, as copied code has. src/worker is checked against torch's headers by its own build.
# Exit code 0: clean.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$root"
mkdir -p build
cmake --preset ci -B build/tidy -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 -DCUDA_AGENT_TESTS=OFF >build/tidy.log ||
  { cat build/tidy.log && stop $EXIT_ENVIRONMENT "the build could not be configured: run scripts/setup.sh --with-checks first"; }
# A unity build's files include .cpp files, as they are meant to.
sed -n 's/^ *"file": "\(.*\.\(cpp\|cxx\)\)",\{0,1\}$/\1/p' build/tidy/compile_commands.json | tr '\n' '\0' |
  xargs -0 -P "$(nproc)" -n 1 clang-tidy -p build/tidy --quiet --config-file=.clang-tidy --checks=-bugprone-suspicious-include \
    2> >(grep -v ' warnings generated.$' >&2)
