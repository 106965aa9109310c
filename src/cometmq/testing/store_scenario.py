"""A store so small that a few messages fill a file of each kind, and a wide variety of messages for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from cometmq.model.java_hash import java_hash
from cometmq.model.messages.checksum import crc32
from cometmq.model.messages.properties import KEYS as KEYS_PROPERTY
from cometmq.model.messages.properties import TAGS as TAGS_PROPERTY
from cometmq.model.messages.properties import UNIQ_KEY, render_properties
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.queues.extended_queue import Unit
from cometmq.store.queues.extended_queues import no_bits
from cometmq.store.store_config import (
    CommitLogConfig,
    ConsumeQueueConfig,
    IndexConfig,
    RetentionConfig,
    StoreConfig,
)
from cometmq.testing.store_model import PREPARED, ROLLBACK, Kept, Queue, StoreModel
from cometmq.testing.store_simulation import StoreSimulation

LOG_FILE_BYTES: Final = 2048
TOPICS: Final = ["A", "Topic-B"]
QUEUES: Final = [(topic, queue_id) for topic in TOPICS for queue_id in (0, 1)]
KEYS: Final = ["k1", "k2", "schlüssel"]
TAGS: Final = ["", "red", "polygenelubricants"]

_STORE_HOST = bytes([127, 0, 0, 1, 0, 0, 0x2A, 0x9F])
_BORN_HOSTS = [bytes([10, 0, 0, 1, 0, 0, 1, 2]), bytes(range(16)) + bytes([0, 0, 1, 2])]
_SYS_FLAGS = [0, 0, 8, 0, 0, PREPARED, 0, 0, ROLLBACK, 0, 0]
_CONFIG = StoreConfig(
    root="/store",
    log=CommitLogConfig(file_bytes=LOG_FILE_BYTES, message_bytes_max=LOG_FILE_BYTES),
    queues=ConsumeQueueConfig(file_bytes=5 * 20, open_files_max=8, extended_file_bytes=64),
    index=IndexConfig(slot_count=5, entry_count=8, query_count_max=1 << 20),
    retention=RetentionConfig(
        delete_when=";".join(f"{hour:02d}" for hour in range(24)), reserved_hours=72
    ),
)


def small_store(seed: int, *, extended: bool = False) -> StoreSimulation:
    """
    Args:
        extended: with the extended consume queue, whose files hold only a unit or two.
    """
    model = StoreModel(QUEUES, KEYS, _STORE_HOST)
    config, bits = _CONFIG, no_bits
    if extended:
        config = replace(_CONFIG, queues=replace(_CONFIG.queues, extended=True))
        bits = _bits
        model.unit_of = _unit
    return StoreSimulation(config, model, store_host=_STORE_HOST, seed=seed, filter_bits=bits)


def _bits(topic: str, properties: str) -> bytes:
    """Filter bits of various lengths, including none."""
    return crc32(properties.encode()).to_bytes(4, "big") * (len(properties) % 4)


def _unit(row: Kept) -> Unit:
    text = row.message.properties.decode()
    bits = _bits(row.message.topic, text)
    return Unit(row.message.tags_code, row.stored.store_timestamp, bits)


def make_message(queue: Queue, variety: int, body_bytes: int) -> NewMessage:
    """A message whose details all follow from one number."""
    number = variety % 1000
    keys = [key for bit, key in enumerate(KEYS) if variety >> bit & 1]
    tag = TAGS[variety // 8 % len(TAGS)]
    pairs = {} if number % 5 == 0 else {UNIQ_KEY: f"U{number}"}
    if keys:
        pairs[KEYS_PROPERTY] = " ".join(keys)
    if tag:
        pairs[TAGS_PROPERTY] = tag
    return NewMessage(
        topic=queue[0],
        queue_id=queue[1],
        body=bytes([number % 256]) * body_bytes,
        properties=render_properties(pairs).encode(),
        tags_code=java_hash(tag),
        keys=([pairs[UNIQ_KEY]] if UNIQ_KEY in pairs else []) + keys,
        flag=number,
        sys_flag=_SYS_FLAGS[number % len(_SYS_FLAGS)],
        born_timestamp=number,
        born_host=_BORN_HOSTS[number // 7 % 2],
        reconsume_times=number % 3,
    )


def put_many(
    simulation: StoreSimulation, queue: Queue, first: int, count: int, body_bytes: int = 0
) -> None:
    for number in range(count):
        simulation.put([make_message(queue, first + number, body_bytes + number % 7)])


def put_up_to_file_end(simulation: StoreSimulation, message: NewMessage, delta: int) -> None:
    """Give the message a body that just fits into the log file, or misses or exceeds that by a few bytes."""
    room = LOG_FILE_BYTES - simulation.store.max_physical % LOG_FILE_BYTES - 8
    rest_bytes = simulation.model.record_bytes(message) - len(message.body)
    if room + delta >= rest_bytes:
        message.body = b"e" * (room + delta - rest_bytes)
        simulation.put([message])
