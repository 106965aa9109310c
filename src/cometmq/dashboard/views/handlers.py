"""All handlers, by the names of their routes."""

from __future__ import annotations

from typing import Any, Final

from cometmq.dashboard.views import (
    accounts,
    alerts,
    cluster,
    dead_letters,
    groups,
    messages,
    overview,
    pipelines,
    session,
    topics,
    waiting,
)

HANDLERS: Final[dict[str, Any]] = {
    **session.HANDLERS,
    **overview.HANDLERS,
    **cluster.HANDLERS,
    **topics.HANDLERS,
    **groups.HANDLERS,
    **messages.HANDLERS,
    **dead_letters.HANDLERS,
    **waiting.HANDLERS,
    **pipelines.HANDLERS,
    **alerts.HANDLERS,
    **accounts.HANDLERS,
}
