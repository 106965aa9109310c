"""Workers of both kinds: all jobs run, side by side up to their number, and what was not begun can be taken back."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.eventually import eventually, turns

from cometmq.client.aio.push.workers import TaskWorkers, ThreadWorkers, Workers
from cometmq.client.core.consume.member.held_queue import HeldQueue, Job
from cometmq.client.core.consume.member.rules import MemberRules
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

KINDS = ["tasks", "threads"]


def _held(number: int = 0) -> HeldQueue:
    return HeldQueue(MessageQueue("b", number, "T"), 0, rules=MemberRules(), now=0.0)


def _jobs(held: HeldQueue, count: int) -> list[Job]:
    return [Job(held, [ReceivedMessage(topic="T", body=b"%d" % n)]) for n in range(count)]


class Bench:
    """Workers whose jobs wait for a gate each time, or not at all."""

    def __init__(self, kind: str, count: int, *, waits: bool) -> None:
        self.ended: list[Job] = []
        self.begun = 0
        self.lock = threading.Lock()
        self.waits = waits
        self.gate = asyncio.Semaphore(0)
        self.thread_gate = threading.Semaphore(0)
        self.kind = kind
        self.workers: Workers = (
            TaskWorkers(self._run, count, "test")
            if kind == "tasks"
            else ThreadWorkers(self._run_in_thread, self.ended.extend, count, "test")
        )
        self.workers.start()

    def open(self, times: int) -> None:
        for _ in range(times):
            self.gate.release()
            self.thread_gate.release()

    async def _run(self, job: Job) -> None:
        self.begun += 1
        if self.waits:
            await self.gate.acquire()
        self.ended.append(job)

    def _run_in_thread(self, job: Job) -> None:
        with self.lock:
            self.begun += 1
        if self.waits:
            self.thread_gate.acquire()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 7])
async def test_every_job_runs_once(kind: str, count: int) -> None:
    bench = Bench(kind, count, waits=False)
    jobs = _jobs(_held(), 2000)
    for at in range(0, 2000, 37):
        bench.workers.submit(jobs[at : at + 37])
        if at % 111 == 0:
            await asyncio.sleep(0)
    await eventually(lambda: len(bench.ended) == 2000)
    assert set(map(id, bench.ended)) == set(map(id, jobs))
    await bench.workers.close(5)


@pytest.mark.parametrize("kind", KINDS)
async def test_as_many_run_side_by_side_as_there_are_workers(kind: str) -> None:
    bench = Bench(kind, 3, waits=True)
    bench.workers.submit(_jobs(_held(), 8))
    await eventually(lambda: bench.begun == 3)
    await turns()
    assert bench.begun == 3
    assert sum(job is not None for job in bench.workers.running) == 3
    bench.open(2)
    await eventually(lambda: bench.begun == 5)
    bench.open(6)
    await eventually(lambda: len(bench.ended) == 8)
    assert bench.workers.running == [None] * 3
    await bench.workers.close(5)


@pytest.mark.parametrize("kind", KINDS)
async def test_jobs_of_a_queue_that_were_not_begun_can_be_withdrawn(kind: str) -> None:
    bench = Bench(kind, 1, waits=True)
    kept, dropped = _held(0), _held(1)
    bench.workers.submit(_jobs(kept, 2))
    bench.workers.submit(_jobs(dropped, 5))
    await eventually(lambda: bench.begun == 1)
    assert bench.workers.withdraw(dropped) == 5
    bench.open(7)
    await eventually(lambda: len(bench.ended) == 2)
    assert {job.held for job in bench.ended} == {kept}
    await bench.workers.close(5)


async def test_a_task_whose_jobs_never_wait_lets_others_run() -> None:
    bench = Bench("tasks", 1, waits=False)
    bench.workers.submit(_jobs(_held(), 10_000))
    turns = 0
    while len(bench.ended) < 10_000:
        await asyncio.sleep(0)
        turns += 1
    assert turns > 100
    await bench.workers.close(5)


async def test_closing_does_not_wait_for_a_thread_that_hangs() -> None:
    bench = Bench("threads", 2, waits=True)
    bench.workers.submit(_jobs(_held(), 1))
    await eventually(lambda: bench.begun == 1)
    async with asyncio.timeout(5):
        await bench.workers.close(0.05)
    bench.open(1)
