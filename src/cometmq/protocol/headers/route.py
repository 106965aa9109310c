"""Asking a name server where a topic is: 105."""

from __future__ import annotations

from cometmq.protocol.fields import Header


class GetRouteInfoHeader(Header):
    """Request 105. A missing topic gets the same refusal as an unknown one."""

    topic: str | None = None
    accept_standard_json_only: bool | None = None
