"""Who asks."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.dashboard.contract.route import Role
from cometmq.dashboard.door.sessions import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """``session`` is None on loopback without login. ``peer`` is the address that the request came from."""

    user: str
    role: Role
    peer: str
    session: Session | None = None
