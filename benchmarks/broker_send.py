"""What a send and a pull cost the broker beyond the wire: a real broker, its requests handed in without a socket.

    python benchmarks/broker_send.py [count]

A send is measured from the decoded command to the reply, store included; then the store alone with the same message.
The least of several rounds counts; the others were disturbed by somebody.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from typing import cast

from cometmq.model.address import pack_host
from cometmq.protocol.command import Command
from cometmq.protocol.frame import decode_bytes
from cometmq.remoting.connection import Connection
from cometmq.standalone import Standalone
from cometmq.store.log.new_messages import NewMessage

ROUNDS = 5
SEND_CODE = 310
BODY = b"x" * 1024
TOPIC = "BenchmarkTopic"
UNIQUE_KEY = "7F0000010B6C18B4AAC2{:012X}"
SEND = {
    "a": "PG",
    "b": TOPIC,
    "c": "TBW102",
    "d": "4",
    "e": "0",
    "f": "0",
    "g": "1700000000123",
    "h": "0",
    "j": "0",
    "k": "false",
    "m": "false",
    "n": "b",
}
PULL = {
    "consumerGroup": "CG",
    "topic": TOPIC,
    "queueId": "0",
    "maxMsgNums": "32",
    "sysFlag": "4",
    "commitOffset": "0",
    "suspendTimeoutMillis": "15000",
    "subscription": "*",
    "subVersion": "0",
}


class Peer:
    """Stands for a connection and keeps the last reply."""

    peer = "127.0.0.1:40000"
    peer_host = pack_host("127.0.0.1", 40000)
    is_closed = False

    def __init__(self) -> None:
        self.reply = Command(-1)

    def send(self, command: Command) -> None:
        self.reply = command

    def send_frame(self, frame: bytes) -> None:
        self.reply = frame  # type: ignore[assignment]

    add_frame = send_frame

    def check(self) -> None:
        reply = self.reply
        code = decode_bytes(reply).code if isinstance(reply, bytes) else reply.code
        assert code == 0, reply


async def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with Standalone(directory, namesrv_port=0, broker_port=0) as servers:
            broker = servers.broker
            peer = Peer()
            finish_sends = broker.dispatcher.kinds[SEND_CODE]

            def dispatch(command: Command) -> None:
                broker.dispatcher.dispatch(cast(Connection, peer), command)
                finish_sends()

            for name, make, act, each in (
                ("send 1 KB", send_request, dispatch, 1),
                ("  of this the store", stored_message, broker.core.store.put, 1),
                ("pull 32 x 1 KB", pull_request, dispatch, 32),
            ):
                seconds = measure(make, cast("Callable[[object], object]", act), count // each)
                peer.check()
                print(f"{name:<22} {seconds * 1e6:7.2f} us")


def send_request(number: int) -> Command:
    properties = f"UNIQ_KEY\x01{UNIQUE_KEY.format(number)}\x02WAIT\x01true\x02TAGS\x01TagA"
    return Command(SEND_CODE, {**SEND, "i": properties}, BODY, opaque=number)


def stored_message(number: int) -> NewMessage:
    key = UNIQUE_KEY.format(number)
    return NewMessage(
        topic=TOPIC,
        queue_id=0,
        body=BODY,
        properties=f"UNIQ_KEY\x01{key}\x02TAGS\x01TagA\x02CLUSTER\x01DefaultCluster".encode(),
        tags_code=2598919,
        keys=[key],
        born_timestamp=1700000000123,
        born_host=Peer.peer_host,
    )


def pull_request(number: int) -> Command:
    return Command(11, {**PULL, "queueOffset": str(number * 32)})


def measure(make: Callable[[int], object], act: Callable[[object], object], count: int) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        work = [make(number) for number in range(count)]
        started = time.perf_counter()
        for one in work:
            act(one)
        best = min(best, (time.perf_counter() - started) / count)
    return best


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
