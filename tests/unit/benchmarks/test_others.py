"""What other queues' own load programs print is read as they mean it, and servers keep to their directories."""

from __future__ import annotations

from pathlib import Path

from benchmarks import others
from benchmarks.others import (
    NAMES,
    kafka_received,
    kafka_sent,
    rabbitmq_settings,
    redis_rate,
)

REDIS = """\
"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"XADD load * body","131578.95","1.712","0.480","1.631","2.471","3.391","4.415"
"""
PRODUCER = """\
99841 records sent, 19968.2 records/sec (19.50 MB/sec), 3.1 ms avg latency, 201.0 ms max latency.
200000 records sent, 25316.5 records/sec (24.72 MB/sec), 2.53 ms avg latency, 201.00 ms max latency, 2 ms 50th
"""
CONSUMER = """\
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, \
fetch.MB.sec, fetch.nMsg.sec
2026-11-19 01:00:00:000, 2026-11-19 01:00:02:000, 195.3125, 97.6, 200000, 100000.0, 500, 1500, 130.2, 133333.3
"""


def test_redis_benchmark() -> None:
    assert redis_rate(REDIS) == 131578.95


def test_kafkas_producer_tells_more_than_once() -> None:
    assert kafka_sent(PRODUCER) == 25316.5


def test_kafkas_consumer_is_measured_while_it_fetches() -> None:
    assert kafka_received(f"WARN something, or other\n{CONSUMER}") == 133333.3


def test_rabbitmq_keeps_to_its_directory_and_to_this_machine(tmp_path: Path) -> None:
    programs = tmp_path / "packages" / "usr" / "lib" / "erlang" / "erts-13.1.5" / "bin"
    programs.mkdir(parents=True)
    settings = rabbitmq_settings(tmp_path / "packages", tmp_path / "run", 4369, 25672)
    assert (settings["BINDIR"], settings["ROOTDIR"]) == (str(programs), str(programs.parents[1]))
    assert settings["PATH"].startswith(f"{tmp_path / 'run' / 'bin'}:{programs}:")
    files = [name for name in settings if name.endswith(("_FILE", "_BASE"))]
    assert len(files) == 6
    for name in ("HOME", *files):
        assert Path(settings[name]).is_relative_to(tmp_path / "run")
    assert settings["ERL_EPMD_ADDRESS"] == "127.0.0.1"
    assert (settings["ERL_EPMD_PORT"], settings["RABBITMQ_DIST_PORT"]) == ("4369", "25672")
    assert "inet_dist_use_interface {127,0,0,1}" in settings["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"]


def test_each_system_is_described() -> None:
    assert others.__doc__ is not None
    for name in NAMES:
        assert f"\n    {name} " in others.__doc__
