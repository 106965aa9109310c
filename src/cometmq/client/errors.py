"""What a client tells its user beyond network failures and broker replies."""

from __future__ import annotations

from cometmq.base.errors import CometError


class NoRoute(CometError):
    """No name server knows a broker with a usable queue for the topic."""

    retryable = True
    route_is_stale = True


class NoNameServer(CometError):
    """None of the name servers answered."""

    retryable = True
