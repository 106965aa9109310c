"""Asks every broker all the time to take a message, whatever the name server says of it: slaves and deposed masters
have to refuse. Shows to a fraction of a second when a group has a master that takes messages."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from typing import Final

from tests.chaos.judge.checkers import PROBES
from tests.chaos.judge.history import FAILED, Send, make_body
from tests.chaos.load.context import Context, stored_at

from cometmq.base.errors import CometError
from cometmq.client.core.send.send_result import send_result
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.send import SendMessageHeaderV2
from cometmq.remoting.client import RemotingClient

PAUSE_SECONDS: Final = 0.2
# Longer than a broker waits for its slaves, so that its answer comes.
CALL_SECONDS: Final = 4.0
IN_FLIGHT_MAX: Final = 60


class Probes:
    name = PROBES

    def __init__(self, context: Context) -> None:
        self._context = context
        self._client = RemotingClient()
        self._number = count()
        self._sending: asyncio.Task[None] | None = None
        self._in_flight: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._sending = asyncio.create_task(self._run())

    async def stop_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
        await asyncio.gather(*self._in_flight)

    async def close(self) -> None:
        await self._client.close()

    async def _run(self) -> None:
        while True:
            for group, addresses in self._context.brokers().items():
                for address in addresses:
                    if len(self._in_flight) < IN_FLIGHT_MAX:
                        task = asyncio.create_task(self._probe(group, address))
                        self._in_flight.add(task)
                        task.add_done_callback(self._in_flight.discard)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _probe(self, group: str, address: str) -> None:
        context = self._context
        began = context.now()
        id = f"{PROBES}/0/{next(self._number)}"
        header = SendMessageHeaderV2(
            producer_group="produce-probes",
            topic=PROBES,
            queue_id=0,
            born_timestamp=int(time.time() * 1000),
        )
        request = Command(
            RequestCode.SEND_MESSAGE_V2, encode_fields(header), make_body(id, b"probe")
        )
        status, offset, broker, position = FAILED, -1, "", -1
        try:
            reply = await self._client.call(address, request, CALL_SECONDS)
            result = send_result(reply, address, MessageQueue(group, 0, PROBES), id)
            status, offset = result.status.value, result.queue_offset
            broker, position = stored_at(result.offset_id)
        except CometError:
            pass  # Written down below: most brokers are no master.
        sent = Send(PROBES, id, began, context.now(), status, (group, 0), offset)
        context.history.sends.append(sent._replace(broker=broker, position=position))
