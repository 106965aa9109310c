"""What watches consumption from beside: message trace, telemetry."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cometmq.model.message_queue import MessageQueue
from cometmq.model.received_message import ReceivedMessage

logger = logging.getLogger("cometmq.client")


@dataclass(slots=True, kw_only=True)
class ConsumeContext:
    """One call of a listener. What it returned or raised and how long it took are there afterwards."""

    group: str
    queue: MessageQueue
    messages: Sequence[ReceivedMessage]
    is_orderly: bool
    consumed_count: int = 0
    """The first so many are done; the others will be delivered again, or are dead letters."""
    returned: object = None
    error: Exception | None = None
    elapsed_ms: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)
    """For the hooks themselves: what ``before`` leaves here, ``after`` finds."""


class ConsumeHook(Protocol):
    """Must return at once. What it raises is logged and does not touch the consumption.

    Both are called by whoever runs the listener: a task, or a thread when the listener is no coroutine function.
    """

    def before(self, context: ConsumeContext) -> None: ...

    def after(self, context: ConsumeContext) -> None: ...


def run_before(hooks: Sequence[ConsumeHook], context: ConsumeContext) -> None:
    for hook in hooks:
        try:
            hook.before(context)
        except Exception:
            logger.exception("consume hook failed hook=%r step=before", hook)


def run_after(hooks: Sequence[ConsumeHook], context: ConsumeContext) -> None:
    for hook in reversed(hooks):
        try:
            hook.after(context)
        except Exception:
            logger.exception("consume hook failed hook=%r step=after", hook)
