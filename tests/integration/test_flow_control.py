"""Each reason for which a broker refuses sends, provoked; and what our producer does about it: it does not push."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.client import Message, ProducerConfig
from cometmq.client.aio import Producer
from cometmq.client.aio.trace.send_hooks import SendContext
from cometmq.client.core.send.send_retry import RETRIED_CODES
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.frame import decode_bytes, encode_bytes
from cometmq.protocol.reply_errors import SystemBusy
from cometmq.store.log.commit_log import CommitLog
from cometmq.testing import Cluster, cluster

from .raw_client import RawClient

TOPIC = "Busy"
OK, BUSY = 0, int(ResponseCode.SYSTEM_BUSY)


class Disk:
    """Holds every sync of the log up until it is released."""

    def __init__(self) -> None:
        self._is_free = threading.Event()
        self._is_free.set()
        self._sync = CommitLog.sync_range

    def sync_range(self, log: CommitLog, start: int, end: int) -> None:
        self._is_free.wait()
        self._sync(log, start, end)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Released in any case: a broker that stops waits for its disk."""
        self._is_free.clear()
        try:
            yield
        finally:
            self._is_free.set()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(CommitLog, "sync_range", lambda *call: disk.sync_range(*call))
    return disk


class Attempts:
    """A send hook that counts."""

    def __init__(self) -> None:
        self.count = 0

    def before(self, context: SendContext) -> None:
        self.count += 1

    def after(self, context: SendContext) -> None: ...


async def refused(client: RawClient) -> Command | None:
    reply = await client.send(TOPIC, b"-" * 1000)
    assert reply.code in (OK, BUSY), reply.remark
    return reply if reply.code == BUSY else None


async def served(client: RawClient) -> Command | None:
    reply = await client.send(TOPIC, b"x")
    return reply if reply.code == OK else None


def send_request(number: int) -> Command:
    ext = {
        "a": "PG",
        "b": TOPIC,
        "c": "TBW102",
        "d": "4",
        "e": "0",
        "f": "0",
        "h": "0",
        "g": "1",
        "i": "",
        "j": "0",
    }
    return Command(310, ext, b"x", opaque=number)


def read_command(connection: socket.socket) -> Command:
    """The next one that a blocking socket gets."""
    connection.settimeout(10)
    stream = connection.makefile("rb", buffering=0)
    prefix = stream.read(4)
    return decode_bytes(prefix + stream.read(int.from_bytes(prefix, "big")))


async def test_sends_behind_a_slow_append_are_refused() -> None:
    settings = {"brokerFastFailureEnable": "true", "osPageCacheBusyTimeOutMills": "100"}
    async with (
        cluster(settings=settings) as servers,
        RawClient(servers.broker_address) as client,
    ):
        assert (await client.send(TOPIC, b"first")).code == OK
        store: Any = servers.servers.broker.core.store
        append_each = store.append_each
        host, _, port = servers.broker_address.rpartition(":")
        behind = socket.create_connection((host, int(port)))

        def slow_put(messages: Any) -> Any:
            store.append_each = append_each
            # They arrive while the broker does nothing but append.
            behind.sendall(b"".join(encode_bytes(send_request(n)) for n in range(4)))
            time.sleep(0.15)
            return append_each(messages)

        with behind:
            # The broker has to know the connection before: what is not yet accepted does not stand behind anything.
            behind.sendall(encode_bytes(Command(9999)))
            await asyncio.to_thread(read_command, behind)
            store.append_each = slow_put
            assert (await client.send(TOPIC, b"x")).code == OK, "it was stored"
            for _ in range(4):
                reply = await asyncio.to_thread(read_command, behind)
                assert reply.code == BUSY
                assert (reply.remark or "").startswith(
                    "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: 1"
                )
        await eventually(lambda: served(client), "calm again")
        assert await _count(client) == 3, "what is refused is not stored"


