"""What watches sends from beside: message trace, telemetry. Called around every attempt, on the event loop."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cometmq.client.core.send_result import SendResult
from cometmq.client.core.send_retry import SendMode
from cometmq.model.message import Message
from cometmq.model.message_queue import MessageQueue

logger = logging.getLogger("cometmq.client")


@dataclass(slots=True, kw_only=True)
class SendContext:
    """One attempt. ``result`` or ``error`` and ``elapsed_ms`` are there afterwards; both are None for one-way sends."""

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
    """For the hooks themselves: what ``before`` leaves here, ``after`` finds."""


class SendHook(Protocol):
    """Must return at once. What it raises is logged and does not touch the send."""

    def before(self, context: SendContext) -> None: ...

    def after(self, context: SendContext) -> None: ...


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
