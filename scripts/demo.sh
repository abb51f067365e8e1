#!/usr/bin/env bash
# Set-up, then a judgement of the example workspace on whatever device there is. Arguments go to `cuda-agent run`.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$root/scripts/setup.sh"
CUDA_AGENT_PYTHON=$(configured CUDA_AGENT_PYTHON)
export CUDA_AGENT_PYTHON
exec "$root/build/src/cuda-agent" run "$root/agent_workdir" "$@"
