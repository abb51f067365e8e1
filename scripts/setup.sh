#!/usr/bin/env bash
# Brings a bare Debian 12 or Ubuntu 24.04 to a built cuda-agent. Quick and quiet when there is nothing to do.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'USAGE'
usage: scripts/setup.sh [options]

Installs missing Debian packages (as root or with sudo), makes .venv with pinned Python packages, configures and
builds. With an interpreter that has torch >= 2.6 no .venv is made.

  --python PATH   use this interpreter (needs torch >= 2.6 and Python's headers); remembered for the next time
  --preset NAME   CMake preset: release (default), ci (warnings are errors)
  --with-tests    also the tests, and what they need: pytest and jsonschema, in build/venv-tests if the interpreter
                  lacks them
  --with-gpu-tests  also what scripts/gpu-test.sh needs: those two, and the probe of the gate
  --with-checks   also the packages that .ci/run needs: clang, clang-format, clang-tidy
  --help          this text

exit codes: 0 built, 2 wrong usage, 3 something is missing on this machine, else the failing build's
USAGE
}

python=
preset=release
with_tests=no
with_gpu_tests=no
with_checks=no
while [ $# -gt 0 ]; do
  case $1 in
    --python | --preset)
      [ $# -ge 2 ] || stop $EXIT_USAGE "$1 needs a value"
      declare "${1#--}=$2"
      shift 2
      ;;
    --with-tests) with_tests=yes && shift ;;
    --with-gpu-tests) with_gpu_tests=yes && shift ;;
    --with-checks) with_checks=yes && shift ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && stop $EXIT_USAGE "unknown option: $1" ;;
  esac
done
case $preset in
  release | ci) ;;
  *) stop $EXIT_USAGE "unknown preset: $preset (known: release, ci)" ;;
esac

# 1. The interpreter: asked for, named by the environment, active, remembered, .venv, or the first python3.
if [ -n "$python" ]; then
  command -v "$python" >/dev/null || stop $EXIT_USAGE "--python: no such interpreter: $python"
  has_torch "$python" || stop $EXIT_ENVIRONMENT "--python: $python has no torch >= 2.6 (found: $(fact "$python" 3))"
else
  remembered=
  if [ "$(head -n 1 "$root/build/.configured" 2>/dev/null)" = "$root" ]; then # not in a tree that was moved
    remembered=$(configured CUDA_AGENT_PYTHON)
  fi
  for candidate in "${CUDA_AGENT_PYTHON:-}" "${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/python}" "$remembered" \
    "$root/.venv/bin/python" "$(command -v python3 || true)"; do
    if [ -n "$candidate" ] && [ -x "$candidate" ] && has_torch "$candidate"; then
      python=$candidate
      break
    fi
  done
fi
# A .venv of ours is made, and kept as pinned, unless another interpreter was found.
own_venv=no
if [ -z "$python" ] || [ "$python" = "$root/.venv/bin/python" ]; then own_venv=yes; fi

