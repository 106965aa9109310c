"""What became last of a message of a transaction that is not open, by what the log holds of it.

A commit that comes after the broker has discarded the message finds its way with this: through the index of keys, so
nothing has to be kept for it in memory or over a restart. Without a unique key, or without an index
(``messageIndexEnable``), it is too late for such a commit; an operator can have the transaction checked anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cometmq.model.flags import TRANSACTION_MASK, SysFlag
from cometmq.model.messages.properties import REAL_TOPIC, UNIQ_KEY
from cometmq.model.messages.record import Record, readable_record
from cometmq.model.names import HALF_TOPIC, TRANSACTION_DISCARD_TOPIC
from cometmq.store.message_store import MessageStore

_FOUND_MAX: Final = 64
_TIME_MAX: Final = (1 << 63) - 1


def last_form(store: MessageStore, half: Record) -> Record | None:
    """The discarded message, or the half message that it became again; None when the transaction was decided."""
    if half.properties.get(UNIQ_KEY) is None:
        return None
    discarded = max(_forms(store, TRANSACTION_DISCARD_TOPIC, half), key=_place, default=None)
    if discarded is None or discarded.physical_offset < half.physical_offset:
        return None
    destination = half.properties.get(REAL_TOPIC, "")
    if any(_is_committed(record) for record in _forms(store, destination, half)):
        return None
    newest = max(_forms(store, HALF_TOPIC, half), key=_place, default=half)
    return max(newest, discarded, key=_place)


def _forms(store: MessageStore, topic: str, half: Record) -> Iterator[Record]:
    """The records of a topic that are this message."""
    found = store.query(topic, half.properties[UNIQ_KEY], _FOUND_MAX, 0, _TIME_MAX)
    for record in filter(None, map(readable_record, found.parts)):
        if (
            record.properties.get(UNIQ_KEY) == half.properties[UNIQ_KEY]
            and record.born_timestamp == half.born_timestamp
            and record.body == half.body
        ):
            yield record


def _is_committed(record: Record) -> bool:
    return record.sys_flag & TRANSACTION_MASK == SysFlag.TRANSACTION_COMMIT


def _place(record: Record) -> int:
    return record.physical_offset
