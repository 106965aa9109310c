"""What processors ask about accounts beyond a request's declared needs.

A request may name a record by its place: may its sender touch the topic that it is in? And what the broker sends of its
own accord has a message in it: may whoever is at the other end have it?
"""

from __future__ import annotations

from collections.abc import Callable

from cometmq.access.rules.need import Action
from cometmq.model.messages.properties import REAL_TOPIC
from cometmq.model.messages.record import Record
from cometmq.model.names import is_brokers_own
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection

MayTouch = Callable[[Connection, Command, str, frozenset[Action]], None]
"""Takes the topic and the actions of which one is needed. Raises AccessRefused."""

MayPublish = Callable[[Connection, str], bool]
"""Whether the account behind a connection may publish to a topic."""

AccountOf = Callable[[Connection], str]
"""The account behind a connection; "" if nobody is known."""


def everybody_may(
    connection: Connection, command: Command, topic: str, actions: frozenset[Action]
) -> None:
    """Of a broker without accounts."""


def everybody_may_publish(connection: Connection, topic: str) -> bool:
    """Of a broker without accounts."""
    return True


def nobody_known(connection: Connection) -> str:
    """Of a broker without accounts."""
    return ""


def topic_of(record: Record) -> str:
    """Where a record belongs: one that waits in a topic of the broker's own belongs to the topic it will come to."""
    if is_brokers_own(record.topic):
        return record.properties.get(REAL_TOPIC, record.topic)
    return record.topic
