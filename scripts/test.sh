#!/usr/bin/env bash
# Set-up, then all tests through CTest.
#   scripts/test.sh [--python PATH] [--preset NAME] [-- ctest arguments]     e.g.  scripts/test.sh -- -L unit
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

for_setup=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  for_setup+=("$1")
  shift
done
if [ $# -gt 0 ]; then shift; fi

"$root/scripts/setup.sh" --with-tests "${for_setup[@]}"
exec ctest --test-dir "$root/build" --output-on-failure --no-tests=error "$@"
