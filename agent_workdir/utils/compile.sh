#!/usr/bin/env bash
# Builds kernels/ into cuda_extension.so and says how long it took. Arguments go to `cuda-agent compile`.
started=$(date +%s.%N)
python3 -m utils.compile "$@"
code=$?
ended=$(date +%s.%N)
LC_ALL=C awk -v from="$started" -v to="$ended" 'BEGIN { printf "[TIME] Compilation took %.2fs\n", to - from }'
exit $code
