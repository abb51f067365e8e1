# shellcheck shell=bash
# Functions that the scripts share. Sourced, never run. Defines `root`, the top of the source tree.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

# shellcheck disable=SC2034  # used by the scripts that source this
EXIT_USAGE=2
EXIT_ENVIRONMENT=3

say() { printf '%s\n' "cuda-agent set-up: $*" >&2; }

# stop CODE MESSAGE...: ends the script.
stop() {
  local code=$1
  shift
  local line
  for line in "$@"; do say "$line"; done
  exit "$code"
}

# log_run LOG COMMAND...: shows the command's output on a terminal, else keeps it and shows it only when it fails.
log_run() {
  local log=$1
  shift
  if [ -t 2 ]; then
    "$@" >&2
    return
  fi
  local code=0
  "$@" >"$log" 2>&1 || code=$?
  if [ $code -eq 0 ]; then return 0; fi
  tail -n 200 "$log" >&2
  say "the above is the end of $log"
  return "$code"
}

# installed PACKAGE: whether Debian's package is there, whole.
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# install_packages PACKAGE...: as root or with sudo; else says what to run and stops with 3.
install_packages() {
  local command="apt-get install -y --no-install-recommends $*"
  local -a as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null || { [ ! -t 0 ] && ! sudo -n true 2>/dev/null; }; then
      stop $EXIT_ENVIRONMENT "these packages are missing, and only root may install them: $*" \
        "run this, then start again:" \
        "  sudo sh -c 'apt-get update && $command'"
    fi
    as_root=(sudo)
  fi
  say "installing Debian packages: $*"
  local log
  log=$(mktemp)
  if ! log_run "$log" "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c "apt-get -q update && $command"; then
    stop $EXIT_ENVIRONMENT "apt-get could not install: $*"
  fi
  rm -f "$log"
}

# python_facts PYTHON: prints "VERSION|EXECUTABLE|TORCH or -|HEADERS yes or no|TEST PACKAGES yes or no|VENV yes or no".
# Reads package metadata only: importing torch would take seconds.
python_facts() {
  "$1" - <<'PYTHON' 2>/dev/null
import importlib.metadata, importlib.util, os, sys, sysconfig

def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "-"

def yes(value):
    return "yes" if value else "no"

headers = os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
tests = all(version(name) != "-" for name in ("pytest", "jsonschema"))
venv = all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))
print("%d.%d" % sys.version_info[:2], sys.executable, version("torch"), yes(headers), yes(tests), yes(venv), sep="|")
PYTHON
}

# fact PYTHON NUMBER: one field of python_facts; nothing when it cannot run.
fact() { python_facts "$1" | cut -d'|' -f"$2"; }

# at_least VERSION MAJOR MINOR
at_least() {
  local major minor
  IFS=. read -r major minor _ <<<"$1"
  [[ $major =~ ^[0-9]+$ && $minor =~ ^[0-9]+$ ]] || return 1
  ((major > $2 || (major == $2 && minor >= $3)))
}

has_torch() { at_least "$(fact "$1" 3)" 2 6; }

# configured NAME: a value of the build tree's CMake cache.
configured() { sed -n "s/^$1:[A-Z]*=//p" "$root/build/CMakeCache.txt" 2>/dev/null; }

find_nvcc() {
  local home
  for home in "${CUDA_HOME:-}" "${CUDA_PATH:-}"; do
    if [ -n "$home" ] && [ -x "$home/bin/nvcc" ]; then
      echo "$home/bin/nvcc"
      return
    fi
  done
  command -v nvcc || { [ -x /usr/local/cuda/bin/nvcc ] && echo /usr/local/cuda/bin/nvcc; } || true
}
