"""A stored record as a new message: the same content under another topic, queue or property text."""

from __future__ import annotations

from cometmq.model.java_hash import java_hash
from cometmq.model.messages.properties import KEYS, TAGS, UNIQ_KEY, split_keys
from cometmq.model.messages.record import Record
from cometmq.store.log.new_messages import NewMessage


def copy_of(
    record: Record,
    *,
    topic: str,
    queue_id: int,
    properties: bytes,
    retries: int = 0,
    prepared_transaction_offset: int = 0,
) -> NewMessage:
    """The record's body, sender, flags, tags and keys in a message that is yet to be stored.

    Args:
        properties: the new property text, which has the tags and keys of the record.
        retries: how many deliveries have failed since the record was stored.
    """
    pairs = record.properties
    tag = pairs.get(TAGS)
    unique_key = pairs.get(UNIQ_KEY)
    return NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=record.body,
        properties=properties,
        tags_code=java_hash(tag) if tag else 0,
        keys=([unique_key] if unique_key else []) + split_keys(pairs.get(KEYS)),
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        reconsume_times=record.reconsume_times + retries,
        prepared_transaction_offset=prepared_transaction_offset,
    )
