#!/usr/bin/env bash
# Installs Prometheus with promtool, which check the metrics page, the alert rules and the Grafana board, if the machine has
# none. Without it those tests are skipped and say so, so this never fails what it prepares.
set -u
command -v prometheus >/dev/null 2>&1 && command -v promtool >/dev/null 2>&1 && exit 0
say() { printf 'no Prometheus on this machine, tests with it are skipped: %s\n' "$1" >&2; exit 0; }
command -v apt-get >/dev/null 2>&1 || say "install Prometheus, so that 'prometheus' and 'promtool' are found in PATH"
[ "$(id -u)" = 0 ] || say "run 'sudo apt-get install prometheus'"
echo "no Prometheus on this machine: installing Debian's (200 MB)"
tools/install_debian.sh prometheus ||
  say "'apt-get install prometheus' failed, also after 'apt-get update'"
command -v promtool >/dev/null 2>&1 || say "the package prometheus has no 'promtool'"
# Tests start one of their own.
echo "where Debian starts services, it has started a Prometheus on port 9090; to stop it: systemctl disable --now prometheus"
