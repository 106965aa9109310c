"""Attributes of topics: ``+key=value`` sets one, ``-key`` takes one away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused


def _one_of(*values: str) -> Callable[[str], bool]:
    return frozenset(values).__contains__


# Key, which values fit, and whether it may change once the topic exists.
_TOPIC_KEYS: Final[Mapping[str, tuple[Callable[[str], bool], bool]]] = {
    "queue.type": (_one_of("SimpleCQ"), False),
    "cleanup.policy": (_one_of("DELETE"), False),
    "message.type": (
        _one_of("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"),
        True,
    ),
    "reserve.time": (lambda text: text.removeprefix("-").isdecimal(), True),
}


def parse_changes(text: str | None) -> dict[str, str]:
    """``+a=b,-c`` as ``{"+a": "b", "-c": ""}``."""
    changes: dict[str, str] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        key, _, value = part.strip().partition("=")
        if key in changes:
            raise _refused(f"attribute {key!r} is given twice")
        changes[key] = value
    return changes


def changed_attributes(
    current: Mapping[str, str] | None, changes: Mapping[str, str]
) -> dict[str, str] | None:
    """The attributes of a topic after ``changes``; ``current`` is None for a new topic.

    Raises:
        Refused: an unknown key, a value that does not fit, or one that cannot change.
    """
    result = dict(current or {})
    for signed, value in changes.items():
        sign, key = signed[:1], signed[1:]
        if sign not in ("+", "-") or not key:
            raise _refused(f"expected +key=value or -key, got {signed!r}")
        if key not in _TOPIC_KEYS:
            raise _refused(f"unsupported key: {key}")
        fits, is_changeable = _TOPIC_KEYS[key]
        if sign == "+" and not fits(value):
            raise _refused(f"value {value!r} does not fit attribute {key} here")
        if current is not None and not is_changeable and result.get(key) != value:
            raise _refused(f"attribute {key} is fixed when the topic is created")
        if sign == "+":
            result[key] = value
        elif result.pop(key, None) is None:
            raise _refused(f"attribute {key} is not set")
    return result or None


def _refused(text: str) -> Refused:
    return Refused(ResponseCode.SYSTEM_ERROR, text)
