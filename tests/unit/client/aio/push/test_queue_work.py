"""Carrying out what the state machine wants: answers come back to it, and so does trouble nobody thought of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.base.clock import SystemClock
from cometmq.base.errors import CometError
from cometmq.client.aio.push.queue_locks import LockAnswer
from cometmq.client.aio.push.queue_work import QueueWork
from cometmq.client.core.consume.member.held_queue import HeldQueue
from cometmq.client.core.consume.member.instructions import Again, Deliver, Tell
from cometmq.client.core.consume.member.member import Member
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.properties import RETRY_TOPIC
from cometmq.model.messages.received_message import ReceivedMessage

QUEUE = MessageQueue("b", 0, "T")
CLOCK = SystemClock()


class Puller:
    def __init__(self, noted: list[str]) -> None:
        self._noted = noted

    def start(self) -> asyncio.Task[None]:
        self._noted.append("pull")
        return asyncio.get_running_loop().create_task(asyncio.sleep(0))

    def cancel(self) -> None:
        self._noted.append("end pull")


class Bench:
    """A member whose brokers are this object: what they answer is set by the test, what they are asked is noted."""

    def __init__(self, **rules: Any) -> None:
        self.noted: list[str] = []
        self.start: Exception | int = 7
        self.commit_error: Exception | None = None
        self.owner: Exception | bool = False
        self.is_locked = True
        self.delivered: list[ReceivedMessage] = []
        self.open_jobs = 0
        self.member = Member("m", MemberRules(**rules))
        self.puller = Puller(self.noted)
        made: Any = self
        self.work = QueueWork(
            "g",
            clock=CLOCK,
            offsets=made,
            start_offset=self.start_offset,
            listener=self,
            make_puller=lambda life: made.puller,
            locks=made,
            handover=made,
            unwrap_topic=lambda name: name.removeprefix("ns%"),
            soon=lambda: self.noted.append("soon"),
            on_left=lambda held: self.noted.append("left"),
        )

    def share_out(self, *members: str, queues: Sequence[MessageQueue] = (QUEUE,)) -> None:
        self.work.do(self.member.share_out("T", queues, members, CLOCK.monotonic()))

    # Brokers.

    async def start_offset(self, queue: MessageQueue) -> int:
        await asyncio.sleep(0)
        if isinstance(self.start, Exception):
            raise self.start
        return self.start

    async def commit(self, positions: Mapping[MessageQueue, int]) -> None:
        await asyncio.sleep(0)
        self.noted.append(f"commit {positions[QUEUE]}")
        if self.commit_error is not None:
            raise self.commit_error

    async def has_queue(self, owner: str, queue: MessageQueue) -> bool:
        self.noted.append(f"ask {owner}")
        if isinstance(self.owner, Exception):
            raise self.owner
        return self.owner

    async def lock(self, queues: list[MessageQueue]) -> LockAnswer:
        self.noted.append("lock")
        return LockAnswer(set(queues) if self.is_locked else set(), set())

    async def unlock(self, queues: list[MessageQueue]) -> None:
        self.noted.append("unlock")

    async def close(self) -> None:
        self.noted.append("handover closed")

    # A listener.

    def begin(self, held: HeldQueue) -> None:
        held.jobs_open = self.open_jobs

    def deliver(self, held: HeldQueue, messages: Sequence[ReceivedMessage]) -> None:
        self.delivered += messages

    def withdraw(self, held: HeldQueue) -> int:
        self.noted.append("withdraw")
        return 1 if self.open_jobs else 0


def run(scenario: Callable[[Bench], Awaitable[None]], **rules: Any) -> Bench:
    made: list[Bench] = []

    async def whole() -> None:
        bench = Bench(**rules)
        made.append(bench)
        async with asyncio.timeout(10):
            await scenario(bench)

    asyncio.run(whole())
    return made[0]


async def _taken_and_left(bench: Bench) -> None:
    bench.share_out("m", "old")
    await eventually(lambda: bench.member.held)
    bench.share_out("other")
    await bench.work.until(lambda: not bench.member.lives)
    # Each end asks for another round.
    await eventually(lambda: "soon" in bench.noted)
    bench.noted.remove("soon")
    await bench.work.close()


def test_a_queue_is_taken_and_left() -> None:
    bench = run(_taken_and_left)
    assert bench.noted == [
        *("ask old", "pull", "withdraw", "end pull", "commit 7"),
        *("left", "handover closed"),
    ]


def test_in_order_it_is_locked_and_unlocked() -> None:
    bench = run(_taken_and_left, is_orderly=True)
    assert bench.noted == [
        *("lock", "pull", "withdraw", "end pull", "commit 7", "unlock"),
        *("left", "handover closed"),
    ]


def test_the_next_round_comes_when_it_is_asked_for() -> None:
    async def scenario(bench: Bench) -> None:
        bench.work.do([Again(0.0)])
        await eventually(lambda: bench.noted)

    assert run(scenario).noted == ["soon"]


def test_jobs_that_were_not_begun_are_not_waited_for() -> None:
    async def scenario(bench: Bench) -> None:
        bench.open_jobs = 1
        await _taken_and_left(bench)

    assert "commit 7" in run(scenario).noted


def test_a_timer_ends_the_wait_for_a_listener(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(bench: Bench) -> None:
        bench.open_jobs = 2
        await _taken_and_left(bench)

    assert "commit 7" in run(scenario, handover_seconds=0.05).noted
    assert "jobs=1 group=g" in caplog.text


@pytest.mark.parametrize("error", [CometError("no"), RuntimeError("what?")])
def test_a_start_that_cannot_be_found_is_logged_and_given_up(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.start = error
        bench.share_out("m")
        await bench.work.until(lambda: not bench.member.lives)

    run(scenario)
    assert str(error) in caplog.text


def test_a_commit_that_fails_is_logged_and_the_queue_let_go_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.commit_error = OSError("disk full")
        await _taken_and_left(bench)

    assert run(scenario, is_orderly=True).noted[-3:] == ["unlock", "left", "handover closed"]
    assert "disk full" in caplog.text


def test_an_owner_that_cannot_be_asked_is_given_a_moment() -> None:
    async def scenario(bench: Bench) -> None:
        bench.owner = CometError("gone")
        bench.share_out("m", "old")
        await eventually(lambda: bench.member.held)
        await bench.work.close()

    assert run(scenario, handover_seconds=0.05).noted[:2] == ["ask old", "pull"]


def test_retried_messages_have_the_topic_they_were_sent_to() -> None:
    async def scenario(bench: Bench) -> None:
        queue = MessageQueue("b", 0, "%RETRY%g")
        held = HeldQueue(queue, 0, rules=bench.member.rules, now=0.0)
        retried = ReceivedMessage(topic="x", body=b"", properties={RETRY_TOPIC: "ns%T"})
        plain = ReceivedMessage(topic="x", body=b"")
        bench.work.do([Deliver(held, [retried, plain])])

    assert [message.topic for message in run(scenario).delivered] == ["T", "x"]


def test_instructions_that_come_meanwhile_wait_for_their_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(bench: Bench) -> None:
        caplog.set_level("INFO")
        held = HeldQueue(QUEUE, 0, rules=bench.member.rules, now=0.0)
        bench.deliver = lambda *_: bench.work.do([Tell("second")])  # type: ignore[method-assign]
        bench.work.do([Deliver(held, []), Tell("first")])

    run(scenario)
    assert caplog.text.index("first") < caplog.text.index("second")
