"""What a send and a pull cost the broker beyond the wire: the processors driven in-process, without a socket.

    python benchmarks/broker_send.py [count]

A send is measured from the decoded command to the finished reply command, store included, and once more with a
store that keeps nothing: the difference is the store's part. The least of several rounds counts; the others were
disturbed by somebody.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, cast

from cometmq.base.system import SystemClock, SystemFiles
from cometmq.broker.client_registry import ClientRegistry
from cometmq.broker.config import load_broker_config
from cometmq.broker.flow_control import FlowControl
from cometmq.broker.live_config import LiveConfig
from cometmq.broker.processors.pull import PullProcessor
from cometmq.broker.processors.send import SendProcessor
from cometmq.broker.stats import BrokerStats
from cometmq.broker.topic_creation import TopicCreation
from cometmq.model.address import pack_host
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection
from cometmq.store.message_store import MessageStore
from cometmq.store.meta.groups import GroupTable
from cometmq.store.meta.offsets import OffsetTable
from cometmq.store.meta.topics import TopicTable
from cometmq.store.put import NewMessage, Stored

ROUNDS = 5
BODY = b"x" * 1024
SEND = {
    "a": "PG",
    "b": "BenchmarkTopic",
    "c": "TBW102",
    "d": "4",
    "e": "0",
    "f": "0",
    "g": "1700000000123",
    "h": "0",
    "i": "UNIQ_KEY\x01FD00000000000000000000000000000234E64E0E2F2A4CCF62D50004\x02WAIT\x01true\x02TAGS\x01TagA",
    "j": "0",
    "k": "false",
    "m": "false",
    "n": "b",
}
PULL = {
    "consumerGroup": "CG",
    "topic": "BenchmarkTopic",
    "queueId": "0",
    "maxMsgNums": "32",
    "sysFlag": "4",
    "commitOffset": "0",
    "suspendTimeoutMillis": "15000",
    "subscription": "*",
    "subVersion": "0",
}


class Peer:
    peer = "127.0.0.1:40000"
    peer_host = pack_host("127.0.0.1", 40000)
    is_closed = False


class NoStore:
    """Takes everything, keeps nothing."""

    def __init__(self) -> None:
        self._stored = Stored(1024, 1200, 7, 1_700_000_000_000)

    def put(self, message: NewMessage) -> Stored:
        return self._stored


class NoLoop:
    def call_soon(self, callback: Callable[[], None]) -> None: ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> None: ...


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        config, _ = load_broker_config({"brokerName": "b", "storePathRootDir": directory})
        clock, files = SystemClock(), SystemFiles()
        host = pack_host("127.0.0.1", 10911)
        live = LiveConfig(config, clock=clock, files=files)
        store = MessageStore(config.store, store_host=host, files=files, clock=clock)
        store.load()
        store.start()
        topics = TopicTable(f"{directory}/config", files, clock)
        groups = GroupTable(f"{directory}/config", files, clock)
        offsets = OffsetTable(f"{directory}/config", files, clock)
        for table in (topics, groups, offsets):
            table.load()
        creation = TopicCreation(
            topics,
            groups,
            config.topics,
            on_created=lambda topic: None,
            on_auto_created=lambda topic: None,
        )
        creation.create_system_entries(config.identity)
        stats = BrokerStats(clock)
        common: dict[str, Any] = {
            "live": live,
            "topics": topics,
            "creation": creation,
            "stats": stats,
            "clock": clock,
        }
        pulls = PullProcessor(
            store=store,
            offsets=offsets,
            clients=ClientRegistry(clock),
            scheduler=NoLoop(),
            **common,
        )
        store.arrivals.append(pulls.long_polling.arrived)
        sends = {
            name: SendProcessor(
                store=cast(MessageStore, one),
                store_host=host,
                flow=FlowControl(config.flow),
                **common,
            )
            for name, one in (("send 1 KB, no store", NoStore()), ("send 1 KB", store))
        }
        peer = cast(Connection, Peer())
        for name, processor in sends.items():
            report(name, measure_sends(processor, peer, count))
        report("pull 32 x 1 KB", measure_pulls(pulls, peer, count))
        store.close()


def measure_sends(processor: SendProcessor, peer: Connection, count: int) -> float:
    best = float("inf")
    handle = processor.send_v2
    for _ in range(ROUNDS):
        commands = [Command(310, dict(SEND), BODY, opaque=number) for number in range(count)]
        started = time.perf_counter()
        for command in commands:
            handle(peer, command)
        best = min(best, (time.perf_counter() - started) / count)
    return best


def measure_pulls(processor: PullProcessor, peer: Connection, count: int) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        commands = [
            Command(11, {**PULL, "queueOffset": str(number)}) for number in range(0, count - 32, 32)
        ]
        started = time.perf_counter()
        for command in commands:
            reply = processor.pull(peer, command)
            assert reply is not None
            assert reply.code == 0, reply
        best = min(best, (time.perf_counter() - started) / len(commands))
    return best


def report(name: str, seconds: float) -> None:
    print(f"{name:<22} {seconds * 1e6:7.2f} us")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
