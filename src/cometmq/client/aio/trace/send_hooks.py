"""Hooks around sends: message trace, telemetry. Called on the event loop.

Send hooks are called around every attempt, end hooks after the outcome of a transaction was sent to its broker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cometmq.client.core.send.send_result import SendResult
from cometmq.client.core.send.send_retry import SendMode
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.model.messages.received_message import ReceivedMessage

logger = logging.getLogger("cometmq.client")


@dataclass(slots=True, kw_only=True)
class SendContext:
    """One attempt. ``result`` or ``error`` and ``elapsed_ms`` are set afterwards; both are None for one-way sends."""

    group: str
    messages: Sequence[Message]
    message_id: str
    queue: MessageQueue
    address: str
    mode: SendMode
    result: SendResult | None = None
    error: BaseException | None = None
    elapsed_ms: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)
    """For the hooks themselves: ``before`` may leave values here for ``after``."""


class SendHook(Protocol):
    """Must return at once. Exceptions are logged and do not affect the send."""

    def before(self, context: SendContext) -> None: ...

    def after(self, context: SendContext) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionEnd:
    """An outcome that was sent. ``state`` is COMMIT, ROLLBACK or UNKNOWN."""

    group: str
    message: Message | ReceivedMessage
    message_id: str
    transaction_id: str | None
    address: str
    state: str
    is_from_check: bool


EndHook = Callable[[TransactionEnd], None]


def run_end(hooks: Sequence[EndHook], end: TransactionEnd) -> None:
    for hook in hooks:
        try:
            hook(end)
        except Exception:
            logger.exception("transaction hook failed hook=%r", hook)


def run_before(hooks: Sequence[SendHook], context: SendContext) -> None:
    for hook in hooks:
        try:
            hook.before(context)
        except Exception:
            logger.exception("send hook failed hook=%r step=before", hook)


def run_after(hooks: Sequence[SendHook], context: SendContext) -> None:
    for hook in reversed(hooks):
        try:
            hook.after(context)
        except Exception:
            logger.exception("send hook failed hook=%r step=after", hook)
