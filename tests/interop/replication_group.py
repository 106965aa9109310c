"""Masters and slaves of one broker name, each of any make, and what their stores and their answers have in common."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.eventually import wait_until
from tests.integration.raw_client import RawClient

from cometmq.protocol.bodies.ha import HaStatus
from cometmq.protocol.codes import RequestCode, ResponseCode

from .admin_calls import create_group, create_topic
from .servers import ServerCommands
from .systems import OURS, Broker, NameServer

T = TypeVar("T")

BROKER_NAME = "replicated"
MASTER = "ASYNC_MASTER"
SYNC_MASTER = "SYNC_MASTER"
SLAVE = "SLAVE"

TOPIC = "replicated-orders"
QUEUES = 4
# A slave of RocketMQ connects up to 5 s after it has learned of its master, and 4.9 says where it is 5 s later.
FOLLOW_SECONDS_MAX = 60.0

ELECTED_SECONDS_MAX = 60.0

SMALL_FILES: dict[str, object] = {
    "mappedFileSizeCommitLog": 64 * 1024,
    "mappedFileSizeConsumeQueue": 20 * 50,
}
"""So small that log and queues go over several files."""


@dataclass(frozen=True)
class Group:
    """Brokers of one name, known to one name server."""

    makes: dict[str, ServerCommands]
    name_server: NameServer
    directory: Path
    stack: contextlib.ExitStack

    def broker(self, number: int, role: str, **settings: object) -> Broker:
        """One that is not started yet; it is killed in the end."""
        broker = Broker(
            [self.name_server],
            self.directory / f"broker-{number}",
            BROKER_NAME,
            **{
                **SMALL_FILES,
                "brokerIP2": "127.0.0.1",
                "brokerId": 0 if role != SLAVE else number,
                "brokerRole": role,
                "slaveReadEnable": "true",
                **settings,
            },
        )
        self.stack.callback(broker.kill)
        return broker

    def controlled(self, number: int, controller: str) -> Broker:
        """The same under the controller at an address: what it becomes is the controller's to say."""
        return self.broker(
            number,
            SLAVE,
            enableControllerMode="true",
            controllerAddr=controller,
            allAckInSyncStateSet="true",
            inSyncReplicas=1,
        )

    def start(self, broker: Broker, make: str) -> Broker:
        """A master is known to clients when this returns; a slave may still look for its master."""
        broker.start(self.makes[make], until_known=broker.settings["brokerRole"] != SLAVE)
        return broker


@contextlib.contextmanager
def group_in(
    directory: Path, makes: dict[str, ServerCommands], name_server_make: str = OURS
) -> Iterator[Group]:
    with (
        NameServer(makes[name_server_make], directory / "namesrv").running() as name_server,
        contextlib.ExitStack() as brokers,
    ):
        yield Group(makes, name_server, directory, brokers)


def ask(broker: Broker, question: Callable[[RawClient], Awaitable[T]]) -> T:
    """What a broker answers to one or more requests over one connection."""

    async def run() -> T:
        async with RawClient(broker.address) as client:
            return await question(client)

    return asyncio.run(run())


def make_topic(broker: Broker) -> None:
    async def make(client: RawClient) -> None:
        await create_topic(client.remoting, client.address, TOPIC, QUEUES)

    ask(broker, make)


def make_group(broker: Broker, group: str) -> None:
    async def make(client: RawClient) -> None:
        await create_group(client.remoting, client.address, group)

    ask(broker, make)


def send(broker: Broker, count: int, word: str, *, in_flight: int = 8) -> list[int]:
    """Sends messages of many lengths to queue 0; the codes of the replies: 0, or 10 to 12 with a stored message."""

    async def run(client: RawClient) -> list[int]:
        codes: list[int] = []
        numbers = iter(range(count))

        async def work() -> None:
            for number in numbers:
                body = f"{word}-{number} ".encode() * (1 + number * 7 % 60)
                properties = {"KEYS": f"{word}-{number}", "TAGS": f"tag{number % 3}"}
                codes.append((await client.send(TOPIC, body, properties)).code)

        await asyncio.gather(*(work() for _ in range(in_flight)))
        return codes

    return ask(broker, run)


