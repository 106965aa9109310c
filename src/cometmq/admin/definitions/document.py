"""Definitions as a file: JSON with RocketMQ's names, read strictly, all mistakes told at once. No I/O.

    {"topics": [{"topicName": "orders", "readQueueNums": 8, "writeQueueNums": 8, "perm": 6, "brokers": ["broker-a"]}],
     "groups": [{"groupName": "billing", "retryMaxTimes": 16}],
     "users": [{"username": "shop", "password": "...", "userType": "Normal"}],
     "acls": [{"subject": "User:shop", "policies": [...]}]}

``brokers`` says where a topic or group is; without it, everywhere. A broker's ``topics.json`` and
``subscriptionGroup.json`` are read, too.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from cometmq.base.errors import UsageError
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.names import group_fault, topic_fault
from cometmq.model.topic import QUEUES_MAX, TopicConfig
from cometmq.protocol.bodies.auth import Acl, User

S = TypeVar("S", bound=msgspec.Struct)

MISTAKES_SHOWN: Final = 20
DOCUMENT_BYTES_MAX: Final = 64 * 1024 * 1024

_TABLES: Final = {"topicConfigTable": "topics", "subscriptionGroupTable": "groups"}
"""How RocketMQ's own files name them; there they are objects by name."""
_IGNORED: Final = frozenset({"dataVersion", "exportTime", "forbiddenTable", "cluster"})


