"""Hooks around consumption: message trace, telemetry."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.received_message import ReceivedMessage

logger = logging.getLogger("cometmq.client")


@dataclass(slots=True, kw_only=True)
class ConsumeContext:
    """One listener call. Its result or exception and its duration are set afterwards."""

    group: str
    queue: MessageQueue
    messages: Sequence[ReceivedMessage]
    is_orderly: bool
    consumed_count: int = 0
    """How many of the first messages are done; the others will be delivered again, or are dead letters."""
    returned: object = None
    error: Exception | None = None
    elapsed_ms: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)
    """For the hooks themselves: ``before`` may leave values here for ``after``."""


class ConsumeHook(Protocol):
    """Must return at once. Exceptions are logged and do not affect the consumption.

    Both are called where the listener runs: in a task, or in a thread if the listener is not a coroutine function.
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
