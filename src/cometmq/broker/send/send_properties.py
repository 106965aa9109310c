"""What the broker reads out of a sent property text, and how it changes the text before it is stored.

One pass over the pairs and no dict of them: a send spends about a microsecond here. Which pairs count is the same as
in ``model.properties``: the last of a repeated name, and only those with a name and a value.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from cometmq.broker.send.stored_form import StoredForm
from cometmq.model.java_hash import java_hash
from cometmq.model.messages.properties import (
    DELAY,
    KEYS,
    NAME_SEPARATOR,
    PAIR_SEPARATOR,
    POP_HANDLE,
    SHARDING_KEY,
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
from cometmq.model.messages.timer_properties import TIMER_OUT_MS
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

_TIMERS: Final = (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS)
_READ: Final = frozenset(
    {UNIQ_KEY, TAGS, WAIT, KEYS, DELAY, TRANSACTION_PREPARED, SHARDING_KEY, *_TIMERS}
)
# Before it gets its stored form; bounds the work on a text that will be refused anyway.
_SENT_CHARACTERS_MAX: Final = TEXT_BYTES_MAX + 1024
_CACHED_TAG_LENGTH_MAX: Final = 128
_LEVEL_CHARACTERS_MAX: Final = 11
_UNIQUE_FIRST: Final = UNIQ_KEY + NAME_SEPARATOR
_UNIQUE_FIRST_BYTES: Final = _UNIQUE_FIRST.encode()
_PAIR_SEPARATOR: Final = PAIR_SEPARATOR.encode()
_UNIQUE_AT: Final = len(_UNIQUE_FIRST)
# Says at which broker a message was popped. Stored with a copy, it would be acknowledged there.
_HANDLE: Final = POP_HANDLE + NAME_SEPARATOR
_KEYS: Final = KEYS + NAME_SEPARATOR
# In their places in a text that stands for all with other keys.
_ANY_UNIQUE: Final = f"{_UNIQUE_FIRST}\0{PAIR_SEPARATOR}"
_ANY_KEYS: Final = f"{_KEYS}\0"
# Longer texts are read anew each time, so that what is remembered stays below a megabyte or two.
_REMEMBERED_MAX: Final = 512
_REMEMBERED_PAIRS_MAX: Final = 64
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
    is_ordered: bool = False
    """Whether it names an order it belongs to."""


class _Remembered(msgspec.Struct):
    """A text but for its unique key and its keys: what is stored around them, and what the text says."""

    before: bytes
    middle: bytes
    after: bytes
    properties: SendProperties

    @property
    def is_plain(self) -> bool:
        """Whether the message is to be delivered at once."""
        said = self.properties
        return not (said.delay_level or said.is_half or said.timer)


def prepare(text: str, form: StoredForm) -> SendProperties:
    """What a sent text says, and what is stored of it.

    Raises:
        Refused: the text is too long or no text, or asks for what this broker cannot do.
    """
    return _prepare(text, form, is_element=False)


def prepare_element(text: str, form: StoredForm) -> SendProperties:
    """The same for one message of a batch; whether to wait is said by the batch."""
    return _prepare(text, form, is_element=True)


def remembered(rest: str, form: StoredForm, *, is_element: bool) -> _Remembered | None:
    """What is the same for all texts that begin with a unique key and go on like this, with a zero for the keys.

    Raises:
        Refused: as ``prepare``.
    """
    return _remembered(rest, form, is_element)


class BatchProperties(msgspec.Struct):
    """By message: the text to store, tags code and keys."""

    stored: list[bytes]
    tags_codes: list[int]
    keys: list[str]
    """Of the messages, one after the other."""
    key_counts: list[int] | None
    """How many of them each message has; None: one."""


def prepare_batch(texts: list[bytes], form: StoredForm) -> BatchProperties:
    """``prepare_element`` of each text of a batch, most of which differ in nothing but their unique key.

    Raises:
        Refused: as ``prepare_element``, or one is not UTF-8.
    """
    alike = _prepare_alike(texts, form) if texts else None
    return alike or _prepare_each(texts, form)


def _prepare_alike(texts: list[bytes], form: StoredForm) -> BatchProperties | None:
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
    properties = _prepare_element_bytes(first, form)
    stored_rest = properties.stored[key_end:]
    keys, width = together.decode(), key_end - _UNIQUE_AT
    return BatchProperties(
        texts if stored_rest == rest else [text[:key_end] + stored_rest for text in texts],
        [properties.tags_code] * len(texts),
        [keys[at : at + width] for at in range(0, len(keys), width)],
        None,
    )


def _prepare_each(texts: list[bytes], form: StoredForm) -> BatchProperties:
    all_properties = [_prepare_element_bytes(text, form) for text in texts]
    return BatchProperties(
        [properties.stored for properties in all_properties],
        [properties.tags_code for properties in all_properties],
        [key for properties in all_properties for key in properties.keys],
        [len(properties.keys) for properties in all_properties],
    )


def _prepare_element_bytes(text: bytes, form: StoredForm) -> SendProperties:
    try:
        return prepare_element(text.decode(), form)
    except UnicodeDecodeError:
        raise Refused(
            ResponseCode.MESSAGE_ILLEGAL, "properties of a batch element are not UTF-8"
        ) from None


def is_wait(text: str) -> bool:
    """Whether a batch's own text says to wait."""
    return "WAIT\x01" not in text or property_of(text, WAIT) != "false"


