"""A queue while it is held: its unfinished messages, the jobs made of them, and how they end. No I/O.

    delivered -> in jobs -> consumed: finished
                         -> failed: sent back to the broker: finished
                                    or kept, and delivered once more after a pause
                         -> kept for too long by a listener: sent back, and how it ends no longer counts

What ends counts until the queue is released, so the position that is committed then is exact (``queue_life``).
Belongs to the event loop's thread; worker threads may read ``is_dropped`` and ask ``is_locked``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cometmq.client.core.consume.call_size import call_size
from cometmq.client.core.consume.member.instructions import (
    NOTHING,
    Instructions,
    Resubmit,
    ResumePull,
    RetryLater,
    Tell,
)
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.client.core.consume.outcome import Verdict
from cometmq.client.core.consume.process_queue import OrderlyQueue, ProcessQueue
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.names import RETRY_PREFIX

RESUBMIT_SECONDS: Final = 5.0
TIMED_OUT_LEVEL: Final = 3
"""Delay level of a message that a listener kept for too long: 10 s."""


class Job:
    """Messages for one call of a listener, or for one call each, one after the other."""

    __slots__ = ("held", "is_abandoned", "messages", "returned", "started")

    def __init__(self, held: HeldQueue, messages: list[ReceivedMessage]) -> None:
        self.held = held
        self.messages = messages
        self.started = 0.0
        """When the listener was called; 0 before."""
        self.returned: object = None
        """The verdict of a call that did not consume everything."""
        self.is_abandoned = False
        """It took too long and was sent back; how it ends no longer matters."""


class HeldQueue:
    """Args:
    on_rested: what to do when the queue is dropped and its last job has ended.
    """

    __slots__ = (
        "_lock_seconds",
        "_on_rested",
        "_sends_back",
        "consumed_count",
        "consumed_seconds",
        "failed_count",
        "is_dropped",
        "is_full",
        "is_released",
        "is_retry",
        "jobs_open",
        "last_consume",
        "last_pull",
        "locked_at",
        "process",
        "pulled_count",
        "queue",
    )

    def __init__(
        self,
        queue: MessageQueue,
        start_offset: int,
        *,
        rules: MemberRules,
        now: float,
        on_rested: Callable[[float], Instructions] = lambda now: NOTHING,
    ) -> None:
        self.queue = queue
        self.process = (OrderlyQueue if rules.is_orderly else ProcessQueue)(start_offset)
        self.is_retry = queue.topic.startswith(RETRY_PREFIX)
        self.is_dropped = False
        """Nothing new is pulled or begun."""
        self.is_released = False
        """Somebody else goes on with it."""
        self.is_full = False
        """Pulling waits for messages to be finished."""
        self.jobs_open = 0
        """Jobs that were handed to workers and are not settled."""
        self.locked_at: float | None = None
        """When the last confirmed lock was requested."""
        self.last_pull = now
        self.last_consume = now
        self.pulled_count = 0
        self.consumed_count = 0
        self.consumed_seconds = 0.0
        self.failed_count = 0
        self._lock_seconds = rules.lock_valid_seconds if rules.has_locks else None
        self._sends_back = not rules.is_broadcast
        self._on_rested = on_rested

    @property
    def orderly(self) -> OrderlyQueue:
        assert isinstance(self.process, OrderlyQueue)
        return self.process

    def is_locked(self, now: float) -> bool:
        """Whether it may be consumed, as far as locks are concerned."""
        if self._lock_seconds is None:
            return True
        return self.locked_at is not None and now - self.locked_at < self._lock_seconds

    # Jobs.

    def open_jobs(self, messages: Sequence[ReceivedMessage], batch_max: int) -> list[Job]:
        """Jobs of up to ``batch_max`` messages, which are open from now on."""
        if batch_max == 1:
            jobs = [Job(self, [message]) for message in messages]
        else:
            jobs, at = [], 0
            while at < len(messages):
                end = at + call_size(messages, at, batch_max)
                jobs.append(Job(self, list(messages[at:end])))
                at = end
        self.jobs_open += len(jobs)
        return jobs

    def close_jobs(self, count: int, now: float) -> Instructions:
        """So many jobs are settled or were not begun."""
        self.jobs_open -= count
        if self.is_dropped:
            return self._on_rested(now) if self.jobs_open <= 0 else NOTHING
        return self.make_room() if self.is_full else NOTHING

    def make_room(self) -> Instructions:
        """Messages were finished."""
        if not self.is_full:
            return NOTHING
        self.is_full = False
        return (ResumePull(self),)

    # How a job ends.

    def consumed(self, job: Job, now: float) -> Instructions:
        """The listener consumed all of it."""
        if job.is_abandoned:
            return NOTHING
        self._finish(job.messages, now - job.started, now)
        return self.close_jobs(1, now)

    def split(self, job: Job, count: int, now: float) -> tuple[list[Job], Instructions]:
        """The listener consumed the first ``count`` messages and is at the next one, which may take a while.

        The job keeps that one. The messages behind it are jobs that others may begin.
        """
        messages = job.messages
        job.messages = messages[count : count + 1]
        todo: Instructions = NOTHING
        if count:
            self._finish(messages[:count], now - job.started, now)
            todo = self.make_room()
        job.started = now
        rest = messages[count + 1 :]
        return self.open_jobs(rest, len(rest)) if rest else [], todo

    def failed(self, job: Job, verdict: Verdict, now: float) -> Instructions:
        """The listener consumed the first messages at most; the others are to come again."""
        if job.is_abandoned:
            return NOTHING
        count = verdict.consumed_count
        self._finish(job.messages[:count], now - job.started, now)
        self.failed_count += len(job.messages) - count
        return self._give_back(job.messages[count:], verdict.delay_level, now)

    def abandon(self, job: Job, now: float) -> Instructions:
        """The listener has been at it for too long."""
        job.is_abandoned = True
        return [
            Tell(
                f"listener takes too long, message sent back queue={self.queue} "
                f"message={job.messages[0].message_id}",
                is_warning=True,
            ),
            *self._give_back(job.messages, TIMED_OUT_LEVEL, now),
        ]

    def sent_back(self, message: ReceivedMessage) -> None:
        """The broker delivers it again later."""
        self.process.finish(message.queue_offset)

    def keep(self, messages: Sequence[ReceivedMessage], now: float) -> Instructions:
        """The others of a job were sent back, these could not be."""
        for message in messages:
            message.reconsume_times += 1
        ended = self.close_jobs(1, now)
        return [Resubmit(self, messages, RESUBMIT_SECONDS), *ended] if messages else ended

    def _finish(self, messages: Sequence[ReceivedMessage], seconds: float, now: float) -> None:
        self.process.finish_all(messages)
        self.last_consume = now
        self.consumed_count += len(messages)
        self.consumed_seconds += seconds

    def _give_back(
        self, messages: Sequence[ReceivedMessage], delay_level: int, now: float
    ) -> Instructions:
        if self.is_released:
            # Whoever has the queue now gets them again anyway.
            return self.close_jobs(1, now)
        if self._sends_back:
            return (RetryLater(self, messages, delay_level),)
        self.process.finish_all(messages)
        return [*map(_passed_over, messages), *self.close_jobs(1, now)]


def late_jobs(running: Iterable[Job | None], oldest: float) -> list[Job]:
    """Jobs that were begun before ``oldest``, have not failed, and are not given up yet."""
    return [
        job
        for job in running
        if job is not None
        and job.started
        and job.started < oldest
        and job.returned is None
        and not job.is_abandoned
    ]


def _passed_over(message: ReceivedMessage) -> Tell:
    return Tell(
        f"failed message passed over, broadcasting has no retry message={message.message_id}",
        is_warning=True,
    )
