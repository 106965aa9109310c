"""The thread that blocking clients share: when it lives, who may wait for it, what an end or a fork leaves."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, wait
from typing import Any

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.errors import ClientClosed
from cometmq.client.sync import Producer, PushConsumer, TransactionProducer, TransactionState
from cometmq.client.sync import loop as loops
from cometmq.client.sync.loop import LoopThread

THREAD = "cometmq-client-sync-loop"
NAME_SERVERS = "127.0.0.1:1"


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    acquired = loops.acquire()
    yield acquired
    loops.release(acquired)


def loop_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


def test_a_coroutine_runs_and_its_result_comes_back(loop: LoopThread) -> None:
    assert [loop.run(double, number) for number in range(100)] == list(range(0, 200, 2))


def test_an_error_is_raised_in_the_caller(loop: LoopThread) -> None:
    async def fail() -> None:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        loop.run(fail)


def test_many_threads_get_each_their_own_result(loop: LoopThread) -> None:
    wrong: list[int] = []

    def work(start: int) -> None:
        wrong.extend(
            number for number in range(start, start + 300) if loop.run(double, number) != 2 * number
        )

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 3000, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_one_thread_serves_all_and_ends_with_the_last(loop: LoopThread) -> None:
    assert loops.acquire() is loop
    assert len(loop_threads()) == 1
    loops.release(loop)
    assert len(loop_threads()) == 1
    loops.release(loop)
    assert loop_threads() == []
    assert loops.acquire() is loop
    assert loop.run(double, 4) == 8


def test_a_running_event_loop_is_not_stopped_for_it(loop: LoopThread) -> None:
    async def call() -> None:
        loop.run(double, 1)

    with pytest.raises(UsageError, match=r"cometmq\.client\.aio"):
        asyncio.run(call())


def test_the_loop_does_not_wait_for_itself(loop: LoopThread) -> None:
    async def call() -> None:
        loop.run(double, 1)

    with pytest.raises(UsageError, match="its own event loop"):
        loop.run(call)


def test_a_client_cannot_be_started_where_an_event_loop_runs() -> None:
    async def start() -> None:
        with Producer("group", name_servers=NAME_SERVERS):
            pass

    with pytest.raises(UsageError, match=r"cometmq\.client\.aio"):
        asyncio.run(start())
    assert loop_threads() == []


def test_context_variables_are_those_of_the_caller(loop: LoopThread) -> None:
    trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace", default="none")
    trace.set("t-1")

    async def read() -> str:
        return trace.get()

    assert loop.run(read) == "t-1"

    def start() -> asyncio.Future[str]:
        return asyncio.get_running_loop().create_task(read())

    assert loop.soon(start).result(5) == "t-1"


def test_an_interrupt_ends_the_wait_and_cancels_the_call(loop: LoopThread) -> None:
    cancelled = threading.Event()
    # A process started in the background by a shell ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    async def for_ever() -> None:
        # By now the caller waits, or soon will; either way the signal ends it.
        asyncio.get_running_loop().call_later(0.1, os.kill, os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run(for_ever)
    finally:
        signal.signal(signal.SIGINT, before)
    assert cancelled.wait(5)
    assert loop.run(double, 3) == 6


def test_a_wait_in_portions_ends_with_the_call(
    loop: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, where Ctrl-C is seen only between two of them."""
    monkeypatch.setattr(loops, "WAIT_SECONDS", 0.001)

    async def slow() -> str:
        await asyncio.sleep(0.05)  # a real one: it is a thread that waits for it
        return "done"

    assert loop.run(slow) == "done"


def test_soon_returns_at_once_and_can_be_cancelled(loop: LoopThread) -> None:
    ended: list[str] = []

    def start() -> asyncio.Future[None]:
        async def work() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        return asyncio.get_running_loop().create_task(work())

    future = loop.soon(start)
    loop.run(double, 1)
    assert not future.done()
    assert future.cancel()
    assert wait([future], 5).not_done == set()
    with pytest.raises(CancelledError):
        future.result()
    deadline = time.monotonic() + 5
    while ended != ["cancelled"]:
        assert time.monotonic() < deadline
        loop.run(double, 1)


def test_what_a_start_raises_is_in_the_future(loop: LoopThread) -> None:
    def start() -> asyncio.Future[None]:
        raise KeyError("no")

    with pytest.raises(KeyError):
        loop.soon(start).result(5)


def test_whoever_waits_when_the_last_client_closes_is_not_left_waiting() -> None:
    loop = loops.acquire()
    begun = threading.Event()
    raised: list[BaseException] = []

    async def for_ever() -> None:
        begun.set()
        await asyncio.Event().wait()

    def work() -> None:
        try:
            loop.run(for_ever)
        except BaseException as error:  # noqa: BLE001
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(5)
    loops.release(loop)
    thread.join(5)
    assert not thread.is_alive()
    assert [type(error) for error in raised] == [asyncio.CancelledError]
    with pytest.raises(ClientClosed):
        loop.run(double, 1)
    with pytest.raises(ClientClosed):
        loop.soon(lambda: asyncio.get_running_loop().create_future()).result(5)


def test_a_client_that_does_not_run_says_so() -> None:
    producer = Producer("group", name_servers=NAME_SERVERS)
    with pytest.raises(ClientClosed, match=r"'group' not running.*`with`"):
        producer.fetch_publish_queues("T")
    producer.close()


def test_async_functions_are_refused_where_plain_ones_belong() -> None:
    async def listener(message: object) -> None: ...

    async def decide(*given: object) -> TransactionState:
        return TransactionState.COMMIT

    def plain(*given: object) -> TransactionState:
        return TransactionState.COMMIT

    refused: list[Any] = [
        lambda: PushConsumer("g", listener=listener),  # type: ignore[arg-type]
        lambda: PushConsumer("g", batch_listener=listener),  # type: ignore[arg-type]
        lambda: TransactionProducer("g", execute=decide, check=plain),  # type: ignore[arg-type]
        lambda: TransactionProducer("g", execute=plain, check=decide),  # type: ignore[arg-type]
    ]
    for make in refused:
        with pytest.raises(UsageError, match="plain function"):
            make()


def script(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


FORK = """
import os, sys
from cometmq.client.errors import ClientClosed
from cometmq.client.sync import loop as loops

async def double(number): return 2 * number

loop = loops.acquire()
assert loop.run(double, 1) == 2
pid = os.fork()
if pid == 0:
    try:
        loop.run(double, 1)
    except ClientClosed as error:
        assert "forked" in str(error), error
    else:
        os._exit(2)
    loops.release(loop)
    own = loops.acquire()
    assert own is not loop
    assert own.run(double, 2) == 4
    loops.release(own)
    sys.exit(7)
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
assert loop.run(double, 3) == 6
loops.release(loop)
print("parent and child went on")
"""


def test_a_forked_process_has_a_loop_of_its_own() -> None:
    done = script(FORK)
    assert (done.stdout, done.stderr, done.returncode) == ("parent and child went on\n", "", 0)


LEFT_OPEN = """
import asyncio
from cometmq.client.sync import loop as loops

async def begin():
    asyncio.get_running_loop().create_task(asyncio.sleep(3600))

loop = loops.acquire()
loop.run(begin)
loop.soon(lambda: asyncio.get_running_loop().create_task(asyncio.sleep(3600)))
print("end of the program")
"""


def test_a_program_that_closes_nothing_ends_in_peace() -> None:
    done = script(LEFT_OPEN)
    assert (done.stdout, done.stderr, done.returncode) == ("end of the program\n", "", 0)
