"""What the broker reads out of a sent property text, and how it changes the text before it is stored.

One pass over the pairs and no dict of them: a send spends about a microsecond here. Which pairs count is the same as
in ``model.properties``: the last of a repeated name, and only those with a name and a value.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

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
    parse_properties,
    property_of,
    render_properties,
    split_keys,
)
from cometmq.model.timer_properties import TIMER_OUT_MS
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

_TIMERS: Final = (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS)
_READ: Final = frozenset({UNIQ_KEY, TAGS, WAIT, KEYS, DELAY, TRANSACTION_PREPARED, *_TIMERS})
# Before WAIT is taken out and CLUSTER put in; bounds the work on a text that will be refused anyway.
_SENT_CHARACTERS_MAX: Final = TEXT_BYTES_MAX + 1024
_CACHED_TAG_LENGTH_MAX: Final = 128
_LEVEL_CHARACTERS_MAX: Final = 11
_UNIQUE_FIRST: Final = UNIQ_KEY + NAME_SEPARATOR
_UNIQUE_FIRST_BYTES: Final = _UNIQUE_FIRST.encode()
_PAIR_SEPARATOR: Final = PAIR_SEPARATOR.encode()
_UNIQUE_AT: Final = len(_UNIQUE_FIRST)
# Longer texts are read anew each time, so that what is remembered stays below a megabyte or two.
_REMEMBERED_MAX: Final = 512
_cached_hash = lru_cache(maxsize=8192)(java_hash)


class SendProperties(msgspec.Struct):
    stored: bytes
    """The text to store, UTF-8."""
    tags_code: int
    keys: list[str]
    """For the index: the unique key, then the user's keys."""
    is_wait: bool
    """Whether the sender waits for the disk and the replicas."""
    delay_level: int = 0
    """How long to wait before the message is delivered; 0 means not at all."""
    is_half: bool = False
    """Whether it is delivered only when a transaction is committed."""
    timer: tuple[str, str] | None = None
    """The property that says when it is to be delivered, and what it says; a delay level counts more."""


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
    return _prepare(text, cluster, keeps_wait=False)


def prepare_element(text: str, cluster: str) -> SendProperties:
    """The same for one message of a batch, which keeps its WAIT; whether to wait is said by the batch."""
    return _prepare(text, cluster, keeps_wait=True)


class BatchProperties(msgspec.Struct):
    """By message: the text to store, tags code and keys."""

    stored: list[bytes]
    tags_codes: list[int]
    keys: list[str]
    """Of the messages, one after the other."""
    key_counts: list[int] | None
    """How many of them each message has; None: one."""


def prepare_batch(texts: list[bytes], cluster: str) -> BatchProperties:
    """``prepare_element`` of each text of a batch, most of which differ in nothing but their unique key.

    Raises:
        Refused: as ``prepare_element``, or one is not UTF-8.
    """
    alike = _prepare_alike(texts, cluster) if texts else None
    return alike or _prepare_each(texts, cluster)


def _prepare_alike(texts: list[bytes], cluster: str) -> BatchProperties | None:
    """Texts of one length that begin with a unique key and go on alike: what follows it is read once."""
    first = texts[0]
    key_end = first.find(_PAIR_SEPARATOR)
    rest = first[key_end:]
    if (
        key_end <= _UNIQUE_AT
        or b"KEY" in rest
        or len(rest) == 1
        or len(first) > _REMEMBERED_MAX
        or {text[:_UNIQUE_AT] for text in texts} != {_UNIQUE_FIRST_BYTES}
        # Also says that all are as long as the first.
        or {text[key_end:] for text in texts} != {rest}
    ):
        return None
    together = b"".join([text[_UNIQUE_AT:key_end] for text in texts])
    if not together.isalnum():
        return None
    properties = _prepare_element_bytes(first, cluster)
    stored_rest = properties.stored[key_end:]
    keys, width = together.decode(), key_end - _UNIQUE_AT
    return BatchProperties(
        [text[:key_end] + stored_rest for text in texts],
        [properties.tags_code] * len(texts),
        [keys[at : at + width] for at in range(0, len(keys), width)],
        None,
    )


def _prepare_each(texts: list[bytes], cluster: str) -> BatchProperties:
    all_properties = [_prepare_element_bytes(text, cluster) for text in texts]
    return BatchProperties(
        [properties.stored for properties in all_properties],
        [properties.tags_code for properties in all_properties],
        [key for properties in all_properties for key in properties.keys],
        [len(properties.keys) for properties in all_properties],
    )


def _prepare_element_bytes(text: bytes, cluster: str) -> SendProperties:
    try:
        return prepare_element(text.decode(), cluster)
    except UnicodeDecodeError:
        raise Refused(
            ResponseCode.MESSAGE_ILLEGAL, "properties of a batch element are not UTF-8"
        ) from None


