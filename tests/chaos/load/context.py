"""What every workload needs, and what all of them do: send at a bounded rate and write down what came of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

from tests.chaos.judge.history import (
    COMMITTED,
    FAILED,
    Delivery,
    History,
    Send,
    make_body,
    read_body,
)

from cometmq.base.errors import CometError
from cometmq.client import (
    ClientConfig,
    Message,
    ProducerConfig,
    PushConsumerConfig,
    ReceivedMessage,
    SendResult,
)
from cometmq.model.messages.message_id import parse_offset_id

SENDERS: Final = 4
FILLER_BYTES: Final = (20, 400)

CLIENT: Final = ClientConfig(
    poll_name_server_millis=1000, heartbeat_millis=1000, persist_offsets_millis=1000
)
# Longer than a broker waits for its slaves, so that its answer comes.
PRODUCER: Final = ProducerConfig(client=CLIENT, send_timeout_ms=5000)
CONSUMER: Final = PushConsumerConfig(
    client=CLIENT,
    consume_from_where="CONSUME_FROM_FIRST_OFFSET",
    rebalance_interval_ms=1000,
    lock_interval_ms=1000,
    lock_valid_ms=3000,
)


class Workload(Protocol):
    name: str

    async def start(self) -> None: ...

    async def stop_sending(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class Context:
    """Args:
    pause_seconds: between two sends of one sender.
    now: seconds since the run began.
    masters: the addresses of the masters at the moment, by group.
    brokers: the addresses of all brokers at the moment, by group.
    """

    name_servers: str
    history: History
    pause_seconds: float
    seed: int
    now: Callable[[], float]
    masters: Callable[[], dict[str, str]]
    brokers: Callable[[], dict[str, list[str]]]

    def took(self, workload: str, message: ReceivedMessage) -> None:
        """A message was delivered."""
        id, is_intact = read_body(message.body)
        queue = (message.broker_name, message.queue_id)
        self.history.deliveries.append(
            Delivery(workload, id, is_intact, self.now(), queue, message.queue_offset)
        )


class Senders:
    """Tasks that send until they are told to stop. The ids are ``workload/sender/number``.

    Args:
        send: raises CometError when it is not confirmed.
        keeps_order: whether a number that failed is sent again before the next one.
    """

    def __init__(
        self,
        context: Context,
        workload: str,
        send: Callable[[str, Message], Awaitable[SendResult]],
        *,
        keeps_order: bool = False,
        fate: Callable[[str], str] | None = None,
        delay: Callable[[str], float] | None = None,
    ) -> None:
        self._context = context
        self._workload = workload
        self._send = send
        self._keeps_order = keeps_order
        self._fate = fate
        self._delay = delay
        self._is_stopped = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._run(number)) for number in range(SENDERS)]

    async def stop(self) -> None:
        self._is_stopped = True
        await asyncio.gather(*self._tasks)

    async def _run(self, sender: int) -> None:
        random = Random(f"{self._context.seed} {self._workload} {sender}")
        number = 0
        while not self._is_stopped:
            id = f"{self._workload}/{sender}/{number}"
            filler = random.randbytes(random.randint(*FILLER_BYTES))
            is_sent = await self._send_one(id, make_body(id, filler))
            if is_sent or not self._keeps_order:
                number += 1
            await asyncio.sleep(self._context.pause_seconds)

    async def _send_one(self, id: str, body: bytes) -> bool:
        context = self._context
        began = context.now()
        message = Message(topic=self._workload, body=body)
        status, queue, offset, broker, position = FAILED, None, -1, "", -1
        try:
            result = await self._send(id, message)
            status, offset = result.status.value, result.queue_offset
            queue = (result.queue.broker_name, result.queue.queue_id)
            broker, position = stored_at(result.offset_id)
        except CometError:
            pass  # Written down below: it may be stored or not.
        except Exception as error:
            # The run goes on, and shows it: nobody who calls a client is prepared for this.
            logging.exception("%s", id)
            context.history.unexpected.append(
                f"{id} at {context.now():.2f} s: {type(error).__name__}: {error}"
            )
        fate = self._fate(id) if self._fate is not None else COMMITTED
        due = began + self._delay(id) if self._delay is not None else 0.0
        context.history.sends.append(
            Send(
                self._workload,
                id,
                began,
                context.now(),
                status,
                queue,
                offset,
                fate,
                due,
                broker,
                position,
            )
        )
        return status != FAILED


def stored_at(offset_id: str) -> tuple[str, int]:
    """The address of the broker that stored a message, and where in its log."""
    parsed = parse_offset_id(offset_id)
    return parsed.address, parsed.physical_offset
