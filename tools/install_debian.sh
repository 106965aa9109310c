#!/usr/bin/env bash
# Installs Debian packages as root, quietly: one call after the other, and after whoever else installs something. Asks for
# the list of packages where the machine's is missing or too old. Fails if they cannot be had.
set -u
export DEBIAN_FRONTEND=noninteractive
lock=/tmp/cometmq-install.lock
# -o: what a package starts does not keep the lock.
apt() { flock -o "$lock" apt-get -qq -o DPkg::Lock::Timeout=600 "$@" >/dev/null 2>&1; }
install() { apt install -y --no-install-recommends "$@"; }
install "$@" || { apt update && install "$@"; }
