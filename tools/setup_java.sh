#!/usr/bin/env bash
# Installs a Java for Spark into the environment of $1, its Python, if the machine has none that is new enough. Most have,
# and need not download 35 MB. Without any, all but the Spark part works, so this never fails the set-up.
set -u
python=$1
"$python" -m cometmq.spark.java >/dev/null 2>&1 && exit 0
echo "no Java 17 or newer on this machine: installing one for Spark (35 MB, 104 MB unpacked)"
"$python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-java.lock
missing=$("$python" -m cometmq.spark.java 2>&1 >/dev/null) ||
  printf 'set up, but Spark will not run: %s\n' "$missing" >&2
