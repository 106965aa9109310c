"""A server that plays name server and broker, and answers wrongly: half of its replies have something wrong in them.

python -m tests.hostile.hostile_server [--rounds 2000] [--seconds 5] [--seed N]

Our client is at work with it, in the same process: it sends, asks for routes and offsets, pulls, and consumes. It may
refuse what it gets with its own kinds of error. Everything else is a fault: another exception, a traceback in the log,
an exception that nobody took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import math
import random as numbers
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any, Final

from tests.hostile.decoders import golden_replies, record_samples
from tests.hostile.mutations import TEXTS
from tests.hostile.mutator import Mutator

from cometmq.base.errors import CometError, LocalProtocolError, ProtocolError
from cometmq.client.aio.pull.pull_consumer import PullConsumer
from cometmq.client.aio.push.push_consumer import PushConsumer
from cometmq.client.aio.send.producer import Producer
from cometmq.client.client_config import ClientConfig
from cometmq.client.consumer_config import PushConsumerConfig
from cometmq.client.producer_config import ProducerConfig
from cometmq.client.pull_config import PullConsumerConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import FLAG_ONEWAY, FLAG_RESPONSE, Command
from cometmq.protocol.frame import FrameDecoder, encode_bytes

TOPIC: Final = "Hostile"
CALL_SECONDS: Final = 0.5
WRONG_SHARE: Final = 0.5
FAULTS_MAX: Final = 10
TO_CLIENTS: Final = (39, 40, 220, 221, 307, 309, 326)
"""What a broker asks of a client."""


class HostileServer:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._goldens = golden_replies()
        bodies = [bytes(one.body) for one in self._goldens if one.body]
        self._bodies = Mutator((*bodies, b"{}"), (b"{", b"}", b"[", b'"', b"null", b"-1", b"\x00"))
        self._records = record_samples()[0]
        self.address = ""
        self.is_wrong = False
        """False while the clients start: a client that cannot find a broker tests nothing."""
        self.replies = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        decoder = FrameDecoder()
        try:
            while data := await reader.read(1 << 16):
                for request in decoder.feed(data):
                    if not request.flag & (FLAG_RESPONSE | FLAG_ONEWAY):
                        self.replies += 1
                        if not self._answer(request, writer):
                            return
                await writer.drain()
        except (OSError, ProtocolError):
            pass
        finally:
            writer.transport.abort()

    def _answer(self, request: Command, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection goes on."""
        random = self._random
        reply = self._right(request)
        if not self.is_wrong or random.random() >= WRONG_SHARE:
            writer.write(_encoded(reply))
            return True
        kind = random.randrange(8)
        if kind < 2:
            writer.write(_encoded(self._other_fields(reply)))
        elif kind < 4:
            reply.body = self._bodies.make(random)
            writer.write(_encoded(reply))
        elif kind == 4:
            writer.write(_encoded(self._other_reply(request)))
        elif kind == 5:
            writer.write(_encoded(self._question()) + _encoded(reply))
        elif kind == 6:
            reply.code = random.choice((1, 2, 17, 19, 20, 21, 26, 206, -1, 9999))
            writer.write(_encoded(reply))
        else:
            # Nothing after this can be trusted, so that nobody waits for an answer in vain.
            writer.write(Mutator((_encoded(reply),)).make(random))
            return False
        return True

    def _right(self, request: Command) -> Command:
        ext, body = {"offset": "5", "queueOffset": "5", "msgId": "7F", "queueId": "0"}, b""
        if request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            body = self._route()
        elif request.code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE):
            ext = {
                "nextBeginOffset": "1",
                "minOffset": "0",
                "maxOffset": "9",
                "suggestWhichBrokerId": "0",
            }
            body = self._records
        elif request.code == RequestCode.GET_CONSUMER_LIST_BY_GROUP:
            body = b'{"consumerIdList":["someone","else"]}'
        elif request.code == RequestCode.LOCK_BATCH_MQ:
            body = b'{"lockOKMQSet":[]}'
        return request.reply(ext=ext, body=body)

    def _route(self) -> bytes:
        queues = {"brokerName": "b", "perm": 6, "readQueueNums": 4, "writeQueueNums": 4}
        broker = {"cluster": "c", "brokerName": "b", "brokerAddrs": {"0": self.address}}
        return json.dumps({"queueDatas": [queues], "brokerDatas": [broker]}).encode()

    def _other_fields(self, reply: Command) -> Command:
        random = self._random
        ext = dict(reply.ext or {})
        for _ in range(random.randint(1, 3)):
            key = random.choice([*ext, "offset", "nextBeginOffset", random.choice(TEXTS)])
            if random.random() < 0.3:
                ext.pop(key, None)
            else:
                ext[key] = random.choice(TEXTS)
        reply.ext = ext if random.random() < 0.9 else None
        return reply

    def _other_reply(self, request: Command) -> Command:
        """What somebody else was answered."""
        golden = self._random.choice(self._goldens)
        reply = request.reply(golden.code, golden.remark, ext=golden.ext, body=bytes(golden.body))
        return reply

    def _question(self) -> Command:
        ext = {name: self._random.choice(TEXTS) for name in ("topic", "group", "consumerGroup")}
        code = self._random.choice(TO_CLIENTS)
        return Command(code, ext, self._bodies.make(self._random), FLAG_ONEWAY)


