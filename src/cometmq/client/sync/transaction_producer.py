"""Sends messages that consumers see only if a local transaction succeeds. Wraps ``aio.send.transaction_producer``.

The local transaction runs in the thread that sends, so it can use that thread's database connection:

    caller's thread               event loop
    send_transaction ──────────>  half message ──> broker
    execute()        <──────────  stored
                     ──────────>  outcome ──> broker
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from cometmq.base.ports import Clock
from cometmq.client import aio
from cometmq.client.aio.send.transaction_producer import TransactionResult, TransactionState
from cometmq.client.aio.trace.send_hooks import EndHook
from cometmq.client.producer_config import ProducerConfig
from cometmq.client.sync.client import check_is_plain
from cometmq.client.sync.producer import Producer
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage

Execute = Callable[[Message, Any], TransactionState]
"""Runs the local transaction of a message; the second argument is the one passed to ``send_transaction``."""

Check = Callable[[ReceivedMessage], TransactionState]
"""Determines the outcome of a message's local transaction, which another process may have run."""

_Answer = tuple[TransactionState, Exception | None]


class TransactionProducer(Producer):
    """A producer whose messages take part in a local transaction.

    Args:
        execute: called by the thread that calls ``send_transaction``.
        check: called by a thread of the library. An exception in either counts as UNKNOWN, and the broker asks later.
    """

    def __init__(
        self,
        group: str,
        *,
        execute: Execute,
        check: Check,
        name_servers: str | Sequence[str] | None = None,
        config: ProducerConfig | None = None,
        clock: Clock | None = None,
    ) -> None:
        check_is_plain("execute", execute)
        check_is_plain("check", check)
        self._execute = execute
        self._aio_transactions = aio.TransactionProducer(
            group,
            execute=_execute_in_caller,
            check=check,
            name_servers=name_servers,
            config=config,
            clock=clock,
        )
        self._use(self._aio_transactions, config)

    def send_transaction(
        self, message: Message, argument: Any = None, *, timeout: float | None = None
    ) -> TransactionResult:
        """Send a half message, run the local transaction, and tell the broker the outcome.

        A half message that is stored without confirmation (any status other than SEND_OK) is rolled back, and
        ``execute`` is not called.

        Args:
            argument: passed to ``execute``.
            timeout: seconds for the half message; the transaction itself has no timeout.

        Raises:
            UsageError: the message has a delay, or can never be sent as it is.
            CometError: the half message was not confirmed; ``execute`` was not called.
        """
        errand = _Errand(lambda: self._execute(message, argument))

        def start() -> asyncio.Future[TransactionResult]:
            return asyncio.get_running_loop().create_task(
                self._aio_transactions.send_transaction(message, errand, timeout=timeout)
            )

        if self._loop is not None:
            self._loop.check_may_wait()
        return errand.wait(self._soon(start))

    def add_end_hook(self, hook: EndHook) -> None:
        """Call ``hook`` for every outcome that is sent from now on, on the event loop's thread."""
        self._tell(self._aio_transactions.add_end_hook, hook)


async def _execute_in_caller(message: Message, errand: _Errand) -> TransactionState:
    return await errand.ask()


class _Errand:
    """A call that the event loop asks the waiting thread to make."""

    def __init__(self, execute: Callable[[], TransactionState]) -> None:
        self._execute = execute
        self._asked: SimpleQueue[asyncio.Future[_Answer] | None] = SimpleQueue()

    async def ask(self) -> TransactionState:
        answer: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        self._asked.put(answer)
        state, error = await answer
        if error is not None:
            raise error
        return state

    def wait(self, sending: Future[TransactionResult]) -> TransactionResult:
        sending.add_done_callback(lambda _: self._asked.put(None))
        try:
            while (answer := self._asked.get()) is not None:
                given = self._carry_out()
                answer.get_loop().call_soon_threadsafe(_set, answer, given)
        except BaseException:
            # An interrupt. The broker will ask for the outcome.
            sending.cancel()
            raise
        return sending.result()

    def _carry_out(self) -> _Answer:
        try:
            return self._execute(), None
        except Exception as error:  # noqa: BLE001 - the user's code; it ends up in the result
            return TransactionState.UNKNOWN, error


def _set(answer: asyncio.Future[_Answer], given: _Answer) -> None:
    if not answer.done():
        answer.set_result(given)