def read(broker: Broker) -> list[bytes]:
    """The bodies of queue 0, as this very broker serves them."""

    async def run(client: RawClient) -> list[bytes]:
        return [record.body for record in await client.read(TOPIC)]

    return ask(broker, run)


def ends(broker: Broker, queue_id: int = 0) -> tuple[int, int]:
    """The lowest and the highest offset of a queue."""

    async def run(client: RawClient) -> tuple[int, int]:
        fields = {"topic": TOPIC, "queueId": str(queue_id)}
        low = await client.ask(RequestCode.GET_MIN_OFFSET, fields)
        high = await client.ask(RequestCode.GET_MAX_OFFSET, fields)
        return int((low.ext or {})["offset"]), int((high.ext or {})["offset"])

    return ask(broker, run)


def position(broker: Broker, group: str, queue_id: int) -> int | None:
    """Where a group is in a queue, as this very broker knows it."""

    async def run(client: RawClient) -> int | None:
        fields = {"consumerGroup": group, "topic": TOPIC, "queueId": str(queue_id)}
        reply = await client.ask(RequestCode.QUERY_CONSUMER_OFFSET, fields)
        return int((reply.ext or {})["offset"]) if reply.code == ResponseCode.SUCCESS else None

    return ask(broker, run)


def commit(broker: Broker, group: str, queue_id: int, offset: int) -> None:
    async def run(client: RawClient) -> None:
        fields = {"consumerGroup": group, "topic": TOPIC, "queueId": str(queue_id)}
        fields["commitOffset"] = str(offset)
        reply = await client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields)
        assert reply.code == ResponseCode.SUCCESS, reply.remark

    ask(broker, run)


def change_setting(broker: Broker, key: str, value: object) -> None:
    """What ``mqadmin updateBrokerConfig -k KEY -v VALUE`` does."""

    async def run(client: RawClient) -> None:
        body = f"{key}={value}\n".encode()
        reply = await client.ask(RequestCode.UPDATE_BROKER_CONFIG, None, body)
        assert reply.code == ResponseCode.SUCCESS, reply.remark

    ask(broker, run)


def ha_status(broker: Broker) -> HaStatus:
    """Ours and 5.5.0 answer this."""

    async def run(client: RawClient) -> HaStatus:
        return HaStatus.decode((await client.ask(RequestCode.GET_BROKER_HA_STATUS)).body)

    return ask(broker, run)


def has_followers(master: Broker, count: int = 1) -> bool:
    """Whether so many slaves have everything that this master of ours has."""
    status = ha_status(master)
    return sum(one.diff == 0 for one in status.ha_connection_info) == count


def log_of(broker: Broker) -> dict[str, bytes]:
    """The files of the log by name. Files of nothing but zeros do not count: who prepares them, and when, is free."""
    return _files(broker.store / "commitlog", whole=True)


def queues_of(broker: Broker) -> dict[str, bytes]:
    """The files of the consume queues, each without the zeros at its end: some reserve the place of later entries."""
    return _files(broker.store / "consumequeue", whole=False)


def wait_for_equal_logs(one: Broker, other: Broker) -> None:
    _wait_for_equal("log", log_of, one, other)


def wait_for_equal_stores(one: Broker, other: Broker) -> None:
    wait_for_equal_logs(one, other)
    _wait_for_equal("consume queues", queues_of, one, other)


def _wait_for_equal(
    what: str, part: Callable[[Broker], dict[str, bytes]], one: Broker, other: Broker
) -> None:
    wait_until(
        lambda: part(one) == part(other),
        lambda: f"equal {what}: {_differences(part(one), part(other))}",
        FOLLOW_SECONDS_MAX,
    )


def _files(directory: Path, *, whole: bool) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for file in sorted(directory.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            content = data.rstrip(b"\0")
            if content:
                found[str(file.relative_to(directory))] = data if whole else content
    return found


def _differences(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    return [
        f"{name}: {len(one.get(name, b''))} and {len(other.get(name, b''))} bytes"
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ]
