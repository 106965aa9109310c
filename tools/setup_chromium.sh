#!/usr/bin/env bash
# Installs Chromium and a small Chinese font, which the browser tests of the dashboard need, if the machine has none.
# Without them those tests are skipped and say so, so this never fails what it prepares.
set -u
has_chromium() { command -v chromium >/dev/null 2>&1; }
has_chinese_font() { command -v fc-list >/dev/null 2>&1 && [ -n "$(fc-list :lang=zh family 2>/dev/null)" ]; }
has_chromium && has_chinese_font && exit 0
say() { printf 'no Chromium with a Chinese font, the browser tests are skipped: %s\n' "$1" >&2; exit 0; }
command -v apt-get >/dev/null 2>&1 || say "install them, so that 'chromium' is found in PATH"
[ "$(id -u)" = 0 ] || say "run 'sudo apt-get install chromium fonts-wqy-microhei'"
echo "no Chromium or no Chinese font on this machine: installing Debian's (440 MB)"
tools/install_debian.sh chromium fonts-wqy-microhei fontconfig ||
  say "'apt-get install chromium fonts-wqy-microhei' failed, also after 'apt-get update'"
has_chromium || say "the package chromium has no 'chromium'"
