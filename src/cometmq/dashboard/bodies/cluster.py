"""Brokers, name servers and controllers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from cometmq.dashboard.bodies.common import Given, Name, Seen, Text, Told


class BrokerOfList(Told, kw_only=True):
    """A broker, or one of its slaves: ``id`` 0 is the master's. Figures are null while it does not answer."""

    cluster: str
    name: str
    id: int
    address: str
    is_master: bool
    answers: bool
    silent_since_ms: int | None
    version: str
    put_tps: float | None
    get_tps: float | None
    put_today: int | None
    get_today: int | None
    disk_ratio: float | None
    earliest_message_ms: int | None
    slave_lag_bytes: int | None
    """How far a slave's log is behind its master's; null for a master."""
    in_sync: bool | None
    """Whether it has all that was acknowledged; null if there is no controller that says so."""
    put_trend: list[float]


class NameServerOfList(Told, kw_only=True):
    address: str
    answers: bool
    problem: str


class ControllerOfList(Told, kw_only=True):
    address: str
    answers: bool
    is_leader: bool
    problem: str


class ClusterView(Seen, kw_only=True):
    clusters: list[str]
    brokers: list[BrokerOfList]
    name_servers: list[NameServerOfList]
    controllers: list[ControllerOfList]


class BrokerView(Seen, kw_only=True):
    """One broker: the row of the list, and everything it tells about itself, by RocketMQ's names."""

    broker: BrokerOfList
    runtime: dict[str, str]


class Setting(Told, kw_only=True):
    """``change`` is live, next_start, never, or unknown (a broker of RocketMQ); ``is_default`` null: not known."""

    key: str
    value: str
    change: str
    help: str
    default: str | None
    is_default: bool | None
    choices: list[str]


class Settings(Seen, kw_only=True):
    rows: list[Setting]


class NewSettings(Given, kw_only=True):
    """Values by RocketMQ's keys."""

    values: Annotated[dict[Name, Text], Meta(min_length=1, max_length=50)]


class WritePermission(Given, kw_only=True):
    """Without it, clients send nothing more to the broker, as before a stop."""

    allowed: bool


class Election(Given, kw_only=True):
    """Which replica is to be the master; ``confirm`` repeats the broker's name."""

    broker_id: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    confirm: Name