class Faults(logging.Handler):
    """Tracebacks in the log, exceptions that nobody took, and what the user of a client gets to see."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.add(logging.Formatter().format(record))

    def not_taken(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.add(f"{context.get('message')}: {context.get('exception')!r}")

    def add(self, what: str) -> None:
        if len(self.found) < FAULTS_MAX:
            self.found.append(what[-3000:])


async def work(
    seed: int, *, replies: float = math.inf, seconds: float = math.inf
) -> tuple[int, list[str]]:
    """Until so many replies were given or that time is over: their number, and the faults that were found."""
    faults = Faults()
    logging.getLogger().addHandler(faults)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(faults.not_taken)
    server = HostileServer(seed)
    deadline = loop.time() + seconds
    try:
        async with _listening(server), _clients(server) as (producer, consumer):
            server.is_wrong = True
            random = Random(seed)
            while loop.time() < deadline and server.replies < replies:
                await _round(random, producer, consumer, faults)
                if len(faults.found) >= FAULTS_MAX:
                    break
            server.is_wrong = False
    finally:
        logging.getLogger().removeHandler(faults)
        loop.set_exception_handler(None)
    return server.replies, faults.found


@asynccontextmanager
async def _listening(server: HostileServer) -> AsyncIterator[None]:
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.address = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield
    finally:
        listener.close()


@asynccontextmanager
async def _clients(server: HostileServer) -> AsyncIterator[tuple[Producer, PullConsumer]]:
    client = ClientConfig(
        poll_name_server_millis=50,
        heartbeat_millis=50,
        persist_offsets_millis=50,
        call_millis=int(CALL_SECONDS * 1000),
    )

    async def listener(message: ReceivedMessage) -> None:
        message.properties  # noqa: B018 - read when asked for

    async with AsyncExitStack() as stack:
        names = server.address
        producer = Producer("hostile", name_servers=names, config=ProducerConfig(client=client))
        await stack.enter_async_context(producer)
        pulls = PullConsumerConfig(client=client, pull_timeout_ms=int(CALL_SECONDS * 1000))
        consumer = PullConsumer("hostile-pull", name_servers=names, config=pulls)
        await stack.enter_async_context(consumer)
        push = PushConsumer(
            "hostile-push",
            listener=listener,
            name_servers=names,
            config=PushConsumerConfig(client=client),
        )
        push.subscribe(TOPIC)
        await stack.enter_async_context(push)
        yield producer, consumer


async def _round(
    random: Random, producer: Producer, consumer: PullConsumer, faults: Faults
) -> None:
    queue = MessageQueue(broker_name="b", queue_id=random.randrange(4), topic=TOPIC)
    message = Message(topic=TOPIC, body=b"x", tags="a")
    calls: Sequence[Callable[[], Awaitable[object]]] = (
        lambda: producer.send(message, timeout=CALL_SECONDS),
        lambda: producer.send_batch([message, message], timeout=CALL_SECONDS),
        lambda: producer.fetch_publish_queues(f"Other-{random.randrange(20)}"),
        lambda: consumer.queues(f"Other-{random.randrange(20)}"),
        lambda: consumer.pull(queue, random.randrange(10)),
        lambda: consumer.commit(queue, random.randrange(10)),
        lambda: consumer.committed(queue),
    )
    call = random.choice(calls)
    try:
        async with asyncio.timeout(10):
            await call()
    except CometError:
        pass
    except Exception as error:
        faults.add(f"round: {error!r}")
        logging.getLogger("hostile").debug("round failed", exc_info=error)


def _encoded(command: Command) -> bytes:
    try:
        return encode_bytes(command)
    except LocalProtocolError:
        return encode_bytes(Command(1, None, b"", FLAG_RESPONSE, command.opaque))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--replies", type=float, default=math.inf)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=numbers.randrange(1 << 31))
    wish = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    replies, found = asyncio.run(work(wish.seed, replies=wish.replies, seconds=wish.seconds))
    json.dump({"seed": wish.seed, "replies": replies, "faults": found}, sys.stdout, indent=1)
    if found:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