# 2. Debian packages.
missing=()
need() { installed "$1" || missing+=("$1"); }
need_tool() { command -v "$1" >/dev/null || missing+=("$2"); }
if command -v dpkg-query >/dev/null; then
  need_tool g++ g++
  need_tool cmake cmake
  need_tool ninja ninja-build
  need_tool bwrap bubblewrap
  for package in ca-certificates libc6-dev libcli11-dev nlohmann-json3-dev libspdlog-dev libexpected-dev libssl-dev libseccomp-dev \
    libgtest-dev; do
    need "$package"
  done
  if [ $with_checks = yes ]; then
    need_tool clang-format clang-format
    need_tool clang-tidy clang-tidy
    need_tool clang++ clang  # the build with sanitizers: it compiles in 55 % of g++'s time
    need libclang-rt-dev
  fi
  base=${python:-$(command -v python3 || true)}
  if [ $own_venv = yes ] && { [ -z "$base" ] || ! at_least "$(fact "$base" 1)" 3 11; }; then
    base=/usr/bin/python3
    need python3
    need python3-venv
    need python3-dev
  elif [ "$(fact "$base" 4)" != yes ] || [ "$(fact "$base" 6)" != yes ]; then
    # The distribution's own interpreter keeps its headers and ensurepip in packages of their own; others bring them.
    prefix=$("$base" -c 'import sys; print(sys.base_prefix)')
    [ "$prefix" = /usr ] || stop $EXIT_ENVIRONMENT "$base lacks Python.h or the venv module, which the build needs" \
      "use another interpreter: scripts/setup.sh --python PATH"
    need "python$(fact "$base" 1)-venv"
    need "python$(fact "$base" 1)-dev"
  fi
  if [ ${#missing[@]} -gt 0 ]; then install_packages "${missing[@]}"; fi
else
  say "this is not Debian or Ubuntu; the packages of docs/dependencies.md must be there"
  base=${python:-$(command -v python3 || true)}
fi

# 3. The Python environment.
# pip_start PYTHON REQUIREMENTS, pip_finish: installs while the program is built, and notes that it was finished.
pip_start() {
  pip_stamp=$(dirname "$(dirname "$1")")/.requirements-installed
  pip_wanted=$(cat "$root"/requirements*.txt | sha256sum)
  pip_job=
  if [ "$(cat "$pip_stamp" 2>/dev/null)" = "$pip_wanted" ]; then return; fi
  say "installing the packages of $2 into $(dirname "$(dirname "$1")") (torch is several GB)"
  pip_log=$(mktemp)
  "$1" -m pip install --disable-pip-version-check --progress-bar off -r "$root/$2" >"$pip_log" 2>&1 &
  pip_job=$!
  # Not ended in the middle when the build fails: what it has half installed would count as installed.
  trap 'wait "$pip_job" || true' EXIT
  trap 'kill "$pip_job" 2>/dev/null || true; exit 130' INT TERM
}
pip_finish() {
  if [ -z "${pip_job:-}" ]; then return; fi
  if ! wait "$pip_job"; then
    tail -n 200 "$pip_log" >&2
    stop $EXIT_ENVIRONMENT "pip could not install: the above is the end of $pip_log"
  fi
  trap - EXIT INT TERM
  pip_job=
  rm -f "$pip_log"
  printf '%s\n' "$pip_wanted" >"$pip_stamp"
}
make_venv() { # make_venv BASE FOLDER
  if "$2/bin/python" -c 'import pip' 2>/dev/null; then return; fi
  "$1" -m venv --clear "$2" || stop $EXIT_ENVIRONMENT "$1 -m venv failed: is python3-venv installed?"
}
if [ $own_venv = yes ]; then
  make_venv "$base" "$root/.venv"
  python=$root/.venv/bin/python
  pip_start "$python" requirements.txt
fi
[ "$(fact "$python" 4)" = yes ] ||
  stop $EXIT_ENVIRONMENT "$python has no Python.h, which the worker module needs" \
    "install python3-dev (or the like), or use --python PATH"
# Absolute, but not resolved: the python of a virtual environment is a link and must stay one.
case $python in
  */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;;
  *) python=$(fact "$python" 2) ;;
esac
mkdir -p "$root/build"
test_python=$python
if [ $own_venv = no ] && [ "$(fact "$python" 5)" != yes ]; then
  test_python=$root/build/venv-tests/bin/python
  if [ $with_tests = yes ] || [ $with_gpu_tests = yes ]; then
    make_venv "$python" "$root/build/venv-tests"
    pip_start "$test_python" requirements-test.txt
  fi
fi

# 4. Configure and build. Two set-ups in one tree take turns.
if command -v flock >/dev/null; then
  exec 9>"$root/build/.setup.lock"
  flock -n 9 || { say "waiting for another set-up of this tree" && flock 9; }
fi
nvcc=$(find_nvcc)
stamp=$root/build/.configured
wanted=$(printf '%s\n' "$root" "$preset" "$python" "$test_python" "$nvcc")
if [ ! -f "$root/build/build.ninja" ] || [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
  # In a tree that was moved, CMake's cache names places that are not there any more.
  if [ "$(head -n 1 "$stamp" 2>/dev/null)" != "$root" ]; then
    rm -rf "$root/build/CMakeCache.txt" "$root/build/CMakeFiles"
  fi
  say "configuring (preset $preset, Python $python)"
  [ -n "$nvcc" ] || say "nvcc was not found: building the CPU side only (CUDA_HOME names another place)"
  (cd "$root" && log_run build/configure.log env ${nvcc:+CUDACXX="$nvcc"} cmake --preset "$preset" \
    -DCUDA_AGENT_PYTHON="$python" -DCUDA_AGENT_TEST_PYTHON="$test_python" 9>&-)
  printf '%s\n' "$wanted" >"$stamp"
fi
targets=(cuda-agent)
if [ $with_gpu_tests = yes ]; then
  [ -n "$nvcc" ] || stop $EXIT_ENVIRONMENT "the GPU tests need nvcc: set CUDA_HOME"
  targets+=(gate_probe)
fi
if [ $with_tests = yes ]; then targets=(all); fi
if ! ninja -C "$root/build" -n "${targets[@]}" 2>/dev/null | grep -q 'no work to do'; then
  say "building (the first time takes a few minutes)"
  log_run "$root/build/build.log" ninja -C "$root/build" "${targets[@]}" 9>&-
fi
binary=$root/build/src/cuda-agent
pip_finish

# 5. The worker module for this interpreter, so that the first run need not build it.
modules=$root/build/lib/worker-modules
wanted=$(cat "$root"/src/worker/*.* "$(command -v g++)" | sha256sum)
wanted="$wanted $python $(fact "$python" 1) $(fact "$python" 3)"
if [ "$(cat "$modules/.stamp" 2>/dev/null)" != "$wanted" ]; then
  mkdir -p "$modules"
  say "building the worker module for $python"
  log_run "$root/build/worker-module.log" "$binary" worker-module "$modules" --python "$python" 9>&-
  printf '%s\n' "$wanted" >"$modules/.stamp"
fi

# The example workspace's utils/ find the binary by this file, as those of a workspace made by `init` do.
note=$root/agent_workdir/.cuda-agent/binary
if [ "$(cat "$note" 2>/dev/null)" != "$binary" ]; then
  mkdir -p "$(dirname "$note")"
  printf '%s\n' "$binary" >"$note"
fi
