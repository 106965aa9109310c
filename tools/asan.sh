#!/usr/bin/env bash
# Compiles the twins with AddressSanitizer and UBSan in a copy of the tree, and runs tests with them: tools/asan.sh PYTHON [PYTEST_FLAGS…]
# The twins of the tree itself stay as they are. The first fault ends the process that has it, with a report.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath --no-symlinks "$1")
shift

library() {
  local path
  path=$("${CC:-gcc}" -print-file-name="$1")
  if [[ $path != /* ]]; then
    echo "make asan needs gcc with $1" >&2
    exit 1
  fi
  echo "$path"
}
asan=$(library libasan.so)
# Found only here, or whoever throws in C++ would look for it in vain.
cpp=$(library libstdc++.so.6)

copy=build/asan
rm -rf $copy
mkdir -p $copy
cp -r hatch_build.py pyproject.toml README.md conf src tests $copy
find $copy/src -name '*.so' -delete
cd $copy
"$python" - <<'BUILD'
from pathlib import Path
import hatch_build

flags = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O1"
for twin in hatch_build.compile_twins(Path.cwd(), flags.split()):
    print(f"compiled {twin.name}")
BUILD

export LD_PRELOAD="$asan $cpp"
# Python leaves at its end what the process had anyway, and its own allocator would hide what is too long.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
export PYTHONMALLOC=malloc COMETMQ_IMPL=native PYTHONPATH=src
"$python" -X faulthandler -m pytest -q -p no:cacheprovider --timeout 600 "$@" \
  tests/conformance tests/differential tests/unit/native tests/unit/store tests/unit/remoting \
  tests/unit/protocol tests/unit/model/messages tests/unit/broker/send tests/unit/broker/pull tests/unit/broker/filters \
  tests/property/test_message_twin.py tests/property/test_reply_twin.py
