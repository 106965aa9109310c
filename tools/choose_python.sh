#!/usr/bin/env bash
# Prints the Python to build .venv with: the distribution's own if it is new enough, else the `python3` of the PATH.
# Distributions compile theirs with profile-guided optimisation; one that pyenv compiled is not, unless it was asked for,
# and everything here then takes about a third longer. `make PYTHON=...` overrides the choice.
set -u
for python in /usr/bin/python3 python3; do
  if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "$python"
    exit
  fi
done
echo python3 # nothing fits: tools/check_machine.sh says what is missing