async def test_sends_that_wait_too_long_are_refused() -> None:
    settings = {"brokerFastFailureEnable": "true", "waitTimeMillsInSendQueue": "20"}
    async with (
        cluster(settings=settings) as servers,
        RawClient(servers.broker_address) as client,
    ):
        hog = asyncio.create_task(_hog())
        reply = await eventually(lambda: refused(client), "more to do than can be done")
        assert (reply.remark or "").startswith(
            "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: "
        )
        pull = {"consumerGroup": "G", "topic": TOPIC, "queueId": "0", "queueOffset": "0"}
        pull |= {"maxMsgNums": "1", "sysFlag": "4", "suspendTimeoutMillis": "0"}
        assert (await client.ask(11, pull)).code != BUSY, "pulls have more patience"
        hog.cancel()
        await asyncio.wait([hog])
        await eventually(lambda: served(client), "calm again")


async def _hog() -> None:
    """Takes nearly all the time of the event loop that the broker runs on."""
    while True:
        time.sleep(0.06)
        await asyncio.sleep(0)


async def test_sends_that_would_have_to_wait_for_a_disk_that_is_behind_are_refused(
    disk: Disk,
) -> None:
    settings = {"flushDiskType": "SYNC_FLUSH", "sendThreadPoolQueueCapacity": "2"}
    async with (
        cluster(settings=settings) as servers,
        RawClient(servers.broker_address) as client,
    ):
        assert (await client.send(TOPIC, b"first")).code == OK
        with disk.held():
            waiting = [asyncio.create_task(client.send(TOPIC, b"waits")) for _ in range(2)]
            await _until_waiting(servers, 2)
            reply = await client.send(TOPIC, b"one too many")
            assert reply.code == BUSY
            assert reply.remark == "[OVERLOAD]system busy, start flow control for a while"
            # Who does not wait for the disk is served.
            assert (await client.send(TOPIC, b"x", {"WAIT": "false"})).code == OK
        assert [reply.code for reply in await asyncio.gather(*waiting)] == [OK, OK]
        assert (await client.send(TOPIC, b"last")).code == OK


async def _until_waiting(servers: Cluster, count: int) -> None:
    durability = servers.servers.broker.core.durability

    await eventually(lambda: durability.waiting == count, f"{count} sends wait for the disk")


async def test_sends_are_refused_while_too_much_is_not_on_disk(disk: Disk) -> None:
    settings = {
        "transientStorePoolEnable": "true",
        "transientStorePoolSize": "2",
        "mappedFileSizeCommitLog": str(32 * 1024),
        # Only this one rule.
        "brokerFastFailureEnable": "false",
    }
    async with (
        cluster(settings=settings) as servers,
        RawClient(servers.broker_address) as client,
    ):
        assert (await client.send(TOPIC, b"first")).code == OK
        with disk.held():
            reply = await eventually(lambda: refused(client), "64 KiB are not on disk")
            text, _, size = (reply.remark or "").rpartition(": ")
            assert text == (
                "[REJECTREQUEST]system busy, start flow control for a while, bytes not on disk"
            )
            assert int(size) >= 64 * 1024
            left = await client.ask(28)
            assert b'"remainTransientStoreBufferNumbs":"0"' in bytes(left.body)
        await eventually(lambda: served(client), "it is on disk")


@pytest.mark.parametrize("codes", [RETRIED_CODES, RETRIED_CODES | {BUSY}])
async def test_our_producer_does_not_push(disk: Disk, codes: frozenset[int]) -> None:
    """One broker, so there is no other to try, whatever the list of codes says."""
    settings = {
        "transientStorePoolEnable": "true",
        "transientStorePoolSize": "1",
        "mappedFileSizeCommitLog": str(32 * 1024),
    }
    config = ProducerConfig(retries=5, background_retries=5, retried_codes=codes)
    async with (
        cluster(settings=settings) as servers,
        RawClient(servers.broker_address) as client,
        Producer("patient", name_servers=servers.name_servers, config=config) as producer,
    ):
        attempts = Attempts()
        producer.add_send_hook(attempts)
        message = Message(topic=TOPIC, body=b"x")
        await producer.send(message)
        with disk.held():
            await eventually(lambda: refused(client), "32 KiB are not on disk")
            for send in (producer.send, producer.send_soon):
                attempts.count = 0
                with pytest.raises(SystemBusy, match=r"\[REJECTREQUEST\]system busy") as caught:
                    await send(message)
                assert attempts.count == 1
                assert caught.value.retryable, "by the caller, later"
        await eventually(lambda: served(client), "it is on disk")
        await producer.send(message)


async def _count(client: RawClient) -> int:
    return len(await client.read(TOPIC))
