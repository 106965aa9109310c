"""What the broker reads out of a sent property text, and how it changes the text before it is stored.

Done by searching, not by parsing and rebuilding: a send spends about a microsecond here. Names are found only where
a pair starts, and the last of a repeated name counts, exactly as in ``model.properties``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from cometmq.model.java_hash import java_hash
from cometmq.model.properties import (
    CLUSTER,
    DELAY,
    KEYS,
    NAME_SEPARATOR,
    PAIR_SEPARATOR,
    TAGS,
    TEXT_BYTES_MAX,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TRANSACTION_PREPARED,
    UNIQ_KEY,
    WAIT,
    property_of,
    split_keys,
)
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

_TIMERS: Final = (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS)
# Before WAIT is taken out and CLUSTER put in; bounds the work on a text that will be refused anyway.
_SENT_CHARACTERS_MAX: Final = TEXT_BYTES_MAX + 1024
_CACHED_TAG_LENGTH_MAX: Final = 128
_cached_hash = lru_cache(maxsize=8192)(java_hash)


class SendProperties(NamedTuple):
    stored: bytes
    """The text to store, UTF-8."""
    tags_code: int
    keys: list[str]
    """For the index: the unique key, then the user's keys."""
    is_wait: bool
    """Whether the sender waits for the disk and the replicas."""


def cluster_pair(cluster: str) -> str:
    """What is added to every stored text; made once per broker."""
    return f"{CLUSTER}{NAME_SEPARATOR}{cluster}"


def prepare(text: str, cluster: str) -> SendProperties:
    """The stored form of a sent text: without WAIT, with the cluster's name.

    Args:
        cluster: from ``cluster_pair``.

    Raises:
        Refused: the text is too long or no text, or asks for what this broker cannot do.
    """
    if len(text) > _SENT_CHARACTERS_MAX:
        raise _too_long(len(text))
    is_wait = True
    if "WAIT\x01" in text:
        text, value = _without(text, WAIT)
        is_wait = value != "false"
    return _finish(text, cluster, is_wait)


def prepare_element(text: str, cluster: str) -> SendProperties:
    """The same for one message of a batch, which keeps its WAIT; whether to wait is said by the batch."""
    return _finish(text, cluster, True)


def is_wait(text: str) -> bool:
    """Whether a batch's own text says to wait."""
    return "WAIT\x01" not in text or property_of(text, WAIT) != "false"


def _finish(text: str, cluster: str, is_wait: bool) -> SendProperties:
    # Each of these would change when or whether the message is delivered.
    if "DELAY\x01" in text or "TRAN_MSG\x01" in text or "TIMER_DEL" in text:
        refuse_special(text)
    tag = _value(text, TAGS, "TAGS\x01")
    unique_key = _value(text, UNIQ_KEY, "UNIQ_KEY\x01")
    user_keys = _value(text, KEYS, "KEYS\x01")
    keys = [] if unique_key is None else [unique_key]
    if user_keys is not None:
        keys += split_keys(user_keys)
    if not text or text[-1] == PAIR_SEPARATOR:
        text += cluster
    else:
        text = f"{text}{PAIR_SEPARATOR}{cluster}"
    try:
        stored = text.encode()
    except UnicodeEncodeError as error:
        raise Refused(ResponseCode.MESSAGE_ILLEGAL, f"properties are no text: {error}") from None
    if len(stored) > TEXT_BYTES_MAX:
        raise _too_long(len(stored))
    return SendProperties(stored, 0 if tag is None else _tag_hash(tag), keys, is_wait)


def _tag_hash(tag: str) -> int:
    return _cached_hash(tag) if len(tag) <= _CACHED_TAG_LENGTH_MAX else java_hash(tag)


def _too_long(length: int) -> Refused:
    return Refused(
        ResponseCode.MESSAGE_ILLEGAL,
        f"the message properties take {length} bytes, max {TEXT_BYTES_MAX}",
    )


def refuse_special(text: str) -> None:
    """Raises Refused for messages that must not be delivered at once, which this broker has no service for.

    Storing them as plain messages would deliver them too early, or deliver what was to be rolled back.
    """
    delay = property_of(text, DELAY)
    if delay is not None and not _is_zero_or_less(delay):
        raise _unsupported(f"delayed messages ({DELAY}={delay})")
    if (property_of(text, TRANSACTION_PREPARED) or "").lower() == "true":
        raise _unsupported("transactional messages")
    for name in _TIMERS:
        if (value := property_of(text, name)) is not None:
            raise _unsupported(f"timed messages ({name}={value})")


def _unsupported(what: str) -> Refused:
    return Refused(
        ResponseCode.MESSAGE_ILLEGAL,
        f"{what[:200]} are not supported by this broker; the message was not stored",
    )


def _is_zero_or_less(text: str) -> bool:
    try:
        return int(text) <= 0
    except ValueError:
        return False


def _value(text: str, name: str, marker: str) -> str | None:
    """``property_of`` for the usual case: the name stands once, at the start of a pair."""
    at = text.find(marker)
    if at < 0:
        return None
    start = at + len(marker)
    if (at and text[at - 1] != PAIR_SEPARATOR) or text.find(marker, start) >= 0:
        return property_of(text, name)
    end = text.find(PAIR_SEPARATOR, start)
    value = text[start:] if end < 0 else text[start:end]
    return value if value and NAME_SEPARATOR not in value else None


def _without(text: str, name: str) -> tuple[str, str | None]:
    """The text without any pair of that name, and the value the last of them had."""
    marker = name + NAME_SEPARATOR
    value: str | None = None
    start = 0
    while (at := text.find(marker, start)) >= 0:
        if at and text[at - 1] != PAIR_SEPARATOR:
            start = at + len(marker)
            continue
        end = text.find(PAIR_SEPARATOR, at)
        if end < 0:
            value = text[at + len(marker) :]
            text = text[: max(at - 1, 0)]
            break
        value = text[at + len(marker) : end]
        text = text[:at] + text[end + 1 :]
        start = at
    return text, value
