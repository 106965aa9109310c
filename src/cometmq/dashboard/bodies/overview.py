"""The first page, and the charts of all others."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from cometmq.dashboard.bodies.common import Note, Seen, SiteQuery, Told


class Totals(Told, kw_only=True):
    brokers: int
    brokers_silent: int
    replicas: int
    replicas_behind: int
    """Replicas that do not answer, are not in sync, or lack 64 MiB of their master's log."""
    topics: int
    groups: int
    groups_lagging: int
    lag: int
    dead_letters: int
    put_tps: float
    get_tps: float
    put_today: int
    get_today: int
    disk_ratio: float
    """Of the fullest broker, 0 to 1."""


class LaggingGroup(Told, kw_only=True):
    name: str
    lag: int
    lag_ms: int | None
    members: int | None
    trend: list[float]


class Overview(Seen, kw_only=True):
    """``health`` is good, warning or bad: the worst of ``problems``, which are sorted, worst first."""

    health: str
    problems: list[Note]
    totals: Totals
    lagging: list[LaggingGroup]
    """The ten groups that are furthest behind."""
    sampling_ms: int
    """Between two rounds of questions to the servers."""


class HistoryQuery(SiteQuery, kw_only=True):
    """``series`` is a list, separated by commas, of at most 20 names as ``HistorySeries`` explains them."""

    series: Annotated[str, Meta(min_length=1, max_length=4096)]
    minutes: Annotated[int, Meta(ge=1, le=2880)] = 180
    points: Annotated[int, Meta(ge=2, le=1000)] = 240


class HistorySeries(Told, kw_only=True):
    """A series of the last hours, as [ms, value] pairs, oldest first.

    ``put_tps``, ``get_tps``, ``lag``, ``dead_letters``, ``disk_ratio`` are those of the site;
    ``broker:NAME:put_tps`` (or get_tps, disk_ratio, slave_lag) of a broker; ``group:NAME:lag`` (or lag_ms, tps) of a
    group; ``topic:NAME:tps`` of a topic that somebody consumes.
    """

    series: str
    points: list[tuple[int, float]]


class History(Told, kw_only=True):
    rows: list[HistorySeries]


class EventsQuery(SiteQuery, kw_only=True):
    """With ``tail_topic`` the stream has that topic's new messages, too, as events named ``message``."""

    tail_topic: Annotated[str, Meta(max_length=255)] = ""
    tail_filter: Annotated[str, Meta(max_length=1024, description="tags, as a || b, or SQL92")] = ""
    tail_filter_type: Annotated[str, Meta(pattern="^(TAG|SQL92)$")] = "TAG"
    tail_property: Annotated[str, Meta(max_length=1024, description="name=value")] = ""
    tail_text: Annotated[str, Meta(max_length=1024, description="a part of the body")] = ""
