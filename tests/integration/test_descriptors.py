"""A broker that may hold few files and connections: none of them takes the log's next file from it."""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.interop.servers import free_ports

from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient

DESCRIPTORS = 160
# More queues than descriptors, a log file for every 30 messages of 32 KB, and sends that may wait for a busy machine.
CONFIG = """\
brokerName=b
listenPort={port}
storePathRootDir={directory}/store
mappedFileSizeCommitLog=1048576
mappedFileSizeConsumeQueue=200
mappedFileSizeConsumeQueueExt=200
maxHashSlotNum=500
maxIndexNum=2000
enableConsumeQueueExt={extended}
defaultTopicQueueNums=16
waitTimeMillsInSendQueue=60000
"""


@contextmanager
def broker(directory: Path, extended: str) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    port = free_ports(0, -2, +1)[0]
    config = directory / "broker.conf"
    config.write_text(CONFIG.format(port=port, directory=directory, extended=extended))
    # The limit is set by a process in between: after a fork of this one no Python may run.
    limited = (
        "import os, resource, sys; "
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({DESCRIPTORS}, {DESCRIPTORS})); "
        "os.execv(sys.executable, [sys.executable, '-m', 'cometmq.broker', *sys.argv[1:]])"
    )
    command = [sys.executable, "-c", limited, "-n", "127.0.0.1:1", "-c", str(config)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            assert any("to stop it" in line for line in child.stdout)
            yield port, child
        finally:
            child.kill()


@pytest.mark.parametrize("extended", ["false", "true"])
def test_the_log_goes_on_when_queues_and_connections_want_every_descriptor(
    tmp_path: Path, extended: str
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2 * DESCRIPTORS + 100:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(2 * DESCRIPTORS + 100, hard), hard))
    with broker(tmp_path, extended) as (port, child):
        errors = asyncio.run(_crowd_and_send(port))
        child.terminate()
        _, log = child.communicate(timeout=60)
    assert errors == []
    assert "Traceback" not in log
    assert "connections refused" in log
    assert "Too many open files" not in log
    assert len(list((tmp_path / "store" / "commitlog").iterdir())) > 8


async def _crowd_and_send(port: int) -> list[str]:
    client = RemotingClient()
    errors: list[str] = []
    with ExitStack() as crowd:
        try:
            await _send(client, port, 20, errors)
            for _ in range(2 * DESCRIPTORS):
                peer = crowd.enter_context(socket.socket())
                peer.setblocking(False)
                peer.connect_ex(("127.0.0.1", port))
            await _send(client, port, 300, errors)
        finally:
            await client.close()
    return errors


async def _send(client: RemotingClient, port: int, count: int, errors: list[str]) -> None:
    for number in range(count):
        # 20 topics of 16 queues, and four times the files that a queue has at a time.
        topic, queue_id = f"T{number % 20}", number % 16
        ext = {"a": "g", "b": topic, "c": "TBW102", "d": "16", "e": str(queue_id), "g": "1"}
        request = Command(code=310, ext=ext, body=bytes(32 * 1024))
        reply = await client.call(f"127.0.0.1:{port}", request, 10.0)
        if reply.code:
            errors.append(f"{number}: {reply.code} {reply.remark}")
