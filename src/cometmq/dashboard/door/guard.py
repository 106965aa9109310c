"""What stands before every handler: who asks, whether it may, and whether it comes from our own page."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from cometmq.base.ports import Clock
from cometmq.dashboard.contract.route import Role, Route
from cometmq.dashboard.dashboard_config import ALWAYS, DashboardConfig
from cometmq.dashboard.door.caller import Caller
from cometmq.dashboard.door.limits import Rates
from cometmq.dashboard.door.login import Roles
from cometmq.dashboard.door.sessions import COOKIE, CSRF_HEADER, Session, Sessions
from cometmq.dashboard.problems import Problem

LOCAL_USER: Final = "local"
"""Who asks on loopback without a login."""
BURST_SECONDS: Final = 10.0
_LOCAL_NAMES: Final = frozenset({"localhost", "ip6-localhost"})


class Guard:
    """Owned by the event loop.

    Args:
        has_account: whether the dashboard asks the servers with an account of its own.
    """

    def __init__(self, config: DashboardConfig, clock: Clock, *, has_account: bool) -> None:
        self.is_login_required = config.login == ALWAYS or not config.is_loopback or has_account
        self.roles = Roles.of(config)
        self.sessions = Sessions(
            idle_seconds=config.session_minutes * 60.0, sessions_max=config.sessions_max
        )
        self._config = config
        self._clock = clock
        self._local_token = secrets.token_urlsafe(24)
        per_second = config.requests_per_second
        self._requests = Rates(per_second=per_second, burst=per_second * BURST_SECONDS)
        per_minute = config.logins_per_minute
        self._logins = Rates(per_second=per_minute / 60, burst=per_minute)

    def caller(self, request: Request) -> Caller:
        """Who asks. Raises Problem: the address is not one of ours, or it asks too often."""
        self._check_host(request)
        peer = request.client.host if request.client else ""
        session = self._session(request)
        self._limit(self._requests, session.csrf_token if session else peer)
        if session is not None:
            return Caller(user=session.user, role=session.role, peer=peer, session=session)
        if not self.is_login_required:
            return Caller(user=LOCAL_USER, role=Role.ADMIN, peer=peer)
        return Caller(user="", role=Role.ANYBODY, peer=peer)

    def permit(self, request: Request, caller: Caller, route: Route) -> None:
        """Raises Problem: not logged in, not allowed, or not from our own page."""
        if caller.role < route.role:
            if not caller.user:
                raise Problem(401, "not_logged_in", "log in first", hint="POST /api/v1/session")
            raise Problem(
                403,
                "role",
                f"{route.name} is for the role {route.role.word}; {caller.user} is {caller.role.word}",
                hint="ask an administrator to name the account in operators or admins",
            )
        if not route.is_change:
            return
        self._check_origin(request)
        if route.role is not Role.ANYBODY:
            self._check_token(request, caller)
            if self._config.is_read_only and route.name not in _READS_ONLY:
                raise Problem(403, "read_only", "this dashboard is read-only (readOnly=true)")

    def limit_login(self, peer: str, name: str) -> None:
        """Raises Problem: too many tries from an address, or for an account."""
        self._limit(self._logins, f"peer {peer}")
        self._limit(self._logins, f"name {name}")

    def csrf_token(self, caller: Caller) -> str:
        if caller.session is not None:
            return caller.session.csrf_token
        return self._local_token if caller.user else ""

    def key_of(self, request: Request) -> str:
        """The session that a request names, valid or not."""
        return request.cookies.get(COOKIE, "")

    def _session(self, request: Request) -> Session | None:
        key = self.key_of(request)
        return self.sessions.find(key, self._clock.monotonic()) if key else None

    def _limit(self, rates: Rates, key: str) -> None:
        wait = rates.take(key, self._clock.monotonic())
        if wait:
            raise Problem(
                429,
                "too_often",
                f"too many requests; try again in {wait:.0f} s",
                retry_after=int(wait) + 1,
            )

    def _check_host(self, request: Request) -> None:
        """Without login, a page of a stranger must not reach us by a name of its own that leads to loopback."""
        if self.is_login_required:
            return
        host = _host_of(request.headers.get("host", ""))
        if host in _LOCAL_NAMES or _is_loopback(host):
            return
        raise Problem(
            403,
            "foreign_host",
            f"without login, only 127.0.0.1, [::1] and localhost are answered, not {host[:100]!r}",
            hint="use the address that the dashboard printed, or require a login (loginRequired=always)",
        )

    def _check_origin(self, request: Request) -> None:
        """Browsers say which page a change comes from."""
        site = request.headers.get("sec-fetch-site")
        if site is not None and site not in ("same-origin", "none"):
            raise Problem(
                403, "foreign_page", "changes are taken from the dashboard's own page only"
            )
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
            raise Problem(
                403, "foreign_page", f"changes are not taken from pages of {origin[:100]!r}"
            )

    def _check_token(self, request: Request, caller: Caller) -> None:
        given = request.headers.get(CSRF_HEADER, "")
        if not hmac.compare_digest(given.encode(), self.csrf_token(caller).encode()):
            raise Problem(
                403,
                "csrf",
                "the header X-CSRF-Token is missing or not the one of this login",
                hint="GET /api/v1/me tells it as csrf_token",
            )


_READS_ONLY: Final = frozenset({"preview_reset"})
"""Routes that take a body and change nothing."""


def _host_of(text: str) -> str:
    """A Host header without its port; empty if it cannot be read."""
    try:
        return urlsplit(f"//{text}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