def _prepare(text: str, form: StoredForm, *, is_element: bool) -> SendProperties:
    """Clients put the unique key first; but for that and the keys, many messages are the same: that is read once."""
    first, _, rest = text.partition(PAIR_SEPARATOR)
    if (
        len(text) > _REMEMBERED_MAX
        or not first.startswith(_UNIQUE_FIRST)
        or not first.isascii()
        or first.count(NAME_SEPARATOR) != 1
        or not (unique_key := first[_UNIQUE_AT:])
    ):
        return _read(text, form, is_element)
    if _KEYS in rest:
        head, _, tail = rest.partition(_KEYS)
        user_keys, separator, tail = tail.partition(PAIR_SEPARATOR)
        if not user_keys or not user_keys.isascii() or NAME_SEPARATOR in user_keys:
            return _read(text, form, is_element)
        known = _remembered(f"{head}{_ANY_KEYS}{separator}{tail}", form, is_element)
        if known is None:
            return _read(text, form, is_element)
        unique, others = first.encode(), user_keys.encode()
        stored = b"%b%b\x02%b%b%b" % (known.before, unique, known.middle, others, known.after)
        keys = [unique_key, *split_keys(user_keys)]
    else:
        known = _remembered(rest, form, is_element)
        if known is None:
            return _read(text, form, is_element)
        stored = b"%b%b\x02%b" % (known.before, first.encode(), known.after)
        keys = [unique_key]
    properties = known.properties
    return SendProperties(
        stored,
        properties.tags_code,
        keys,
        properties.is_wait,
        properties.delay_level,
        properties.is_half,
        properties.timer,
        properties.is_ordered,
    )


@lru_cache(maxsize=2048)
def _remembered(rest: str, form: StoredForm, is_element: bool) -> _Remembered | None:
    """What follows the unique key, its keys replaced; None when it is not alike for all of them, or not there."""
    head, _, tail = rest.partition(_ANY_KEYS)
    if (
        not rest
        or "KEY" in head
        or "KEY" in tail
        or (head and head != rest and head[-1] != PAIR_SEPARATOR)
        or _HANDLE in rest
        or rest.count(PAIR_SEPARATOR) > _REMEMBERED_PAIRS_MAX
    ):
        return None
    properties = _read(_ANY_UNIQUE + rest, form, is_element)
    before, _, others = properties.stored.partition(_ANY_UNIQUE.encode())
    middle, any_keys, after = others.partition(_ANY_KEYS.encode())
    if not any_keys:
        return _Remembered(before, b"", others, properties)
    return _Remembered(before, middle + _KEYS.encode(), after, properties)


def _read(text: str, form: StoredForm, is_element: bool) -> SendProperties:
    if len(text) > _SENT_CHARACTERS_MAX:
        raise _too_long(len(text))
    tags_code = 0
    is_wait = True
    delay_level = 0
    is_half = is_timed = is_ordered = False
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
        elif name == SHARDING_KEY:
            is_ordered = True
        else:
            is_timed = True
    if is_element and delay_level:
        raise _unsupported(f"delayed messages in a batch ({DELAY}={delay_level})")
    if is_element and is_half:
        raise _unsupported(f"transactional messages in a batch ({TRANSACTION_PREPARED}=true)")
    timer = _timer(text) if is_timed else None
    if timer is not None and is_element:
        raise _unsupported(f"timed messages in a batch ({timer[0]}={timer[1]})")
    if timer is not None and delay_level:
        timer = None
        pairs = [pair for pair in pairs if pair.partition(NAME_SEPARATOR)[0] not in _TIMERS]
    if _HANDLE in text:
        pairs = [pair for pair in pairs if not pair.startswith(_HANDLE)] or [""]
    text = form.of_element(pairs) if is_element else form.of_message(pairs)
    try:
        stored = text.encode()
    except UnicodeEncodeError as error:
        raise Refused(ResponseCode.MESSAGE_ILLEGAL, f"properties are no text: {error}") from None
    if len(stored) > TEXT_BYTES_MAX:
        raise _too_long(len(stored))
    keys = [] if unique_key is None else [unique_key]
    if user_keys is not None:
        keys += split_keys(user_keys)
    return SendProperties(stored, tags_code, keys, is_wait, delay_level, is_half, timer, is_ordered)


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
