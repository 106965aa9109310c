"""What a request needs: one of some actions, on a resource. The names are those of RocketMQ 5."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from cometmq.model.names import RETRY_PREFIX, holds_messages_of_others


class Kind(StrEnum):
    """Of resources."""

    CLUSTER = "Cluster"
    NAMESPACE = "Namespace"
    TOPIC = "Topic"
    GROUP = "Group"


class Action(StrEnum):
    ALL = "All"
    ANY = "Any"
    PUB = "Pub"
    SUB = "Sub"
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    GET = "Get"
    LIST = "List"


class Need(NamedTuple):
    """One of ``actions`` is enough. The name is whatever the request says, and may be empty."""

    kind: Kind
    name: str
    actions: frozenset[Action]

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


PUB: Final = frozenset({Action.PUB})
SUB: Final = frozenset({Action.SUB})
CREATE: Final = frozenset({Action.CREATE})
UPDATE: Final = frozenset({Action.UPDATE})
DELETE: Final = frozenset({Action.DELETE})
GET: Final = frozenset({Action.GET})
SUB_GET: Final = frozenset({Action.SUB, Action.GET})
SUB_UPDATE: Final = frozenset({Action.SUB, Action.UPDATE})
PUB_SUB_GET: Final = frozenset({Action.PUB, Action.SUB, Action.GET})
_READS: Final = SUB_GET


def topic_need(topic: str, actions: frozenset[Action]) -> Need:
    """A retry topic counts as its group: it holds what members of the group could not process yet.

    That of a pop's messages ends with ``+`` and the topic that they came from.
    """
    if topic.startswith(RETRY_PREFIX):
        group = topic.removeprefix(RETRY_PREFIX).partition("+")[0]
        # To publish there is what a consumer of the group does.
        as_group = actions - PUB | SUB if Action.PUB in actions else actions
        return Need(Kind.GROUP, group, as_group)
    return Need(Kind.TOPIC, topic, actions)


def guarded_need(need: Need, cluster: str) -> Need:
    """A right on the cluster, if the topic holds messages of all others: a right on topics would be one on those that
    are denied, too."""
    if need.kind is Kind.TOPIC and holds_messages_of_others(need.name):
        return Need(Kind.CLUSTER, cluster, GET if need.actions & _READS else UPDATE)
    return need


def group_need(group: str, actions: frozenset[Action]) -> Need:
    return Need(Kind.GROUP, group, actions)