class DefinitionsError(UsageError):
    """A file of definitions with mistakes; nothing was changed. ``mistakes`` has all of them, each with its place."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        shown = "".join(f"\n  {mistake}" for mistake in mistakes[:MISTAKES_SHOWN])
        more = len(mistakes) - MISTAKES_SHOWN
        rest = f"\n  and {more} more" if more > 0 else ""
        count = f"{len(mistakes)} mistake{'s' if len(mistakes) > 1 else ''}"
        super().__init__(f"{count} in the definitions; nothing was changed:{shown}{rest}")
        self.mistakes = list(mistakes)


class TopicDefinition(TopicConfig, kw_only=True, rename="camel"):
    """A topic at all brokers, or at those named."""

    brokers: list[str] | None = None


class GroupDefinition(SubscriptionGroupConfig, kw_only=True, rename="camel"):
    """A group at all brokers, or at those named."""

    brokers: list[str] | None = None


class Definitions(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """What an export has and an import takes."""

    topics: list[TopicDefinition] = []
    groups: list[GroupDefinition] = []
    users: list[User] = []
    acls: list[Acl] = []

    def text(self) -> str:
        """As a file: one that ``parse`` reads."""
        plain = msgspec.to_builtins(self)
        return (
            msgspec.json.format(msgspec.json.encode(_without_none(plain)), indent=2).decode() + "\n"
        )

    @classmethod
    def parse(cls, text: str | bytes) -> Definitions:
        """Raises DefinitionsError."""
        return _parse(text.encode() if isinstance(text, str) else text)


def _parse(raw: bytes) -> Definitions:
    if len(raw) > DOCUMENT_BYTES_MAX:
        raise DefinitionsError([f"{len(raw)} bytes, where at most {DOCUMENT_BYTES_MAX} are read"])
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise DefinitionsError([f"expected a JSON text: {error}"]) from None
    if not isinstance(document, dict):
        raise DefinitionsError(
            [f"expected an object with topics, groups, users and acls, got {_kind(document)}"]
        )
    reader = _Reader()
    definitions = Definitions(
        topics=reader.items(document, "topics", TopicDefinition),
        groups=reader.items(document, "groups", GroupDefinition),
        users=reader.items(document, "users", User),
        acls=reader.items(document, "acls", Acl),
    )
    known = [*Definitions.__struct_encode_fields__, *_TABLES]
    reader.check_keys("", document, [*known, *_IGNORED])
    reader.check(definitions)
    if reader.mistakes:
        raise DefinitionsError(reader.mistakes)
    return definitions


class _Reader:
    def __init__(self) -> None:
        self.mistakes: list[str] = []

    def items(self, document: Mapping[str, Any], key: str, kind: type[S]) -> list[S]:
        """The entries that can be read; of the others, their mistakes are noted."""
        found: list[S] = []
        for path, value in self._entries(document, key):
            if not isinstance(value, dict):
                self.mistakes.append(f"{path}: expected an object, got {_kind(value)}")
                continue
            self.check_keys(path, value, kind.__struct_encode_fields__)
            try:
                found.append(msgspec.convert(value, kind))
            except msgspec.ValidationError as error:
                self.mistakes.append(f"{path}: {_placed(error)}")
        return found

    def _entries(self, document: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
        entries: list[tuple[str, Any]] = []
        listed = document.get(key, [])
        if isinstance(listed, list):
            entries += [(f"{key}[{number}]", value) for number, value in enumerate(listed)]
        else:
            self.mistakes.append(f"{key}: expected a list, got {_kind(listed)}")
        for table_key in (name for name, meant in _TABLES.items() if meant == key):
            table = document.get(table_key, {})
            if isinstance(table, dict):
                entries += [(f"{table_key}.{name}", value) for name, value in table.items()]
            else:
                self.mistakes.append(f"{table_key}: expected an object by name, got {_kind(table)}")
        return entries

    def check_keys(self, path: str, value: Mapping[str, Any], known: Sequence[str]) -> None:
        for key in value:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"
                place = f"{path}: " if path else ""
                self.mistakes.append(f"{place}unknown key {key!r}{hint}")

    def check(self, definitions: Definitions) -> None:
        """What no broker would take."""
        for topic in definitions.topics:
            place = f"topic {topic.topic_name!r}"
            self._note(place, topic_fault(topic.topic_name))
            for name, count in (
                ("readQueueNums", topic.read_queue_nums),
                ("writeQueueNums", topic.write_queue_nums),
            ):
                if not 1 <= count <= QUEUES_MAX:
                    self._note(place, f"expected {name} from 1 to {QUEUES_MAX}, got {count}")
            if not 0 <= topic.perm <= 15:
                self._note(place, f"expected a perm from 0 to 15, such as 6, got {topic.perm}")
        for group in definitions.groups:
            self._note(f"group {group.group_name!r}", group_fault(group.group_name))
        for user in definitions.users:
            if not user.username:
                self._note("users", "a user without a username")
        for acl in definitions.acls:
            if not (acl.subject or "").partition(":")[2]:
                self._note("acls", f"expected a subject such as User:alice, got {acl.subject!r}")
        self._check_once("topic", [(one.topic_name, one.brokers) for one in definitions.topics])
        self._check_once("group", [(one.group_name, one.brokers) for one in definitions.groups])
        self._check_once("user", [(one.username, None) for one in definitions.users])
        self._check_once("acl", [(one.subject or "", None) for one in definitions.acls])

    def _check_once(self, kind: str, found: Sequence[tuple[str, list[str] | None]]) -> None:
        """A name may occur again only for other brokers."""
        seen: dict[str, set[str] | None] = {}
        for name, brokers in found:
            before = seen.get(name, set())
            if before is None or (name in seen and brokers is None) or before & set(brokers or ()):
                self._note(f"{kind} {name!r}", "defined twice for the same broker")
            seen[name] = None if brokers is None or before is None else before | set(brokers)

    def _note(self, place: str, fault: str | None) -> None:
        if fault:
            self.mistakes.append(f"{place}: {fault}")


def _placed(error: msgspec.ValidationError) -> str:
    """msgspec tells the place at the end: ``Expected `int`, got `str` - at `$.perm```."""
    text, _, place = str(error).partition(" - at ")
    place = place.strip("`").removeprefix("$").removeprefix(".")
    text = text.replace("`", "")
    return f"{place}: {text}" if place else text


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a switch", type(None): "null"}
    return names.get(type(value), "a number")


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value] if isinstance(value, list) else value
