#!/usr/bin/env bash
# Set-up, then the tests that need a GPU; ends with a table of what was measured.
#   scripts/gpu-test.sh [--python PATH] [-- pytest arguments]     e.g.  scripts/gpu-test.sh -- -k example
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for_setup=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  for_setup+=("$1")
  shift
done
if [ $# -gt 0 ]; then shift; fi

"$root/scripts/setup.sh" --with-gpu-tests "${for_setup[@]}"
python=$(configured CUDA_AGENT_PYTHON)
export CUDA_AGENT_BINARY=$root/build/src/cuda-agent CUDA_AGENT_PYTHON=$python PYTHONDONTWRITEBYTECODE=1
"$CUDA_AGENT_BINARY" doctor
cd "$root/tests/gpu"
test_python=$(configured CUDA_AGENT_TEST_PYTHON)
# What needs the GPU takes turns; all that comes before (imports, compilers) runs side by side.
side_by_side=()
if "$test_python" -c 'import xdist' 2>/dev/null; then side_by_side=(-n "$((1 + $(nproc) / 4))"); fi
exec "$test_python" -m pytest -q -p no:cacheprovider "${side_by_side[@]}" "$@" .
