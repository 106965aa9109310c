"""One request of a caller, checked and decoded, as handlers get it, and what they may answer besides JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cometmq.admin.admin import Admin
from cometmq.dashboard.desk import Desk
from cometmq.dashboard.door.caller import Caller
from cometmq.dashboard.problems import bad_request
from cometmq.dashboard.watch.site import Site

Q = TypeVar("Q", covariant=True)
B = TypeVar("B", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[Q, B]):
    """``names`` are the parts of the path in braces; ``admin`` asks the servers with the caller's own account."""

    desk: Desk
    caller: Caller
    site: Site
    admin: Admin
    names: Mapping[str, str]
    query: Q
    body: B

    def confirmed(self, given: str, name: str) -> None:
        """Raises Problem unless the caller repeated the name of what it destroys."""
        if given != name:
            raise bad_request(
                f"to confirm, repeat the name {name!r}; got {given!r}", field="confirm"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An answer that is sent as it is made."""

    parts: AsyncIterator[bytes]
    media_type: str
    file_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    content: bytes
    media_type: str
    file_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WithCookie:
    """An answer that begins a session, or ends it (an empty ``key``)."""

    answer: Any
    key: str
