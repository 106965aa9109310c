"""A slave's store follows a master's over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.eventually import eventually

from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.broker.replication import slave_link
from cometmq.broker.replication.feed import LogSpan
from cometmq.broker.replication.ha_port import HaPort
from cometmq.broker.replication.ha_wire import READ_BYTES
from cometmq.broker.replication.replicas import Replicas
from cometmq.broker.replication.replication_config import ReplicationConfig
from cometmq.broker.replication.slave_link import SlaveLink
from cometmq.model.address import pack_host
from cometmq.remoting.new_loop import new_event_loop
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.store_config import CommitLogConfig, StoreConfig

HOST = pack_host("127.0.0.1", 10911)
FILE_BYTES = 1 << 20
SECONDS_MAX = 20


class Side:
    def __init__(self, directory: Path) -> None:
        config = StoreConfig(root=str(directory), log=CommitLogConfig(file_bytes=FILE_BYTES))
        self.store = MessageStore(config, store_host=HOST, files=SystemFiles(), clock=SystemClock())
        self.store.load()

    @property
    def span(self) -> LogSpan:
        return LogSpan(self.store.min_physical, self.store.max_physical, FILE_BYTES)

    def view(self, offset: int, size_bytes: int) -> memoryview | None:
        return self.store.log_view(offset, size_bytes)

    def put(self, count: int, mark: bytes = b"x") -> None:
        for number in range(count):
            self.store.put(
                NewMessage(topic="T", queue_id=number % 4, body=mark * 1000, properties=b"")
            )


@contextmanager
def sides(directory: Path) -> Iterator[tuple[Side, Side]]:
    master, slave = Side(directory / "master"), Side(directory / "slave")
    try:
        yield master, slave
    finally:
        master.store.close()
        slave.store.close()


async def test_a_slave_copies_and_confirms(tmp_path: Path) -> None:
    with sides(tmp_path) as (master, slave):
        config = ReplicationConfig()
        port = HaPort(
            master,
            Replicas(1 << 28),
            config=lambda: config,
            is_master=lambda: True,
            on_change=lambda: None,
        )
        bound = await port.start("127.0.0.1", 0)
        link = SlaveLink(slave.store.replica, file_bytes=FILE_BYTES, cut_tail=lambda *_: None)
        master.put(3000)
        link.follow(f"127.0.0.1:{bound}")
        await eventually(lambda: port.replicas.copied_to(2) == master.store.max_physical)
        master.put(100)
        port.log_grew()
        await eventually(lambda: port.replicas.copied_to(2) == master.store.max_physical)
        await eventually(lambda: slave.store.replica.dispatched == master.store.max_physical)
        assert slave.store.max_offset("T", 0) == master.store.max_offset("T", 0)
        await link.stop()
        await eventually(lambda: len(port.replicas) == 0)
        await port.stop()
        a = sorted((tmp_path / "master" / "commitlog").iterdir())
        b = sorted((tmp_path / "slave" / "commitlog").iterdir())
        assert [one.name for one in a] == [one.name for one in b]
        assert all(x.read_bytes() == y.read_bytes() for x, y in zip(a, b, strict=True))


def test_others_have_their_turn_while_a_slave_catches_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uvloop reads from one socket up to 32 times in a row."""
    monkeypatch.setattr(slave_link, "TURN_BYTES", 1)
    grown: list[int] = []

    async def watch(slave: Side) -> None:
        end = slave.store.max_physical
        while True:
            await asyncio.sleep(0)
            grown.append(slave.store.max_physical - end)
            end = slave.store.max_physical

    async def scenario(master: Side, slave: Side) -> None:
        config = ReplicationConfig()
        port = HaPort(
            master,
            Replicas(1 << 28),
            config=lambda: config,
            is_master=lambda: True,
            on_change=lambda: None,
        )
        bound = await port.start("127.0.0.1", 0)
        link = SlaveLink(slave.store.replica, file_bytes=FILE_BYTES, cut_tail=lambda *_: None)
        watching = asyncio.create_task(watch(slave))
        link.follow(f"127.0.0.1:{bound}")
        await eventually(lambda: slave.store.replica.dispatched == master.store.max_physical)
        watching.cancel()
        await link.stop()
        await port.stop()

    with sides(tmp_path) as (master, slave):
        master.put(6000)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(scenario(master, slave))
    assert max(grown) <= READ_BYTES
