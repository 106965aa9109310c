"""Calls of a listener: every way it can end is a verdict."""

from __future__ import annotations

import asyncio
import functools
import gc
import weakref
from typing import Any

import pytest

from cometmq.client.aio.push.listener_call import ListenerCall
from cometmq.client.aio.trace.consume_hooks import ConsumeContext
from cometmq.client.core.consume.outcome import DEAD_LETTER_LEVEL, Outcome, Verdict
from cometmq.client.errors import UnreadableBody
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

QUEUE = MessageQueue("b", 0, "T")
MESSAGES = [ReceivedMessage(topic="T", body=b"%d" % number) for number in range(3)]


def _both(act: Any, messages: list[ReceivedMessage]) -> Verdict | None:
    """The verdict of a batch listener that does ``act``, the same for both kinds of functions."""

    async def listener(messages: list[ReceivedMessage]) -> Any:
        return act(messages)

    call = ListenerCall("g", batch_listener=listener)
    call_in_thread = ListenerCall("g", batch_listener=act)
    assert call.is_async
    assert not call_in_thread.is_async
    verdict = asyncio.run(call.call(QUEUE, messages))
    assert call_in_thread.call_in_thread(QUEUE, messages) == verdict
    return verdict


@pytest.mark.parametrize(
    ("returned", "verdict"),
    [
        (None, None),
        (Outcome.consumed, None),
        (Outcome.consumed_through(2), None),
        (Outcome.consumed_through(0), Verdict(1)),
        (Outcome.later(3), Verdict(0, 3)),
        (Outcome.to_dlq(), Verdict(0, -1)),
        (True, Verdict(0)),
        (Outcome.consumed_through(3), Verdict(0)),
    ],
)
def test_what_it_returns(returned: Any, verdict: Verdict | None) -> None:
    assert _both(lambda _: returned, MESSAGES) == verdict


def test_what_it_raises_is_logged_and_means_later(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("not today")

    assert _both(fail, MESSAGES) == Verdict(0)
    assert "not today" in caplog.text


async def test_a_cancellation_inside_of_it_is_a_failure_and_one_of_it_is_not() -> None:
    async def inner(_: object) -> None:
        task = asyncio.create_task(asyncio.sleep(10))
        task.cancel()
        await task

    async def endless(_: object) -> None:
        await asyncio.Event().wait()

    assert await ListenerCall("g", listener=inner).call(QUEUE, MESSAGES[:1]) == Verdict(0)
    call = asyncio.create_task(ListenerCall("g", listener=endless).call(QUEUE, MESSAGES[:1]))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.parametrize(
    ("is_orderly", "verdict"), [(False, Verdict(0)), (True, Verdict(0, DEAD_LETTER_LEVEL))]
)
async def test_a_message_that_cannot_be_read_fails_without_a_call(
    is_orderly: bool, verdict: Verdict, caplog: pytest.LogCaptureFixture
) -> None:
    """In order, the queue would wait for it for ever."""
    bad = [ReceivedMessage(topic="T", body=b"packed", body_error="cut off")]
    seen: list[ConsumeContext] = []

    class Hook:
        def before(self, context: ConsumeContext) -> None: ...

        def after(self, context: ConsumeContext) -> None:
            seen.append(context)

    def never(_: object) -> None:
        pytest.fail("called")

    async def never_async(_: object) -> None:
        never(_)

    hooks: list[Any] = [Hook()]
    plain = ListenerCall("g", listener=never, is_orderly=is_orderly, hooks=hooks)
    assert plain.call_in_thread(QUEUE, bad) == verdict
    coroutine = ListenerCall("g", listener=never_async, is_orderly=is_orderly, hooks=hooks)
    assert await coroutine.call(QUEUE, bad) == verdict
    for context in seen:
        assert isinstance(context.error, UnreadableBody)
        assert (str(context.error), context.consumed_count) == ("cut off", 0)
    assert len(seen) == caplog.text.count("UnreadableBody: cut off") == 2
    with pytest.raises(UnreadableBody, match="cut off"):
        await plain.call_plainly(bad[0])


def test_a_single_listener_gets_the_message_itself() -> None:
    got: list[object] = []
    call = ListenerCall("g", listener=got.append)
    assert call.call_in_thread(QUEUE, MESSAGES[:1]) is None
    assert got == [MESSAGES[0]]


def test_coroutine_functions_are_known_in_disguise() -> None:
    async def listener(extra: int, message: ReceivedMessage) -> None: ...

    class Handler:
        async def __call__(self, message: ReceivedMessage) -> None: ...

    assert ListenerCall("g", listener=functools.partial(listener, 1)).is_async
    assert ListenerCall("g", listener=Handler()).is_async
    assert not ListenerCall("g", listener=print).is_async


def test_hooks_are_told_before_and_after_and_cannot_do_harm() -> None:
    seen: list[tuple[str, int, object]] = []

    class Hook:
        def before(self, context: ConsumeContext) -> None:
            seen.append(("before", context.consumed_count, context.error))
            raise RuntimeError("never mind")

        def after(self, context: ConsumeContext) -> None:
            seen.append(("after", context.consumed_count, type(context.error)))
            raise RuntimeError("never mind")

    def act(messages: list[ReceivedMessage]) -> Outcome:
        if len(messages) == 1:
            raise ValueError("one")
        return Outcome.consumed_through(1)

    call = ListenerCall("g", batch_listener=act, hooks=[Hook()])
    assert call.call_in_thread(QUEUE, MESSAGES) == Verdict(2)
    assert call.call_in_thread(QUEUE, MESSAGES[:1]) == Verdict(0)
    assert seen == [
        ("before", 0, None),
        ("after", 2, type(None)),
        ("before", 0, None),
        ("after", 0, ValueError),
    ]


@pytest.mark.parametrize("fails", [False, True])
async def test_messages_of_a_run_do_not_wait_for_the_collection_of_cycles(
    monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    class Watched(ReceivedMessage):
        __slots__ = ("__weakref__",)

    async def listener(message: ReceivedMessage) -> Outcome:
        if fails:
            raise ValueError("no")
        return Outcome.consumed

    # Those who capture what is logged keep the error.
    monkeypatch.setattr("cometmq.client.aio.push.listener_call.logger.disabled", True)
    call = ListenerCall("g", listener=listener)
    messages: list[ReceivedMessage] = [Watched(topic="T", body=b"x")]
    gc.disable()
    try:
        count, begun = call.call_each(messages)
        assert await call.call(QUEUE, messages, begun) == (Verdict(0) if fails else None)
        left = weakref.ref(messages.pop())
        assert (count, left()) == (0, None)
    finally:
        gc.enable()