def is_wait(text: str) -> bool:
    """Whether a batch's own text says to wait."""
    return "WAIT\x01" not in text or property_of(text, WAIT) != "false"


def _prepare(text: str, cluster: str, *, keeps_wait: bool) -> SendProperties:
    """Clients put the unique key first; what follows is the same for many messages and is read once."""
    first, _, rest = text.partition(PAIR_SEPARATOR)
    if (
        len(text) <= _REMEMBERED_MAX
        and first.startswith(_UNIQUE_FIRST)
        and first.isascii()
        and first.count(NAME_SEPARATOR) == 1
        and (known := _remembered(rest, cluster, keeps_wait)) is not None
        and (unique_key := first[_UNIQUE_AT:])
    ):
        return SendProperties(
            b"%b\x02%b" % (first.encode(), known.stored),
            known.tags_code,
            [unique_key],
            known.is_wait,
            known.delay_level,
            known.is_half,
            known.timer,
        )
    return _read(text, cluster, keeps_wait)


@lru_cache(maxsize=2048)
def _remembered(rest: str, cluster: str, keeps_wait: bool) -> SendProperties | None:
    """What follows the unique key; None when it has a part in the keys itself, or is not there."""
    return None if not rest or "KEY" in rest else _read(rest, cluster, keeps_wait)


def _read(text: str, cluster: str, keeps_wait: bool) -> SendProperties:
    if len(text) > _SENT_CHARACTERS_MAX:
        raise _too_long(len(text))
    tags_code = 0
    is_wait = True
    delay_level = 0
    is_half = is_timed = False
    unique_key = user_keys = None
    pairs = text.split(PAIR_SEPARATOR)
    for pair in pairs:
        name, _, value = pair.partition(NAME_SEPARATOR)
        # As in ``parse_properties``: a pair needs a value, and a value holds no separator.
        if name not in _READ or not value or NAME_SEPARATOR in value:
            continue
        if name == UNIQ_KEY:
            unique_key = value
        elif name == TAGS:
            tags_code = _tag_hash(value)
        elif name == WAIT:
            is_wait = value != "false"
        elif name == KEYS:
            user_keys = value
        elif name == DELAY:
            delay_level = _delay_level(value)
        elif name == TRANSACTION_PREPARED:
            is_half = value.lower() == "true"
        else:
            is_timed = True
    if keeps_wait and delay_level:
        raise _unsupported(f"delayed messages in a batch ({DELAY}={delay_level})")
    if keeps_wait and is_half:
        raise _unsupported(f"transactional messages in a batch ({TRANSACTION_PREPARED}=true)")
    timer = _timer(text) if is_timed else None
    if timer is not None and keeps_wait:
        raise _unsupported(f"timed messages in a batch ({timer[0]}={timer[1]})")
    if timer is not None and delay_level:
        timer = None
        pairs = [pair for pair in pairs if pair.partition(NAME_SEPARATOR)[0] not in _TIMERS]
        text = PAIR_SEPARATOR.join(pairs)
    if not keeps_wait and "WAIT\x01" in text:
        text = PAIR_SEPARATOR.join([pair for pair in pairs if not pair.startswith("WAIT\x01")])
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
    keys = [] if unique_key is None else [unique_key]
    if user_keys is not None:
        keys += split_keys(user_keys)
    return SendProperties(stored, tags_code, keys, is_wait, delay_level, is_half, timer)


def undelayed(properties: SendProperties) -> SendProperties:
    """The same for a message that becomes a dead letter, whatever delay it was sent with."""
    pairs = parse_properties(properties.stored.decode())
    pairs[DELAY] = "0"
    stored = render_properties(pairs).encode()
    return msgspec.structs.replace(properties, stored=stored, delay_level=0, timer=None)


def _delay_level(text: str) -> int:
    if text.removeprefix("-").isdecimal() and len(text) <= _LEVEL_CHARACTERS_MAX:
        return max(int(text), 0)
    raise Refused(
        ResponseCode.MESSAGE_ILLEGAL,
        f"{DELAY} must be the number of a delay level, not {text[:50]!r}; the message was not stored",
    )


def _tag_hash(tag: str) -> int:
    return _cached_hash(tag) if len(tag) <= _CACHED_TAG_LENGTH_MAX else java_hash(tag)


def _too_long(length: int) -> Refused:
    return Refused(
        ResponseCode.MESSAGE_ILLEGAL,
        f"the message properties take {length} bytes, max {TEXT_BYTES_MAX}",
    )


def _timer(text: str) -> tuple[str, str] | None:
    # One that was delivered and is sent again, properties and all, has waited already.
    if property_of(text, TIMER_OUT_MS) is not None:
        return None
    for name in _TIMERS:
        if (value := property_of(text, name)) is not None:
            return name, value
    return None


def _unsupported(what: str) -> Refused:
    return Refused(
        ResponseCode.MESSAGE_ILLEGAL,
        f"{what[:200]} are not supported by this broker; the message was not stored",
    )
