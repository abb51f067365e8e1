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
table=$(mktemp)
export CUDA_AGENT_GPU_TABLE=${CUDA_AGENT_GPU_TABLE:-$table}
# Whose seconds count runs alone. In the others what needs the GPU takes turns, and all that comes before (imports,
# compilers) runs side by side.
alone=(test_example.py test_gate.py)
side_by_side=()
if "$test_python" -c 'import xdist' 2>/dev/null; then side_by_side=(-n "$((1 + $(nproc) / 4))"); fi
code=0
# run PYTEST_ARGUMENT...: remembers a failure; that -k leaves no test (5) is none.
run() {
  local own=0
  "$test_python" -m pytest -q -p no:cacheprovider "$@" || own=$?
  if [ $own -ne 0 ] && [ $own -ne 5 ]; then code=$own; fi
}
run "$@" "${alone[@]}"
run "${side_by_side[@]}" "$@" "${alone[@]/#/--ignore=}" .
exit $code
