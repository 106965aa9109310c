#!/usr/bin/env bash
# Says what is missing before anything is installed, instead of failing half-way through.
set -u
python=${1:-python3}
fail() { printf 'cannot set up: %s\n' "$1" >&2; exit 1; }

command -v "$python" >/dev/null 2>&1 ||
  fail "no '$python' found. Install Python 3.11 or newer (Debian: apt-get install python3 python3-venv), or run make PYTHON=/path/to/python."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "'$python' is $("$python" -V 2>&1), but Python 3.11 or newer is needed. Name another one: make PYTHON=python3.12"
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
  fail "'$python' has no venv module. Debian: apt-get install python3-venv"
[ "$(uname -s)" = Linux ] ||
  fail "the servers need Linux (posix_fallocate, fdatasync); this is $(uname -s)."
