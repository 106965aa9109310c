"""A damaged record is fetched from a replica over a real socket, written back, and then delivered."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.eventually import eventually

from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.broker.replication.feed import LogSpan
from cometmq.broker.replication.ha_port import HaPort
from cometmq.broker.replication.heal import Healer
from cometmq.broker.replication.replicas import Outlook, Replicas
from cometmq.broker.replication.replication_config import ReplicationConfig
from cometmq.broker.replication.slave_link import SlaveLink
from cometmq.model.address import pack_host
from cometmq.model.messages.record import decode_records
from cometmq.store.log.new_messages import NewMessage, Stored
from cometmq.store.message_store import MessageStore
from cometmq.store.store_config import CommitLogConfig, ReadConfig, StoreConfig

HOST = pack_host("127.0.0.1", 10911)
FILE_BYTES = 1 << 18
COUNT = 400
SECONDS_MAX = 20


class Side:
    def __init__(self, directory: Path) -> None:
        self.config = StoreConfig(
            root=str(directory),
            log=CommitLogConfig(file_bytes=FILE_BYTES),
            read=ReadConfig(unchecked_bytes=0),
        )
        self.store = self.open()

    def open(self) -> MessageStore:
        store = MessageStore(self.config, store_host=HOST, files=SystemFiles(), clock=SystemClock())
        store.load()
        return store

    def reopen(self) -> None:
        self.store.close()
        self.store = self.open()

    @property
    def span(self) -> LogSpan:
        return LogSpan(self.store.min_physical, self.store.max_physical, FILE_BYTES)

    def view(self, offset: int, size_bytes: int) -> memoryview | None:
        return self.store.log_view(offset, size_bytes)

    def put(self, count: int) -> list[Stored]:
        return [
            self.store.put(NewMessage(topic="T", queue_id=0, body=body(number), properties=b""))
            for number in range(count)
        ]

    def flip(self, record: Stored, at: int, mask: int = 0x40) -> None:
        position = record.physical_offset + at
        start = position - position % FILE_BYTES
        with Path(self.config.root, "commitlog", f"{start:020d}").open("r+b") as file:
            file.seek(position - start)
            old = file.read(1)[0]
            file.seek(position - start)
            file.write(bytes((old ^ mask,)))

    def forget_checks(self) -> None:
        """As if what was checked a moment ago had been checked long ago: two generations are remembered."""
        self.store.apply(self.config)
        self.store.apply(self.config)

    def delivered(self) -> dict[int, bytes]:
        """Everything a reader gets that does not wait, by queue offset."""
        found: dict[int, bytes] = {}
        offset = 0
        while offset < COUNT:
            result = self.store.get("T", 0, offset, 32)
            for part in result.parts:
                found.update((one.queue_offset, one.body) for one in decode_records(part))
            offset = max(result.next_offset, offset + 1)
        return found

    def log(self) -> dict[str, bytes]:
        return {one.name: one.read_bytes() for one in Path(self.config.root, "commitlog").iterdir()}


def body(number: int) -> bytes:
    return (f"message {number} " * 60).encode()


WHOLE = {number: body(number) for number in range(COUNT)}


@contextmanager
def sides(directory: Path) -> Iterator[tuple[Side, Side]]:
    master, slave = Side(directory / "master"), Side(directory / "slave")
    try:
        yield master, slave
    finally:
        master.store.close()
        slave.store.close()


async def copied(master: Side, slave: Side) -> list[Stored]:
    port, address = await serve(master)
    link = SlaveLink(slave.store.replica, file_bytes=FILE_BYTES, cut_tail=lambda *_: None)
    stored = master.put(COUNT)
    link.follow(address)
    await eventually(lambda: slave.store.replica.dispatched == master.store.max_physical)
    await link.stop()
    await port.stop()
    return stored


async def serve(side: Side, *, is_master: bool = True) -> tuple[HaPort, str]:
    config = ReplicationConfig()
    port = HaPort(
        side,
        Replicas(config.behind_bytes_max),
        config=lambda: config,
        is_master=lambda: is_master,
        on_change=lambda: None,
    )
    bound = await port.start("127.0.0.1", 0)
    return port, f"127.0.0.1:{bound}"


def run(tmp_path: Path, scenario: Callable[[Side, Side], Awaitable[None]]) -> None:
    async def main() -> None:
        with sides(tmp_path) as (master, slave):
            await scenario(master, slave)

    asyncio.run(main())


@pytest.mark.parametrize("damaged", ["master", "slave"])
@pytest.mark.parametrize("at", [2, 6, 10, 15, 22, 30, 86, 100])
def test_a_record_is_healed_from_the_other_side_and_delivered(
    tmp_path: Path, damaged: str, at: int
) -> None:
    async def scenario(master: Side, slave: Side) -> None:
        stored = await copied(master, slave)
        ill, well = (master, slave) if damaged == "master" else (slave, master)
        port, address = await serve(well, is_master=well is master)
        for number in (0, 7, 8, 250, COUNT - 1):
            ill.flip(stored[number], at)
        ill.forget_checks()
        healer = Healer(ill.store, lambda: [address], file_bytes=FILE_BYTES)
        healer.start()
        assert ill.delivered().keys().isdisjoint({0, 7, 8, 250, COUNT - 1})
        await eventually(lambda: ill.store.damages.healed_count == 5)
        assert ill.delivered() == WHOLE
        assert ill.log() == well.log()
        assert ill.store.damages.known == []
        await healer.stop()
        await port.stop()

    run(tmp_path, scenario)


def test_what_rotted_while_the_broker_was_stopped_is_healed_after_the_start(tmp_path: Path) -> None:
    async def scenario(master: Side, slave: Side) -> None:
        stored = await copied(master, slave)
        master.store.close()
        master.flip(stored[100], 120)
        master.flip(stored[200], 5)
        master.store = master.open()
        assert master.store.damages.found_count == 2
        port, address = await serve(slave)
        healer = Healer(master.store, lambda: [address], file_bytes=FILE_BYTES)
        healer.start()
        await eventually(lambda: master.store.damages.healed_count == 2)
        assert master.delivered() == WHOLE
        await healer.stop()
        await port.stop()

    run(tmp_path, scenario)


def test_a_replica_without_the_record_or_of_another_log_does_not_heal(tmp_path: Path) -> None:
    async def scenario(master: Side, slave: Side) -> None:
        """``slave`` has a log of its own, with records of the same sizes and places."""
        stored = master.put(COUNT)
        for number in range(COUNT // 2):
            data = body(number)[::-1]
            slave.store.put(NewMessage(topic="T", queue_id=0, body=data, properties=b""))
        master.flip(stored[20], 100)
        master.flip(stored[COUNT - 1], 100)
        before = master.log()
        port, address = await serve(slave)
        gone = "127.0.0.1:1"
        healer = Healer(master.store, lambda: [gone, address], file_bytes=FILE_BYTES)
        healer.start()
        master.delivered()
        await eventually(lambda: not healer.is_busy)
        assert master.delivered() == {
            number: data for number, data in WHOLE.items() if number not in (20, COUNT - 1)
        }
        assert master.store.damages.healed_count == 0
        assert master.log() == before
        await healer.stop()
        await port.stop()

    run(tmp_path, scenario)


def test_a_slave_copies_a_damaged_record_and_goes_on_but_does_not_deliver_it(
    tmp_path: Path,
) -> None:
    async def scenario(master: Side, slave: Side) -> None:
        slave.store.apply(replace(slave.config, read=ReadConfig()))
        stored = master.put(COUNT)
        master.flip(stored[30], 100)
        port, address = await serve(master)
        link = SlaveLink(slave.store.replica, file_bytes=FILE_BYTES, cut_tail=lambda *_: None)
        link.follow(address)
        await eventually(lambda: slave.store.replica.dispatched == master.store.max_physical)
        healthy = {number: data for number, data in WHOLE.items() if number != 30}
        assert slave.delivered() == healthy == master.delivered()
        await link.stop()
        await port.stop()

    run(tmp_path, scenario)


def test_who_fetches_a_record_is_no_replica(tmp_path: Path) -> None:
    async def scenario(master: Side, slave: Side) -> None:
        stored = await copied(master, slave)
        port, address = await serve(master)
        host, number = address.split(":")
        reader, writer = await asyncio.open_connection(host, int(number))
        writer.write(stored[3].physical_offset.to_bytes(8, "big"))
        await reader.readexactly(1000)
        assert len(port.replicas) == 0
        assert port.replicas.outlook(2, master.store.max_physical) is Outlook.NOT_AVAILABLE
        writer.close()
        link = SlaveLink(slave.store.replica, file_bytes=FILE_BYTES, cut_tail=lambda *_: None)
        link.follow(address)
        await eventually(lambda: port.replicas.copied_to(2) == master.store.max_physical)
        await link.stop()
        await port.stop()

    run(tmp_path, scenario)


def test_a_slave_does_not_give_a_good_record_for_a_damaged_one(tmp_path: Path) -> None:
    async def scenario(master: Side, slave: Side) -> None:
        stored = await copied(master, slave)
        good = slave.log()
        cuts: list[int] = []
        master.flip(stored[-2], 100)
        port, address = await serve(master)
        link = SlaveLink(
            slave.store.replica,
            file_bytes=FILE_BYTES,
            cut_tail=lambda offset, _: cuts.append(offset),
        )
        link.follow(address)
        await eventually(lambda: "is damaged at the master" in link._told)
        assert not link.is_following
        master.flip(stored[-2], 100)
        await eventually(lambda: link.is_following)
        assert cuts == []
        assert slave.log() == good
        await link.stop()
        await port.stop()

    run(tmp_path, scenario)


def test_nobody_follows_a_slave(tmp_path: Path) -> None:
    """It may have another log than the master, and who follows it would cut its own to match."""

    async def scenario(master: Side, slave: Side) -> None:
        await copied(master, slave)
        port, address = await serve(slave, is_master=False)
        reader, writer = await asyncio.open_connection(*address.split(":"))
        writer.write((1).to_bytes(8, "big"))
        async with asyncio.timeout(SECONDS_MAX):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
        writer.close()
        await port.stop()

    run(tmp_path, scenario)


def test_random_flips_are_never_delivered_as_good(tmp_path: Path) -> None:
    """Bits of everything that a checksum or the structure covers: not of flags, times, hosts and properties."""
    rng = random.Random(20261118)

    async def settled(healer: Healer) -> None:
        await eventually(lambda: not healer.is_busy)

    covered = [*range(16), *range(20, 36), *range(84, 88)]

    async def scenario(master: Side, slave: Side) -> None:
        stored = await copied(master, slave)
        port, address = await serve(slave)
        healer = Healer(master.store, lambda: [address], file_bytes=FILE_BYTES)
        healer.start()
        for _ in range(40):
            for record in rng.sample(stored, 5):
                at = rng.choice((rng.choice(covered), rng.randrange(88, record.size_bytes - 4)))
                master.flip(record, at, 1 << rng.randrange(8))
            master.forget_checks()
            if rng.random() < 0.3:
                await healer.stop()
                master.reopen()
                healer = Healer(master.store, lambda: [address], file_bytes=FILE_BYTES)
                healer.start()
                await settled(healer)
            assert master.delivered().items() <= WHOLE.items()
            await settled(healer)
        assert master.delivered() == WHOLE
        assert master.log() == slave.log()
        await healer.stop()
        await port.stop()

    run(tmp_path, scenario)
