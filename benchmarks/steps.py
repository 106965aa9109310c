"""What a send and a pull cost the broker, step by step, without a network.

    python -m benchmarks.steps

The whole is measured from the bytes a socket would give to the bytes it would be given: a real broker, a real store, a
connection whose transport counts. Then each step is repeated alone. The least of many short rounds counts, because the
others were disturbed by somebody; so the steps are what the code costs, and a busy machine adds to them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from benchmarks.broker_send import BODY, TOPIC, Peer, pull_request, send_request, stored_message

from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.send.send_properties import prepare
from cometmq.broker.send.stored_form import form_of
from cometmq.protocol.command import JSON
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.frame import FrameDecoder, encode, encode_bytes
from cometmq.protocol.headers.pull import PullMessageHeader
from cometmq.protocol.headers.send import SendMessageHeaderV2
from cometmq.protocol.send_reply import SendReplies
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.endpoint import Endpoint
from cometmq.remoting.remoting_config import ConnectionLimits
from cometmq.standalone import Standalone
from cometmq.store.index.index_files import IndexFiles, key_prefix
from cometmq.store.log.new_messages import NewMessages
from cometmq.store.log.record_writer import lay_out, record_sizes

ROUNDS = 60
COUNT = 500
CHUNK = 40
PULLED = 32
RESULT = Path(__file__).parent / "results" / "steps.json"
HOST = Peer.peer_host


class Transport:
    """Takes everything at once."""

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return ("127.0.0.1", 40000)

    def set_write_buffer_limits(self, high: int, low: int) -> None: ...
    def write(self, data: bytes) -> None: ...
    def writelines(self, data: list[bytes]) -> None: ...
    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0


def best(act: Callable[[int], object], count: int = COUNT) -> float:
    """Microseconds of one call."""
    least = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for number in range(count):
            act(number)
        least = min(least, (time.perf_counter() - started) / count)
    return least * 1e6


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        # The loop does not come round while it is measured; that must not count as a busy broker.
        settings = {"brokerFastFailureEnable": "false"}
        async with Standalone(
            directory, namesrv_port=0, broker_port=0, broker_settings=settings
        ) as servers:
            steps = measure(cast(Any, servers.broker), directory)
    width = max(map(len, steps))
    for name, microseconds in steps.items():
        print(f"{name:<{width}} {microseconds:7.2f} us")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(steps, indent=2) + "\n")
    print(f"written: {RESULT.relative_to(Path.cwd())}", file=sys.stderr)


def measure(broker: Any, directory: str) -> dict[str, float]:
    store = broker.core.store
    connection = connected(broker.dispatcher)
    frames = [encode_bytes(send_request(number)) for number in range(COUNT)]
    chunk = b"".join(frames[:CHUNK])
    steps: dict[str, float] = {}
    steps["send, one request a read"] = best(lambda n: receive(connection, frames[n]))
    steps[f"send, {CHUNK} requests a read"] = (
        best(lambda n: receive(connection, chunk), COUNT // CHUNK) / CHUNK
    )
    request = send_request(1)
    ext = request.ext
    assert ext is not None
    text, form = ext["i"], form_of(BrokerConfig())
    message = stored_message(1)
    queue = store._queues.get(TOPIC, 0)
    new, topic_fields = NewMessages.of([message]), [queue.topic_field]
    sizes = record_sizes(new, topic_fields, HOST, 1 << 22)
    replies = SendReplies(HOST, {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"})
    decoder = FrameDecoder()
    record = lay_out(new, sizes, topic_fields, [1], [2], 3, HOST)
    log = store._log
    empty = connected(Dispatcher())
    idle_frame = encode_bytes(send_request(1))
    steps["  cut the frame, read its header"] = (
        best(lambda n: list(decoder.feed(chunk)), COUNT // CHUNK) / CHUNK
    )
    steps["  typed header"] = best(lambda n: decode_fields(SendMessageHeaderV2, ext))
    steps["  properties"] = best(lambda n: prepare(text, form))
    steps["  store: all"] = best(lambda n: store.put(message))
    steps["    record: size, CRC, layout"] = best(
        lambda n: (
            record_sizes(new, topic_fields, HOST, 1 << 22),
            lay_out(new, sizes, topic_fields, [1], [2], 3, HOST),
        )
    )
    steps["    into the mapped log"] = best(lambda n: (log.reserve(len(record)), log.write(record)))
    steps["    index entry of one key"] = index_entry(store, directory)
    steps["  reply"] = best(lambda n: replies.frame(0, n, JSON, 123456789, 3, 12345))
    steps["an unknown request, one a read"] = best(lambda n: receive(empty, idle_frame))

    pulls = [encode_bytes(pull_request(number)) for number in range(COUNT // PULLED)]
    pull = pull_request(1)
    steps[f"pull of {PULLED} messages"] = best(lambda n: receive(connection, pulls[n]), len(pulls))
    found = store.get(TOPIC, 0, 0, PULLED)
    assert found.count == PULLED
    steps["  typed header of the pull"] = best(lambda n: decode_fields(PullMessageHeader, pull.ext))
    steps["  read queue entries, find records"] = best(lambda n: store.get(TOPIC, 0, 0, PULLED))
    reply = pull.reply(0, ext={"nextBeginOffset": "32", "minOffset": "0", "maxOffset": "500"})
    reply.body_parts = list(found.parts)
    steps["  reply header and parts"] = best(lambda n: encode(reply))
    return steps


def receive(connection: Connection, data: bytes) -> None:
    """What the loop does in one turn."""
    connection.data_received(data)
    connection._turn.run_alone(connection)


def index_entry(store: Any, directory: str) -> float:
    index = IndexFiles(f"{directory}/index-alone", store.config.index, store._files, store._clock)
    offset = iter(range(1, 1 << 40))
    prefix = key_prefix(TOPIC)
    keys = [[f"7F0000010B6C18B4AAC2{number:012X}"] for number in range(COUNT)]
    least = best(lambda n: index.add(prefix, keys[n], next(offset), 1_700_000_000_000))
    index.close()
    return least


def connected(dispatcher: Dispatcher) -> Connection:
    endpoint = Endpoint(dispatcher, ConnectionLimits(), lambda connection: None)
    connection = Connection(endpoint, is_accepted=True)
    connection.connection_made(cast(asyncio.BaseTransport, Transport()))
    return connection


if __name__ == "__main__":
    assert len(BODY) == 1024
    asyncio.run(main())
