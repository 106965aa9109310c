"""Sends messages that consumers see only if a local transaction succeeds.

    half message sent ──> execute() ──COMMIT──────> delivered
                             │  └────ROLLBACK─────> dropped
                          UNKNOWN, or no outcome at all
                             └──> the broker asks a producer of the group (39) ──> check() ──> as above, or asked again

The outcome is sent one-way (37): if it is lost, the broker asks.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import msgspec

from cometmq.base.clock import SystemClock
from cometmq.base.errors import CometError, UsageError
from cometmq.base.ports import Clock
from cometmq.client.aio.send.producer import Producer
from cometmq.client.aio.send.running_producer import RunningProducer
from cometmq.client.aio.trace.send_hooks import EndHook, TransactionEnd, run_end
from cometmq.client.aio.trace.trace_hooks import TransactionTrace
from cometmq.client.core.send.send_result import SendResult, SendStatus
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.flags import SysFlag
from cometmq.model.messages.message import Message
from cometmq.model.messages.message_id import parse_offset_id
from cometmq.model.messages.properties import PRODUCER_GROUP, TRANSACTION_PREPARED
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.messages.record import decode_record
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers.transaction import CheckTransactionStateHeader, EndTransactionHeader

logger = logging.getLogger("cometmq.client")


class TransactionState(IntEnum):
    """The outcome of a local transaction; the values are those on the wire."""

    COMMIT = int(SysFlag.TRANSACTION_COMMIT)
    ROLLBACK = int(SysFlag.TRANSACTION_ROLLBACK)
    UNKNOWN = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionResult:
    """``sent`` is the result of the half message; ``error`` is what ``execute`` raised, which counts as UNKNOWN."""

    sent: SendResult
    state: TransactionState
    error: Exception | None = None


Execute = Callable[[Message, Any], TransactionState | Awaitable[TransactionState]]
"""Runs the local transaction of a message; the second argument is the one passed to ``send_transaction``."""

Check = Callable[[ReceivedMessage], TransactionState | Awaitable[TransactionState]]
"""Determines the outcome of a message's local transaction, which another process may have run."""


