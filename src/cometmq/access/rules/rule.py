"""A rule: where in a request the names of its resources are, and which actions on them it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from cometmq.access.rules.need import Action, Kind, Need, group_need, topic_need
from cometmq.protocol.command import Command


class Demand(Enum):
    """What a rule asks for, beside a valid account."""

    RESOURCES = "resources"
    NOTHING = "nothing"
    SUPER = "super"
    """The account must be an administrator's."""
    NEVER = "never"
    """No server takes the request, whoever sends it."""


class Field(NamedTuple):
    """A field of the header that names a topic or a group.

    If it is absent, its name counts as empty, unless the request means something else then (``is_optional``).
    """

    kind: Kind
    key: str
    actions: frozenset[Action]
    is_optional: bool = False

    def __str__(self) -> str:
        given = " if given" if self.is_optional else ""
        return f"{self.kind.lower()} `{self.key}`{given}: {_words(self.actions)}"


class Names(NamedTuple):
    """Reads the needs from where a ``Field`` cannot: a body, or a list. Raises RemoteProtocolError.

    ``keys`` are the fields of the header that it reads; None if it reads more.
    """

    read: Callable[[Command], Sequence[Need]]
    text: str
    keys: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """
    Attributes:
        cluster: actions on the cluster, if any.
        late: what the processor itself checks, when it knows which record is meant; for the page.
    """

    demand: Demand = Demand.RESOURCES
    fields: tuple[Field, ...] = ()
    names: Names | None = None
    cluster: frozenset[Action] | None = None
    late: str = ""

    @property
    def keys(self) -> tuple[str, ...] | None:
        """The fields that the needs depend on; None if they depend on more, and no decision can be kept."""
        keys = tuple(field.key for field in self.fields)
        if self.names is None:
            return keys
        return None if self.names.keys is None else keys + self.names.keys

    def needs(self, command: Command, cluster: str) -> list[Need]:
        """Without repetitions. Raises RemoteProtocolError if the request cannot be read."""
        ext = command.ext or {}
        needs: list[Need] = []
        if self.cluster is not None:
            needs.append(Need(Kind.CLUSTER, cluster, self.cluster))
        for field in self.fields:
            name = ext.get(field.key, "")
            if name or not field.is_optional:
                make = topic_need if field.kind is Kind.TOPIC else group_need
                needs.append(make(name, field.actions))
        if self.names is not None:
            needs += self.names.read(command)
        return list(dict.fromkeys(needs))

    def __str__(self) -> str:
        """For people; see ``docs/reference/permissions.md``."""
        if self.demand is Demand.NEVER:
            return "refused: servers send it to clients"
        if self.demand is Demand.SUPER:
            return "a super user (ACL 1: an admin)"
        parts = [str(field) for field in self.fields]
        if self.cluster is not None:
            parts.append(f"cluster: {_words(self.cluster)}")
        if self.names is not None:
            parts.append(self.names.text)
        if self.late:
            parts.append(self.late)
        return "; ".join(parts) or "a valid account"


def topic(key: str, actions: frozenset[Action], *, is_optional: bool = False) -> Field:
    return Field(Kind.TOPIC, key, actions, is_optional)


def group(key: str, actions: frozenset[Action], *, is_optional: bool = False) -> Field:
    return Field(Kind.GROUP, key, actions, is_optional)


def fields(*given: Field, late: str = "") -> Rule:
    return Rule(fields=given, late=late)


def named(
    read: Callable[[Command], Sequence[Need]], text: str, keys: tuple[str, ...] | None = None
) -> Rule:
    return Rule(names=Names(read, text, keys))


def cluster(actions: frozenset[Action]) -> Rule:
    return Rule(cluster=actions)


ACCOUNT = Rule(demand=Demand.NOTHING)
SUPER = Rule(demand=Demand.SUPER)
NEVER = Rule(demand=Demand.NEVER)


def _words(actions: frozenset[Action]) -> str:
    return " or ".join(sorted(action.value for action in actions))
