"""A broker's registration and the reply to it: the values that ``route_table`` works with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from cometmq.model.topic import DataVersion, TopicQueues
from cometmq.namesrv.liveness import SILENCE_SECONDS, Line
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

NAME_CHARS_MAX: Final = 512


class Registration(msgspec.Struct, kw_only=True):
    """What a broker says about itself. ``acting_master`` is None from a broker older than RocketMQ 5.

    ``is_signed``: it has proved by an account that it may say so.
    """

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str
    topics: Mapping[str, TopicQueues]
    version: DataVersion
    filter_servers: list[str] | None = None
    acting_master: bool | None = None
    silence_seconds: float = SILENCE_SECONDS
    connection: Line | None = None
    is_signed: bool = False

    @property
    def epoch(self) -> int:
        return self.version.state_version


class MinIdChange(NamedTuple):
    """The lowest broker id of a name has changed; ``notify`` are the addresses to notify."""

    broker_name: str
    min_id: int
    min_address: str
    offline_address: str | None
    ha_address: str | None
    notify: list[str]


class Registered(NamedTuple):
    """The reply to a registration; for a slave, where its master is."""

    master_address: str | None = None
    ha_address: str | None = None
    min_id_change: MinIdChange | None = None
    left_out: Sequence[str] = ()
    """Topics that the broker registered with too many queues."""


def check_names(names: Iterable[str]) -> None:
    """Raise Refused for a name that no broker could use.

    More permissive than the rule for topics that users create: brokers and clusters (whose names contain dots) are
    topics too, and a retry topic is longer than its group.
    """
    for name in names:
        if not name or len(name) > NAME_CHARS_MAX or not name.isprintable():
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"register broker failed: a name must have 1 to {NAME_CHARS_MAX} printable characters,"
                f" not {name[:64]!r}",
            )
