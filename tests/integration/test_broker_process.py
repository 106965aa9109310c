"""``mqbroker`` as a process of its own: what it prints, how it stops, what it refuses."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from tests.integration.commands import ask, process, run
from tests.interop.servers import free_ports

from cometmq.protocol.command import Command

MODULE = "cometmq.broker"


def write_config(directory: Path, text: str = "") -> tuple[str, int]:
    port = free_ports(0, -2, +1)[0]
    path = directory / "broker.conf"
    path.write_text(
        f"brokerName=b\nlistenPort={port}\nstorePathRootDir={directory}/store\n"
        f"mappedFileSizeCommitLog=1048576\n{text}"
    )
    return str(path), port


def send(port: int) -> Command:
    ext = {"b": "T", "c": "TBW102", "e": "0", "g": "1"}
    return ask(port, Command(code=310, ext=ext, body=b"x"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_what_runs_where_and_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    path, port = write_config(tmp_path, "sendMessageThreadPoolNums=4\n")
    with process(MODULE, "-n", "127.0.0.1:1", "-c", path) as (child, greeting):
        assert greeting[0].startswith(f"The broker[b, 127.0.0.1:{port}] boot success.")
        text = "\n".join(greeting)
        for part in (
            f"ports {port} and {port - 2} (VIP)",
            "127.0.0.1:1",
            f"{tmp_path}/store",
            path,
        ):
            assert part in text
        reply = send(port)
        assert (reply.code, (reply.ext or {})["queueOffset"]) == (0, "0")
        assert (tmp_path / "store" / "abort").exists()
        child.send_signal(number)
        _, errors = child.communicate(timeout=30)
        assert child.returncode == 0
    assert "settings without effect here keys=sendMessageThreadPoolNums" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "store" / "abort").exists()


def test_it_prints_its_settings(tmp_path: Path) -> None:
    path, port = write_config(tmp_path)
    everything = run(MODULE, "-c", path, "-p")
    important = run(MODULE, "-c", path, "-n", "10.0.0.1:9876", "-m")
    assert everything.returncode == important.returncode == 0
    assert f"listenPort={port}" in everything.stdout.splitlines()
    assert "namesrvAddr=10.0.0.1:9876" in important.stdout.splitlines()
    assert len(important.stdout.splitlines()) < len(everything.stdout.splitlines())
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("brokerNme=x\n", "unknown setting 'brokerNme'; did you mean 'brokerName'?"),
        ("flushDiskType=NEVER\n", "flushDiskType must be one of"),
        ("namesrvAddr=nonsense\n", "expected an address like 127.0.0.1:9876"),
        ("brokerRole=SLAVE\nbrokerId=0\n", "brokerRole=SLAVE needs a brokerId above 0"),
        ("aclEnable=true\n", "aclEnable=true reads conf/plain_acl.yml below rocketmqHome"),
        ("tls.server.need.client.auth=require\n", "has no effect without a certificate"),
        ("regionId=a\\u2028b\n", "regionId must not hold the control character U+2028"),
    ],
)
def test_settings_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    path, _ = write_config(tmp_path, text)
    refused = run(MODULE, "-c", path)
    assert refused.returncode == 1
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_damaged_store_is_named_and_left_alone(tmp_path: Path) -> None:
    path, _ = write_config(tmp_path)
    log = tmp_path / "store" / "commitlog" / ("0" * 20)
    log.parent.mkdir(parents=True)
    log.write_bytes(b"not a log")
    refused = run(MODULE, "-c", path)
    assert refused.returncode == 1
    assert str(log) in refused.stderr
    assert "Traceback" not in refused.stderr
    assert log.read_bytes() == b"not a log"


def test_it_needs_its_assertions(tmp_path: Path) -> None:
    path, _ = write_config(tmp_path)
    refused = run(MODULE, "-c", path, interpreter=("-O",))
    assert refused.returncode == 1
    assert "python -O" in refused.stderr


def test_a_broker_beyond_loopback_says_so_loudly(tmp_path: Path) -> None:
    beyond = "bindAddress=0.0.0.0\nbrokerIP1=127.0.0.1\n"
    path, _ = write_config(tmp_path, beyond)
    refused = run(MODULE, "-c", path)
    assert refused.returncode == 1
    assert "set allowAnonymous=true if everybody who reaches it may do that" in refused.stderr
    path, _ = write_config(tmp_path, f"{beyond}allowAnonymous=true\n")
    with process(MODULE, "-c", path) as (child, greeting):
        child.terminate()
        _, errors = child.communicate(timeout=30)
    assert any("WARNING         allowAnonymous" in line for line in greeting)
    assert "broker listens beyond loopback and serves anybody" in errors
