"""A loop that stands still unless its caller waits."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.errors import ClientClosed
from cometmq.client.sync.callers_loop import CallersLoop


async def double(value: int) -> int:
    await asyncio.sleep(0)
    return 2 * value


async def fail() -> None:
    raise KeyError("as told")


def test_results_and_errors_come_back() -> None:
    loop = CallersLoop()
    assert loop.run(double, 4) == 8
    with pytest.raises(KeyError, match="as told"):
        loop.run(fail)
    assert loop.run(double, value=5) == 10
    loop.close()


def test_what_was_begun_goes_on_while_somebody_waits() -> None:
    loop = CallersLoop()
    done: list[int] = []

    async def begin() -> asyncio.Task[None]:
        async def later() -> None:
            for number in range(3):
                await asyncio.sleep(0)
                done.append(number)

        return asyncio.get_running_loop().create_task(later())

    async def end(task: asyncio.Task[None]) -> None:
        await task

    task = loop.run(begin)
    assert done == []
    loop.run(end, task)
    assert done == [0, 1, 2]
    loop.close()


def test_it_first_sees_what_happened_while_it_stood_still() -> None:
    loop = CallersLoop()
    near, far = socket.socketpair()
    got: list[bytes] = []

    class Reader(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            got.append(data)

    async def connect() -> asyncio.BaseTransport:
        transport, _ = await asyncio.get_running_loop().create_connection(Reader, sock=near)
        return transport

    async def seen() -> list[bytes]:
        return list(got)

    transport = loop.run(connect)
    far.sendall(b"meanwhile")
    assert loop.run(seen) == [b"meanwhile"]
    transport.close()
    loop.close()
    far.close()


def test_what_is_left_is_cancelled_at_the_end() -> None:
    loop = CallersLoop()
    ended: list[str] = []

    async def begin() -> asyncio.Task[None]:
        async def for_ever() -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                ended.append("cancelled")

        task = asyncio.get_running_loop().create_task(for_ever())
        await asyncio.sleep(0)
        return task

    task = loop.run(begin)
    loop.close()
    assert ended == ["cancelled"]
    assert task.cancelled()
    loop.close()
    with pytest.raises(ClientClosed, match="closed"):
        loop.run(double, 1)


def test_an_interrupted_call_is_cancelled() -> None:
    loop = CallersLoop()
    states: list[str] = []

    async def interrupted() -> None:
        def interrupt() -> None:
            raise KeyboardInterrupt

        asyncio.get_running_loop().call_soon(interrupt)
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            states.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        loop.run(interrupted)
    assert loop.run(double, 1) == 2
    assert states == ["cancelled"]
    loop.close()


def test_a_thread_with_a_loop_must_not_wait() -> None:
    loop = CallersLoop()

    async def inside() -> None:
        with pytest.raises(UsageError, match="in a thread that runs an event loop"):
            loop.run(double, 1)

    asyncio.run(inside())
    loop.close()


def test_a_fork_leaves_it_alone() -> None:
    loop = CallersLoop()
    child = os.fork()
    if not child:
        # Nothing of pytest's may run twice.
        status = 1
        try:
            try:
                loop.run(double, 1)
            except ClientClosed:
                loop.close()
                status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert loop.run(double, 4) == 8
    loop.close()
