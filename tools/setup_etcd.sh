#!/usr/bin/env bash
# Installs etcd, which tests with several controllers need, if the machine has none. Without it those are skipped and
# say so, so this never fails what it prepares.
set -u
command -v etcd >/dev/null 2>&1 && exit 0
say() { printf 'no etcd on this machine, tests with several controllers are skipped: %s\n' "$1" >&2; exit 0; }
command -v apt-get >/dev/null 2>&1 || say "install etcd 3.4 or newer, so that 'etcd' is found in PATH"
[ "$(id -u)" = 0 ] || say "run 'sudo apt-get install etcd-server'"
echo "no etcd on this machine: installing Debian's (170 MB)"
tools/install_debian.sh etcd-server ||
  say "'apt-get install etcd-server' failed, also after 'apt-get update'"
command -v etcd >/dev/null 2>&1 || say "the package etcd-server has no 'etcd'"
# Tests start members of their own.
echo "where Debian starts services, it has started an etcd on port 2379; to stop it: systemctl disable --now etcd"
