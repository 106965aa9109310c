"""One call of the user's listener: hooks around it, and its end turned into a verdict."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from types import CoroutineType
from typing import Any

from cometmq.base.errors import CometError
from cometmq.client.aio.trace.consume_hooks import (
    ConsumeContext,
    ConsumeHook,
    run_after,
    run_before,
)
from cometmq.client.core.consume.outcome import DEAD_LETTER_LEVEL, Verdict, judge
from cometmq.client.errors import UnreadableBody
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

logger = logging.getLogger("cometmq.client")

Listener = Callable[[ReceivedMessage], Any]
BatchListener = Callable[[list[ReceivedMessage]], Any]


class ListenerCancelled(CometError):
    """Something in the listener was cancelled, though nobody asked the listener itself to end."""


class ListenerCall:
    """``call`` for a coroutine function, ``call_in_thread`` for a plain one; both return None when all is consumed.

    Whatever the listener raises is logged and counts as a wish for a retry. A message that cannot be read comes alone
    (``core.call_size``) and counts as failed without a call of the listener.
    """

    def __init__(
        self,
        group: str,
        *,
        listener: Listener | None = None,
        batch_listener: BatchListener | None = None,
        is_orderly: bool = False,
        hooks: list[ConsumeHook] | None = None,
    ) -> None:
        assert (listener is None) != (batch_listener is None)
        self._group = group
        self._listener: Callable[[Any], Any] = listener or batch_listener  # type: ignore[assignment]
        self.is_batch = batch_listener is not None
        self.is_async = _is_async(self._listener)
        self._is_orderly = is_orderly
        self.hooks: list[ConsumeHook] = hooks if hooks is not None else []

    def call_each(self, messages: Sequence[ReceivedMessage]) -> tuple[int, Awaitable[Any] | None]:
        """Call a coroutine function for one message after the other, while it consumes each without waiting.

        Returns how many it consumed, and the call that did not end like that, for ``call``; None if all did.
        """
        listener = self._listener
        for count, message in enumerate(messages):
            try:
                coroutine = listener(message)
            except BaseException as error:  # noqa: BLE001 - raised again by whoever awaits
                return count, _begun(None, None, error)
            if type(coroutine) is not CoroutineType:
                return count, _awaited(coroutine)
            try:
                waits_for = coroutine.send(None)
            except StopIteration as end:
                if end.value is not None:
                    return count, _begun(None, None, end)
            except BaseException as error:  # noqa: BLE001 - raised again by whoever awaits
                return count, _begun(None, None, error)
            else:
                return count, _begun(coroutine, waits_for, None)
        return len(messages), None

    async def call(
        self,
        queue: MessageQueue,
        messages: list[ReceivedMessage],
        begun: Awaitable[Any] | None = None,
    ) -> Verdict | None:
        """``begun``: the call, if ``call_each`` has begun it."""
        context = self._begin(queue, messages) if self.hooks else None
        if messages[0].body_error is not None:
            return self._unreadable(queue, messages, context)
        try:
            returned = await (begun or self._listener(messages if self.is_batch else messages[0]))
            verdict = None if returned is None else self._judge(returned, len(messages))
        except Exception as error:  # noqa: BLE001 - the user's code; logged in _failed
            return self._failed(queue, messages, context, error)
        except asyncio.CancelledError as cancelled:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            wrapped = ListenerCancelled("the listener ended by a cancellation inside of it")
            wrapped.__cause__ = cancelled
            return self._failed(queue, messages, context, wrapped)
        if context is not None:
            self._end(context, verdict, returned, None)
        return verdict

    def call_in_thread(
        self, queue: MessageQueue, messages: list[ReceivedMessage]
    ) -> Verdict | None:
        context = self._begin(queue, messages) if self.hooks else None
        if messages[0].body_error is not None:
            return self._unreadable(queue, messages, context)
        try:
            returned = self._listener(messages if self.is_batch else messages[0])
            verdict = None if returned is None else self._judge(returned, len(messages))
        except Exception as error:  # noqa: BLE001 - the user's code; logged in _failed
            return self._failed(queue, messages, context, error)
        if context is not None:
            self._end(context, verdict, returned, None)
        return verdict

    async def call_plainly(self, message: ReceivedMessage) -> Any:
        """What the listener returns or raises for one message, nothing else."""
        if message.body_error is not None:
            raise UnreadableBody(message.body_error)
        argument = [message] if self.is_batch else message
        if self.is_async:
            return await self._listener(argument)
        return await asyncio.to_thread(self._listener, argument)

    def _judge(self, returned: object, count: int) -> Verdict | None:
        verdict = judge(returned, count)
        return None if verdict.consumed_count == count else verdict

    def _unreadable(
        self, queue: MessageQueue, messages: list[ReceivedMessage], context: ConsumeContext | None
    ) -> Verdict:
        (message,) = messages
        failed = self._failed(queue, messages, context, UnreadableBody(message.body_error))
        # In order, to try again means that the queue waits; and it will be no better the next time.
        return Verdict(0, DEAD_LETTER_LEVEL) if self._is_orderly else failed

    def _failed(
        self,
        queue: MessageQueue,
        messages: list[ReceivedMessage],
        context: ConsumeContext | None,
        error: Exception,
    ) -> Verdict:
        logger.warning(
            "listener failed group=%s queue=%s offset=%d count=%d message=%s",
            self._group,
            queue,
            messages[0].queue_offset,
            len(messages),
            messages[0].message_id,
            exc_info=error,
        )
        verdict = Verdict(0)
        if context is not None:
            self._end(context, verdict, None, error)
        return verdict

    def _begin(self, queue: MessageQueue, messages: list[ReceivedMessage]) -> ConsumeContext:
        context = ConsumeContext(
            group=self._group, queue=queue, messages=messages, is_orderly=self._is_orderly
        )
        run_before(self.hooks, context)
        context.elapsed_ms = -time.monotonic() * 1000
        return context

    def _end(
        self,
        context: ConsumeContext,
        verdict: Verdict | None,
        returned: object,
        error: Exception | None,
    ) -> None:
        context.elapsed_ms += time.monotonic() * 1000
        context.returned = returned
        context.error = error
        context.consumed_count = (
            len(context.messages) if verdict is None else verdict.consumed_count
        )
        run_after(self.hooks, context)


async def _awaited(given: Any) -> Any:
    """What a listener gave to await, whatever it is: it may be nothing, or count as false."""
    return await given


@types.coroutine
def _begun(
    coroutine: Coroutine[Any, Any, Any] | None, waits_for: Any, ended: BaseException | None
) -> Generator[Any, Any, Any]:
    """The rest of a coroutine after its first step, as ``await coroutine`` would have gone on."""
    try:
        if ended is not None:
            raise ended
        assert coroutine is not None
        while True:
            try:
                answer = yield waits_for
            except BaseException as thrown:  # noqa: BLE001 - the coroutine decides
                waits_for = coroutine.throw(thrown)
            else:
                waits_for = coroutine.send(answer)
    except StopIteration as end:
        return end.value
    finally:
        # Its traceback leads here: the messages of the run would stay until cycles are collected.
        del ended


def _is_async(listener: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(
        getattr(listener, "__call__", None)  # noqa: B004
    )
