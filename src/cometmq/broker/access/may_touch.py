"""What processors ask when a request names a record by its place: may its sender touch the topic that it is in?"""

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


def everybody_may(
    connection: Connection, command: Command, topic: str, actions: frozenset[Action]
) -> None:
    """Of a broker without accounts."""


def topic_of(record: Record) -> str:
    """Where a record belongs: one that waits in a topic of the broker's own belongs to the topic it will come to."""
    if is_brokers_own(record.topic):
        return record.properties.get(REAL_TOPIC, record.topic)
    return record.topic
