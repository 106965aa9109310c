"""Login and what a caller may do."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from cometmq.dashboard.bodies.common import Given, SiteQuery, Told


class Login(Given, kw_only=True):
    """Name and password of an account of the cluster."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    password: Annotated[str, Meta(min_length=1, max_length=1024)]
    site: Annotated[str, Meta(max_length=80)] = ""


class Site(Told, kw_only=True):
    """A set of name servers, and the clusters behind them."""

    name: str
    name_servers: list[str]


class Me(Told, kw_only=True):
    """Who the caller is. ``user`` is null if nobody is logged in; ``role`` is viewer, operator, admin, or empty."""

    user: str | None
    role: str
    login_required: bool
    read_only: bool
    csrf_token: str
    """To be sent as ``X-CSRF-Token`` with every change."""
    sites: list[Site]
    site: str
    version: str
    features: list[str]


class SearchQuery(SiteQuery, kw_only=True):
    q: Annotated[str, Meta(min_length=1, max_length=255)]


class Hit(Told, kw_only=True):
    """``type`` is topic, group, broker or client; ``group`` is that of a client."""

    type: str
    name: str
    group: str


class Hits(Told, kw_only=True):
    rows: list[Hit]


class Health(Told, kw_only=True):
    """``ok`` says that the dashboard itself works, whatever the clusters do."""

    ok: bool
    version: str
