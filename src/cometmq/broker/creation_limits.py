"""How many topics and groups may come into being by use: in all, by one connection, and in a time.

Each costs memory, files and a line in tables that are written whole. Nobody has to be known to make them, so without
limits one peer makes tens of thousands in a minute. What an operator creates (``mqadmin updateTopic``) is not limited.
"""

from __future__ import annotations

import logging
from typing import Final
from weakref import WeakKeyDictionary

from cometmq.base.ports import Clock
from cometmq.broker.config.config_slices import TopicsConfig
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection

log = logging.getLogger("cometmq.broker")

BURST_SECONDS: Final = 10
"""So many seconds' worth may come at once: an application that starts creates all it needs."""


class CreationLimits:
    """One for topics and groups together. Owned by the event loop."""

    def __init__(self, config: TopicsConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._by_connection: WeakKeyDictionary[Connection, int] = WeakKeyDictionary()
        self._tokens = float(BURST_SECONDS * config.creations_per_second_max)
        self._at = clock.monotonic()

    def apply(self, config: TopicsConfig) -> None:
        """Settings changed."""
        self._config = config

    def take_topic(self, topic: str, connection: Connection, known_count: int) -> None:
        """A send wants to create a topic. Raises Refused."""
        config = self._config
        if known_count >= config.topics_max:
            self._refuse(
                ResponseCode.TOPIC_NOT_EXIST,
                f"topic[{topic}] is not created: the broker has {known_count} topics, no more than"
                f" {config.topics_max} come into being by sends (autoCreateTopicsMax);"
                " create it with mqadmin updateTopic",
                connection,
                "autoCreateTopicsMax",
            )
        self._take(f"topic[{topic}]", ResponseCode.TOPIC_NOT_EXIST, "updateTopic", connection)

    def take_group(self, group: str, connection: Connection, known_count: int) -> None:
        """The first use of a group wants to create it. Raises Refused."""
        config = self._config
        if known_count >= config.groups_max:
            self._refuse(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                f"subscription group[{group}] is not created: the broker has {known_count} groups, no more than"
                f" {config.groups_max} come into being by use (autoCreateGroupsMax);"
                " create it with mqadmin updateSubGroup",
                connection,
                "autoCreateGroupsMax",
            )
        self._take(
            f"subscription group[{group}]",
            ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            "updateSubGroup",
            connection,
        )

    def _take(self, what: str, code: ResponseCode, command: str, connection: Connection) -> None:
        config = self._config
        created = self._by_connection.get(connection, 0)
        if created >= config.creations_per_connection_max:
            self._refuse(
                code,
                f"{what} is not created: this connection has created {created} topics and groups, the most"
                f" that one may (autoCreatePerConnectionMax); create it with mqadmin {command}",
                connection,
                "autoCreatePerConnectionMax",
            )
        now = self._clock.monotonic()
        per_second = config.creations_per_second_max
        self._tokens = min(BURST_SECONDS * per_second, self._tokens + (now - self._at) * per_second)
        self._at = now
        if self._tokens < 1:
            self._refuse(
                ResponseCode.SYSTEM_BUSY,
                f"{what} is not created: more than {per_second} topics and groups a second come into being by use"
                f" (autoCreatePerSecondMax); try again later, or create it with mqadmin {command}",
                connection,
                "autoCreatePerSecondMax",
            )
        self._tokens -= 1
        self._by_connection[connection] = created + 1

    def _refuse(self, code: ResponseCode, remark: str, connection: Connection, bound: str) -> None:
        log.warning("creation refused peer=%s reason=%s", connection.peer, remark)
        raise Refused(code, remark, bound=bound)
