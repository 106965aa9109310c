"""One request per queue, for many queues: a round trip per broker, and not one per queue.

Brokers are asked side by side, and the requests about one broker's queues leave together. The master of a queue is
asked first, a replica of it when the master does not answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cometmq.base.errors import CometError
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.core.broker_order import BrokerOrder, Place, places_of
from cometmq.client.core.queue_answers import Answers
from cometmq.client.errors import BrokerNotKnown
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import Header, encode_fields

CALLS_UNDER_WAY_MAX: Final = 64
"""Requests to one broker that are sent ahead of their replies."""


class QueueCalls:
    """Queues are named as the user knows them."""

    def __init__(self, instance: ClientInstance) -> None:
        self._instance = instance
        self._order = BrokerOrder()

    def places(self, broker_name: str) -> tuple[Place, ...]:
        """The known addresses of a broker, the master's first."""
        return places_of(self._instance.broker_addresses(broker_name))

    async def ask(
        self,
        queues: Iterable[MessageQueue],
        code: RequestCode,
        header: Callable[[MessageQueue], Header],
    ) -> Answers:
        """The header's topic and broker name are set here, to what they are on the wire."""
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_broker.setdefault(queue.broker_name, []).append(queue)
        answers = Answers()
        await asyncio.gather(
            *(
                self._ask_broker(name, group, code, header, answers)
                for name, group in by_broker.items()
            )
        )
        return answers

    async def _ask_broker(
        self,
        broker_name: str,
        queues: Sequence[MessageQueue],
        code: RequestCode,
        header: Callable[[MessageQueue], Header],
        answers: Answers,
    ) -> None:
        clock = self._instance.clock
        failure: CometError = BrokerNotKnown(f"no route names broker {broker_name!r}")
        for place in self._order.sort(self.places(broker_name), clock.monotonic()):
            try:
                replies = await self._ask_place(place.address, queues, code, header)
            except CometError as error:
                self._order.failed(place.address, clock.monotonic())
                failure = error
                continue
            self._order.answered(place.address)
            for queue, reply in zip(queues, replies, strict=True):
                answers.replies[queue] = (reply, place)
            return
        answers.failures.update(dict.fromkeys(queues, failure))

    async def _ask_place(
        self,
        address: str,
        queues: Sequence[MessageQueue],
        code: RequestCode,
        header: Callable[[MessageQueue], Header],
    ) -> list[Command]:
        """Replies in the order of the queues. Raises what the first call that failed does."""
        instance = self._instance
        window = asyncio.Semaphore(CALLS_UNDER_WAY_MAX)
        failures: list[CometError] = []

        async def ask(queue: MessageQueue) -> Command:
            ext = encode_fields(header(queue))
            ext["topic"] = instance.wrap_topic(queue.topic)
            ext["bname"] = queue.broker_name
            async with window:
                if failures:
                    # Whoever did not answer one does not answer the next: each would wait for that anew.
                    raise failures[0]
                try:
                    return await instance.call(
                        address, Command(code, ext), instance.config.call_seconds
                    )
                except CometError as error:
                    failures.append(error)
                    raise

        outcomes = await asyncio.gather(*map(ask, queues), return_exceptions=True)
        replies: list[Command] = []
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            replies.append(outcome)
        return replies
