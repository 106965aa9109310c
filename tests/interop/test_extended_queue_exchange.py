"""The extended consume queue in a store that changes hands: each make of broker reads the units of the others.

Two groups filter by SQL92, every broker calculates their bits, and the next one rules messages out by them. Unit files
are so small that each takes a few units. What is on disk is compared byte for byte with what must be there.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cometmq.model.bloom import BloomFilter, bloom_filter
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.record import Record, decode_record, decode_records
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.store.files.queue_entry import ENTRY
from cometmq.store.queues.extended_queue import (
    ExtendedQueue,
    Unit,
    decode_unit,
    encode_unit,
    offset_of,
)

from .admin_calls import CALL_SECONDS, create_group, create_topic
from .conftest import required
from .systems import OURS, ROCKETMQ_4, ROCKETMQ_5, Broker, NameServer, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

TOPIC = "extended-orders"
UNIT_FILE_BYTES = 200
BLOOM = bloom_filter(32, 20)
FILTERS: dict[str, tuple[str, Callable[[Record], bool]]] = {
    "extended-cheap": ("price < 10", lambda record: _price(record) < 10),
    "extended-red": (
        "price >= 5 AND TAGS = 'red'",
        lambda record: _price(record) >= 5 and record.properties["TAGS"] == "red",
    ),
    "extended-none": ("price IS NULL", lambda record: False),
}
VERSION = 1
COUNT = 24
WAIT_SECONDS_MAX = 60.0
STOP, KILL = "SIGTERM", "SIGKILL"
THEIR = "theirs"

CHAINS = {
    "theirs first": (ROCKETMQ_4, ((THEIR, STOP), (OURS, KILL), (THEIR, STOP), (OURS, STOP))),
    # 5.5.0 may take half a minute to stop.
    "ours first": (ROCKETMQ_5, ((OURS, KILL), (THEIR, KILL), (OURS, STOP))),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_units_are_handed_on(chain: str, tmp_path: Path) -> None:
    theirs, visits = CHAINS[chain]
    with required():
        makes = {system: commands_of(system, tmp_path / system) for system in (OURS, theirs)}
    with NameServer(makes[OURS], tmp_path / "namesrv").running() as name_server:
        broker = Broker(
            [name_server],
            tmp_path,
            "extended",
            enableConsumeQueueExt="true",
            mappedFileSizeConsumeQueueExt=UNIT_FILE_BYTES,
            enableCalcFilterBitMap="true",
            enablePropertyFilter="true",
            mappedFileSizeCommitLog=1 << 20,
            messageDelayLevel="1s",
        )
        for number, (who, ending) in enumerate(visits):
            if number == 1 and chain == "theirs first":
                _check_written_by_one(broker.store)
            try:
                broker.start(makes[theirs if who == THEIR else who])
                asyncio.run(_visit(broker, number))
                if ending == STOP:
                    broker.stop()
            finally:
                broker.kill()
        units = _units_on_disk(broker.store)
        assert len(list((broker.store / "consumequeue_ext" / TOPIC / "0").iterdir())) > 5
        # The last delayed message may have come or not.
        assert len(units) in (len(visits) * (COUNT + 1) - 1, len(visits) * (COUNT + 1))


async def _visit(broker: Broker, number: int) -> None:
    async with _connected(broker.address) as visit:
        if number == 0:
            await visit.prepare()
        await visit.beat()
        await visit.until_delivered(number)
        await visit.check()
        await visit.send(number)
        await visit.until_readable(number * (COUNT + 1) + COUNT)
        await visit.check()
        await visit.send_delayed(number)


@asynccontextmanager
async def _connected(address: str) -> AsyncIterator[_Visit]:
    remoting = RemotingClient()
    try:
        yield _Visit(remoting, address)
    finally:
        await remoting.close()


class _Visit:
    def __init__(self, remoting: RemotingClient, address: str) -> None:
        self._remoting = remoting
        self._address = address

    async def prepare(self) -> None:
        await create_topic(self._remoting, self._address, TOPIC, 1)
        for group in FILTERS:
            await create_group(self._remoting, self._address, group)

    async def beat(self) -> None:
        """The groups say what they want; each time the same, so that a filter lives on."""
        consumers = [
            {
                "groupName": group,
                "consumeType": "CONSUME_PASSIVELY",
                "messageModel": "CLUSTERING",
                "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
                "subscriptionDataSet": [
                    {
                        "topic": TOPIC,
                        "subString": expression,
                        "subVersion": VERSION,
                        "expressionType": "SQL92",
                    }
                ],
                "unitMode": False,
            }
            for group, (expression, _) in FILTERS.items()
        ]
        body = {"clientID": "extended-client", "consumerDataSet": consumers, "producerDataSet": []}
        await self._ask(34, {}, json.dumps(body).encode())
        # A filter judges what is stored later than the millisecond of its birth.
        await asyncio.sleep(0.01)

    async def send(self, number: int) -> None:
        for index in range(COUNT):
            tag = ("red", "blue")[index % 3 % 2]
            await self._send(f"{number}-{index}", f"price\x01{index}\x02TAGS\x01{tag}\x02")

    async def send_delayed(self, number: int) -> None:
        await self._send(f"{number}-late", "price\x017\x02TAGS\x01red\x02DELAY\x011\x02")

    async def until_delivered(self, number: int) -> None:
        """What was delayed under the brokers before is there: their queue of waiting messages has units, too."""
        await self.until_readable(number * (COUNT + 1))

    async def until_readable(self, count: int) -> None:
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while len(await self._pull("extended-reader", sysFlag="4", subscription="*")) < count:
            assert time.monotonic() < deadline, f"fewer than {count} messages"
            await asyncio.sleep(0.05)

    async def check(self) -> None:
        """What each group gets, by filter and by tag, and what the broker says of each entry."""
        every = await self._pull("extended-reader", sysFlag="4", subscription="*")
        red = await self._pull("extended-reader", sysFlag="4", subscription="red")
        found = {
            group: await self._pull(group, sysFlag="0", subVersion=str(VERSION))
            for group in FILTERS
        }
        again = await self._pull("extended-reader", sysFlag="4", subscription="*")
        if len(again) > len(every):
            # The delayed message came in between, which it does once.
            await self.check()
            return
        assert _bodies(red) == [r.body for r in every if r.properties["TAGS"] == "red"]
        for group, (_, wants) in FILTERS.items():
            assert _bodies(found[group]) == [record.body for record in every if wants(record)], (
                group
            )
        await self._check_entries(every)

    async def _check_entries(self, every: list[Record]) -> None:
        ext = {"topic": TOPIC, "queueId": "0", "index": "0", "count": str(len(every))}
        for group in FILTERS if every else ():
            reply = await self._ask(321, {**ext, "consumerGroup": group})
            entries: list[dict[str, Any]] = fastjson.loads(bytes(reply.body))["queueData"]
            assert len(entries) == len(every)
            for entry, record in zip(entries, every, strict=True):
                unit: dict[str, Any] = fastjson.loads(entry["extendDataJson"].encode())
                assert unit["tagsCode"] == java_hash(record.properties["TAGS"]), entry
                assert unit["msgStoreTime"] == record.store_timestamp, entry
                if record.body.endswith(b"late"):
                    continue
                bits = _expected_bits(record)
                assert entry["bitMap"] == _bit_text(bits), (group, record.body)

    async def _send(self, body: str, properties: str) -> None:
        ext = {
            **{"a": "PG", "b": TOPIC, "c": "TBW102", "d": "4", "e": "0", "f": "0", "h": "0"},
            **{"g": str(time.time_ns() // 1_000_000), "j": "0", "k": "false", "m": "false"},
            "i": f"{properties}UNIQ_KEY\x01{body}\x02",
        }
        await self._ask(310, ext, body.encode())

    async def _pull(self, group: str, **fields: str) -> list[Record]:
        records: list[Record] = []
        offset = 0
        while True:
            ext = {
                "consumerGroup": group,
                "topic": TOPIC,
                "queueId": "0",
                "queueOffset": str(offset),
                "maxMsgNums": "32",
                "commitOffset": "0",
                "suspendTimeoutMillis": "0",
                "subVersion": "0",
                **fields,
            }
            reply = await self._remoting.call(
                self._address, Command(code=11, ext=ext), CALL_SECONDS
            )
            if reply.code == 0:
                records += decode_records(reply.body)
            elif reply.code == 19 or (reply.code == 21 and offset == 0):
                return records
            else:
                assert reply.code == 20, reply
            assert reply.ext is not None
            offset = int(reply.ext["nextBeginOffset"])

    async def _ask(self, code: int, ext: dict[str, str], body: bytes = b"") -> Command:
        request = Command(code=code, ext=ext, body=body)
        reply = await self._remoting.call(self._address, request, CALL_SECONDS)
        assert reply.code == 0, (code, reply.remark)
        return reply


def _units_on_disk(store: Path) -> list[Unit]:
    """Every unit of the topic by the entry that points to it; each must be what follows from its record."""
    log = (store / "commitlog" / f"{0:020d}").read_bytes()
    directory = store / "consumequeue_ext" / TOPIC / "0"
    units: list[Unit] = []
    for physical_offset, size_bytes, code in _entries(store):
        file_start = offset_of(code) // UNIT_FILE_BYTES * UNIT_FILE_BYTES
        data = (directory / f"{file_start:020d}").read_bytes()
        assert len(data) == UNIT_FILE_BYTES
        unit = decode_unit(data, offset_of(code) - file_start)
        record = decode_record(memoryview(log)[physical_offset : physical_offset + size_bytes])
        bits = _expected_bits(record)
        assert unit is not None
        if record.body.endswith(b"late") and not unit.bits:
            bits = b""  # It was delivered before any group had told its filter.
        tags_code = java_hash(record.properties["TAGS"])
        assert unit == Unit(tags_code, record.store_timestamp, bits), record.body
        units.append(unit)
    return units


def _check_written_by_one(store: Path) -> None:
    """Put by us one behind the other, the same units make the same files."""
    units = _units_on_disk(store)
    row = ExtendedQueue("", UNIT_FILE_BYTES)
    offsets = [row.append(encode_unit(unit)) for unit in units]
    assert offsets == [offset_of(code) for _, _, code in _entries(store)]
    directory = store / "consumequeue_ext" / TOPIC / "0"
    data = b"".join(path.read_bytes() for path in sorted(directory.iterdir()))
    assert data.rstrip(b"\0") == bytes(row.waiting).rstrip(b"\0")


def _entries(store: Path) -> list[tuple[int, int, int]]:
    files = sorted((store / "consumequeue" / TOPIC / "0").iterdir())
    data = b"".join(path.read_bytes() for path in files)
    return [entry for entry in ENTRY.iter_unpack(data) if entry[1]]


def _expected_bits(record: Record, bloom: BloomFilter = BLOOM) -> bytes:
    bits = 0
    for group, (_, wants) in FILTERS.items():
        if wants(record):
            bits |= bloom.bits(bloom.positions(f"{group}#{TOPIC}"))
    return bits.to_bytes(bloom.bit_count // 8, "little")


def _bit_text(bits: bytes) -> str:
    """As RocketMQ shows bits: the last byte first, a line for every eight."""
    text = ""
    for at in range(len(bits) - 1, -1, -1):
        text += f"{bits[at]:08b}" + ("\n" if at % 8 == 0 else "")
    return text


def _price(record: Record) -> int:
    return int(record.properties["price"])


def _bodies(records: list[Record]) -> list[bytes]:
    return [record.body for record in records]
