"""A group under a controller that is sent to while its master is killed or replaced."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.parts.controlled_group import ControlledGroup, controlled_group
from benchmarks.parts.logs import first_difference
from benchmarks.parts.sends import SENDERS, Sends, number_of, sending
from benchmarks.parts.waiting import WAIT_SECONDS_MAX, until
from benchmarks.processes.replica_pair import Progress, make_topic
from tests.integration.raw_client import RawClient
from tests.interop.systems import Broker

from cometmq.base.errors import CometError
from cometmq.client import SendResult, SendStatus
from cometmq.client.aio import Producer
from cometmq.model.messages.message_id import parse_offset_id

TOPIC: Final = "Elections"
QUEUES: Final = 4
WINDOW_SECONDS: Final = 1.0
"""Sends that are due within this time after an operator's request belong to the switch."""


class Switch(NamedTuple):
    seconds: float
    """From the request to the first answer of the new master."""
    failed: int
    latencies: list[float]


class Answers(Sends):
    """How long each send took, and when another broker than a certain one answered first."""

    def __init__(self) -> None:
        super().__init__()
        self.latencies: list[tuple[float, float]] = []
        """When each was due, and the seconds from then on to its answer."""
        self.failed_due: list[float] = []
        self.other_at = 0.0
        self._former = ""

    def look_out(self, former: str) -> None:
        """From now on for an answer of anybody but the broker at this address."""
        self.other_at, self._former = 0.0, former

    def answered(self, number: int, result: SendResult, due: float) -> None:
        super().answered(number, result, due)
        now = time.monotonic()
        self.latencies.append((due, now - due))
        if (
            not self.other_at
            and result.status is SendStatus.SEND_OK
            # What the former broker has answered may still be under way.
            and parse_offset_id(result.offset_id).address != self._former
        ):
            self.other_at = now

    def failed(self, error: CometError, due: float) -> None:
        super().failed(error, due)
        self.failed_due.append(due)


class Trial:
    """Only inside of ``trial``."""

    def __init__(self, group: ControlledGroup, producer: Producer, rate: int) -> None:
        self.group = group
        self.answers = Answers()
        self.diverged = 0
        self._producer = producer
        self._rate = rate
        self._compared_to = 0

    @contextlib.asynccontextmanager
    async def load(self) -> AsyncIterator[None]:
        async with sending(self._producer, TOPIC, self.answers, self._rate):
            await self._steady()
            yield

    async def kill(self) -> float:
        """Kill the master, and have it back; the seconds until another one answered."""
        master, answers = await self.group.master(), self.answers
        answers.look_out(master.address)
        begin = time.monotonic()
        await asyncio.to_thread(master.kill)
        await until(lambda: answers.other_at > 0, "an answer of another broker", is_needed=False)
        seconds = answers.other_at - begin if answers.other_at else WAIT_SECONDS_MAX
        await self.group.start(master)
        await self._recovered()
        return seconds

    async def switch(self) -> Switch:
        """Have the next broker elected."""
        master, answers, brokers = await self.group.master(), self.answers, self.group.brokers
        answers.look_out(master.address)
        begin = time.monotonic()
        await self.group.elect(brokers[brokers.index(master) - 1])
        await until(lambda: answers.other_at > 0, "an answer of the new master", is_needed=False)
        seconds = answers.other_at - begin if answers.other_at else WAIT_SECONDS_MAX
        await asyncio.sleep(max(begin + WINDOW_SECONDS - time.monotonic(), 0))
        await self._recovered()
        stop = begin + WINDOW_SECONDS
        return Switch(
            seconds,
            sum(begin <= due < stop for due in answers.failed_due),
            [latency for due, latency in answers.latencies if begin <= due < stop],
        )

    async def lost(self) -> int:
        """How many acknowledged messages the master does not have. Also compares the logs once more, from the start."""
        self._compared_to = 0
        await self._compare()
        missing = set(self.answers.acknowledged)
        async with RawClient((await self.group.master()).address) as client:
            for queue_id in range(QUEUES):
                missing -= {number_of(one.body) for one in await client.read(TOPIC, queue_id)}
        return len(missing)

    async def _recovered(self) -> None:
        await self.group.wait_for_set()
        await self._steady()
        await self._compare()

    async def _steady(self) -> None:
        self.answers.ok_in_a_row = 0
        await until(lambda: self.answers.ok_in_a_row >= 2 * SENDERS, "sends are answered")

    async def _compare(self) -> None:
        end, diverged = await asyncio.to_thread(_compare, self.group.brokers, self._compared_to)
        self._compared_to = end
        self.diverged += diverged


@contextlib.asynccontextmanager
async def trial(make: str, directory: Path, rate: int) -> AsyncIterator[Trial]:
    async with controlled_group(make, directory) as group:
        await asyncio.to_thread(make_topic, await group.master(), TOPIC, QUEUES)
        async with Producer("elections", name_servers=group.name_server) as producer:
            yield Trial(group, producer, rate)


def _compare(brokers: list[Broker], start: int) -> tuple[int, int]:
    """To where all of them reach, and how many differ from the first up to there."""
    end = min(Progress.of(broker).log_end for broker in brokers)
    first, *others = brokers
    return end, sum(
        first_difference(first.store, other.store, start, end) is not None for other in others
    )
