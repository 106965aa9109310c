#!/usr/bin/env bash
# Three members of etcd on this machine, for the controllers of this directory; Ctrl-C stops them. On machines of their
# own, each has one member, with its own address in place of 127.0.0.1.
#
#     conf/controller/etcd.sh [DIRECTORY [PORT]]        var/controller/etcd and 2379 by default
set -eu
directory=${1:-var/controller/etcd}
port=${2:-2379}
url=http://127.0.0.1
cluster=e0=$url:$((port + 1)),e1=$url:$((port + 11)),e2=$url:$((port + 21))
mkdir -p "$directory"
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
trap 'exit 0' INT TERM
for number in 0 1 2; do
  client=$url:$((port + 10 * number))
  peer=$url:$((port + 10 * number + 1))
  etcd --name "e$number" --data-dir "$directory/e$number" \
    --listen-client-urls "$client" --advertise-client-urls "$client" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
    --initial-cluster "$cluster" --initial-cluster-token cometmq-controllers \
    --auto-compaction-mode periodic --auto-compaction-retention 1h \
    >"$directory/e$number.log" 2>&1 &
done
echo "etcd: ports $port, $((port + 10)) and $((port + 20)); logs in $directory"
wait -n || true
echo "a member of etcd has stopped, see $directory/*.log" >&2
exit 1
