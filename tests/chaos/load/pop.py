"""Messages that are popped and acknowledged, broker by broker."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from tests.chaos.judge.history import Delivery, read_body
from tests.chaos.load.context import PRODUCER, Context, Senders

from cometmq.base.errors import CometError
from cometmq.client import Message, SendResult
from cometmq.client.aio import Producer
from cometmq.model.messages.record import Record, decode_records
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.pop import AckMessageHeader, PopMessageHeader, PopMessageReply
from cometmq.remoting.client import RemotingClient

POP: Final = "pop"
GROUP: Final = "consume-pop"
INVISIBLE_MS: Final = 5000
WAIT_MS: Final = 1000
PAUSE_SECONDS: Final = 0.3


class Popped:
    name = POP

    def __init__(self, context: Context) -> None:
        self._context = context
        self._producer = Producer("produce-pop", name_servers=context.name_servers, config=PRODUCER)
        self._senders = Senders(context, POP, self._send)
        self._client = RemotingClient()
        self._poppers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await self._producer.start()
        self._poppers = [asyncio.create_task(self._run(group)) for group in self._context.masters()]
        self._senders.start()

    async def stop_sending(self) -> None:
        await self._senders.stop()

    async def close(self) -> None:
        for popper in self._poppers:
            popper.cancel()
        await asyncio.gather(*self._poppers, return_exceptions=True)
        await self._client.close()
        await self._producer.close()

    async def _send(self, id: str, message: Message) -> SendResult:
        return await self._producer.send(message)

    async def _run(self, group: str) -> None:
        while True:
            try:
                found = await self._pop(self._context.masters()[group])
            except CometError:
                found = []
            for record, handle in found:
                self._took(group, record)
                try:
                    await self._acknowledge(self._context.masters()[group], handle)
                except CometError:
                    pass  # It comes again.
            if not found:
                await asyncio.sleep(PAUSE_SECONDS)

    def _took(self, group: str, record: Record) -> None:
        id, is_intact = read_body(bytes(record.body))
        context = self._context
        queue = (group, record.queue_id)
        context.history.deliveries.append(
            Delivery(POP, id, is_intact, context.now(), queue, record.queue_offset)
        )

    async def _pop(self, broker: str) -> list[tuple[Record, str]]:
        header = PopMessageHeader(
            consumer_group=GROUP,
            topic=POP,
            queue_id=-1,
            max_msg_nums=32,
            invisible_time=INVISIBLE_MS,
            poll_time=WAIT_MS,
            born_time=int(time.time() * 1000),
            init_mode=0,
        )
        request = Command(RequestCode.POP_MESSAGE, encode_fields(header))
        reply = await self._client.call(broker, request, 3.0)
        if reply.code != 0:
            return []
        info = decode_fields(PopMessageReply, reply.ext)
        starts = {}
        for part in (info.start_offset_info or "").split(";"):
            kind, queue_id, start = part.split(" ")
            starts[kind, int(queue_id)] = start
        found = []
        for record in decode_records(reply.body):
            handle = record.properties.get("POP_CK") or " ".join(
                [
                    starts["0", record.queue_id],
                    f"{info.pop_time} {info.invisible_time} {info.revive_qid} 0 any",
                    f"{record.queue_id} {record.queue_offset}",
                ]
            )
            found.append((record, handle))
        return found

    async def _acknowledge(self, broker: str, handle: str) -> None:
        *_, kind, _, queue_id, offset = handle.split(" ")
        header = AckMessageHeader(
            consumer_group=GROUP,
            topic=POP if kind == "0" else f"%RETRY%{GROUP}_{POP}",
            queue_id=int(queue_id),
            extra_info=handle,
            offset=int(offset),
        )
        await self._client.call(
            broker, Command(RequestCode.ACK_MESSAGE, encode_fields(header)), 3.0
        )
