"""Who is logged in: a random name in a cookie, and what belongs to it in memory. A restart ends all of them."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from cometmq.admin.admin import Admin
from cometmq.base.errors import CometError
from cometmq.dashboard.contract.route import Role

log = logging.getLogger("cometmq.dashboard")

COOKIE: Final = "cometmq_session"
CSRF_HEADER: Final = "x-csrf-token"
LIFE_SECONDS_MAX: Final = 12 * 3600.0
"""However busy it is."""


@dataclass(slots=True, kw_only=True)
class Session:
    """``admins`` asks with the account of the person, by site; empty: the dashboard's own account is used."""

    user: str
    role: Role
    site: str
    csrf_token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    admins: dict[str, Admin] = field(default_factory=dict)
    began: float = 0.0
    used: float = 0.0


class Sessions:
    """Owned by the event loop."""

    def __init__(self, *, idle_seconds: float, sessions_max: int) -> None:
        self._idle_seconds = idle_seconds
        self._sessions_max = sessions_max
        self._by_key: OrderedDict[str, Session] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._by_key)

    def begin(self, session: Session, now: float) -> str:
        """Returns the value of the cookie."""
        self._end_old(now)
        key = secrets.token_urlsafe(32)
        session.began = session.used = now
        self._by_key[key] = session
        while len(self._by_key) > self._sessions_max:
            _, oldest = self._by_key.popitem(last=False)
            self._close(oldest)
        return key

    def find(self, key: str, now: float) -> Session | None:
        session = self._by_key.get(key)
        if session is None:
            return None
        if self._is_over(session, now):
            self.end(key)
            return None
        session.used = now
        self._by_key.move_to_end(key)
        return session

    def end(self, key: str) -> None:
        session = self._by_key.pop(key, None)
        if session is not None:
            self._close(session)

    def end_session(self, session: Session) -> None:
        for key, one in list(self._by_key.items()):
            if one is session:
                self.end(key)

    async def end_all(self) -> None:
        for key in list(self._by_key):
            self.end(key)
        await asyncio.gather(*self._closing)

    def _end_old(self, now: float) -> None:
        for key in [key for key, one in self._by_key.items() if self._is_over(one, now)]:
            self.end(key)

    def _is_over(self, session: Session, now: float) -> bool:
        return now - session.used > self._idle_seconds or now - session.began > LIFE_SECONDS_MAX

    def _close(self, session: Session) -> None:
        for admin in session.admins.values():
            task = asyncio.create_task(_close(admin))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


async def _close(admin: Admin) -> None:
    try:
        await admin.close()
    except CometError as error:
        log.warning("connections of a login not closed reason=%s", error)