class TransactionProducer(Producer):
    """A producer whose messages take part in a local transaction.

    Args:
        execute, check: plain functions run in a thread, so they may block; coroutine functions run on the event loop.
            An exception counts as UNKNOWN, and the broker asks later.
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
        super().__init__(group, name_servers=name_servers, config=config, clock=clock)
        self._execute = execute
        self._check = check
        self._checks: asyncio.Queue[tuple[str, Command]] = asyncio.Queue(
            self._config.check_queue_max
        )
        self._checkers: list[asyncio.Task[None]] = []
        self._end_hooks: list[EndHook] = []
        if self._trace is not None:
            wall_ms = (clock or SystemClock()).wall_ms
            self._end_hooks.append(TransactionTrace(self._trace.append, wall_ms))

    async def start(self) -> None:
        """Connect, like a producer. From then on it answers for its whole group."""
        await super().start()
        if not self._checkers:
            loop = asyncio.get_running_loop()
            self._checkers = [
                loop.create_task(self._answer_checks(), name=f"checks-{self.group}-{number}")
                for number in range(self._config.check_concurrency)
            ]

    async def close(self) -> None:
        """Disconnect, like a producer. Waiting checks are dropped: the broker asks another member of the group."""
        checkers, self._checkers = self._checkers, []
        for task in checkers:
            task.cancel()
        if checkers:
            await asyncio.wait(checkers)
        await super().close()

    async def send_transaction(
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
        running = self._run()
        if message.is_delayed:
            raise UsageError(
                "a message of a transaction cannot have a delay; leave one of them out"
            )
        half = msgspec.structs.replace(
            message,
            internal_properties={
                **message.internal_properties,
                TRANSACTION_PREPARED: "true",
                PRODUCER_GROUP: running.role.group,
            },
        )
        sent = await self.send(half, timeout=timeout)
        state, error = TransactionState.ROLLBACK, None
        if sent.status is SendStatus.SEND_OK:
            state, error = await _outcome(self._execute, message, argument)
        if error is not None:
            logger.error(
                "local transaction failed message=%s; the broker will ask",
                sent.message_id,
                exc_info=error,
            )
        await self._end(running, message, sent, state)
        return TransactionResult(sent=sent, state=state, error=error)

    def add_end_hook(self, hook: EndHook) -> None:
        """Call ``hook`` for every outcome that is sent from now on."""
        self._end_hooks.append(hook)

    async def _end(
        self, running: RunningProducer, message: Message, sent: SendResult, state: TransactionState
    ) -> None:
        header = EndTransactionHeader(
            producer_group=running.role.group,
            tran_state_table_offset=sent.queue_offset,
            commit_log_offset=parse_offset_id(sent.offset_id).physical_offset,
            commit_or_rollback=int(state),
            msg_id=sent.message_id,
            transaction_id=sent.transaction_id,
            broker_name=sent.queue.broker_name,
        )
        try:
            address = await running.instance.find_master(sent.queue)
            await self._send_end(running, address, header, message)
        except CometError as error:
            # The half message is safe; a broker without an outcome asks for it.
            logger.warning(
                "outcome not sent message=%s state=%s reason=%s", sent.message_id, state.name, error
            )

    async def _send_end(
        self,
        running: RunningProducer,
        address: str,
        header: EndTransactionHeader,
        message: Message | ReceivedMessage,
    ) -> None:
        command = Command(RequestCode.END_TRANSACTION, encode_fields(header))
        await running.instance.oneway(address, command)
        if self._end_hooks:
            end = TransactionEnd(
                group=self.group,
                message=message,
                message_id=header.msg_id or "",
                transaction_id=header.transaction_id,
                address=address,
                state=TransactionState(header.commit_or_rollback).name,
                is_from_check=header.from_transaction_check,
            )
            run_end(self._end_hooks, end)

    async def _check_transaction(self, address: str, request: Command) -> None:
        try:
            self._checks.put_nowait((address, request))
        except asyncio.QueueFull:
            logger.warning(
                "transaction check dropped group=%s broker=%s waiting=%d; the broker asks again",
                self.group,
                address,
                self._checks.qsize(),
            )

    async def _answer_checks(self) -> None:
        while True:
            address, request = await self._checks.get()
            try:
                await self._answer_check(address, request)
            except CometError as error:
                logger.warning("transaction check not answered broker=%s reason=%s", address, error)
            except Exception:
                logger.exception("transaction check failed broker=%s", address)

    async def _answer_check(self, address: str, request: Command) -> None:
        running = self._run()
        asked = decode_fields(CheckTransactionStateHeader, request.ext)
        message = ReceivedMessage.from_record(decode_record(request.body), asked.broker_name or "")
        message.topic = running.instance.unwrap_topic(message.topic)
        state, error = await _outcome(self._check, message)
        if error is not None:
            logger.error("transaction check raised message=%s", message.message_id, exc_info=error)
        header = EndTransactionHeader(
            producer_group=running.role.group,
            tran_state_table_offset=asked.tran_state_table_offset,
            commit_log_offset=asked.commit_log_offset,
            commit_or_rollback=int(state),
            from_transaction_check=True,
            msg_id=message.message_id,
            transaction_id=asked.transaction_id,
            broker_name=asked.broker_name,
        )
        await self._send_end(running, address, header, message)


async def _outcome(
    function: Callable[..., Any], *arguments: Any
) -> tuple[TransactionState, Exception | None]:
    """The result of a user's function; UNKNOWN with the error if it raises or returns something else."""
    try:
        if inspect.iscoroutinefunction(function):
            state = await function(*arguments)
        else:
            state = await asyncio.to_thread(function, *arguments)
            if inspect.isawaitable(state):
                state = await state
        if not isinstance(state, TransactionState):
            raise UsageError(
                f"{function!r} must return TransactionState.COMMIT, ROLLBACK or UNKNOWN, not {state!r}"
            )
    except Exception as error:  # noqa: BLE001 - the user's code may raise anything; the caller logs it
        return TransactionState.UNKNOWN, error
    return state, None
