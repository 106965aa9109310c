"""Body of a broker's registration (103): JSON, or a special compressed layout.

The layout inside the zlib stream:

    int32 + n   data version, JSON
    int32       count of topics, then each int32 + n: ``name readQueues writeQueues perm filterType[ attributes]``
    int32 + n   filter servers, a JSON array
    int32       count of queue mappings, then each int32 + n JSON; from RocketMQ 5 on (request version 413)

Only what a route contains is kept. The rest, attributes and mappings, is skipped without parsing; it may be most of
the bytes.
"""

from __future__ import annotations

import struct
import zlib
from typing import Final

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.topic import DataVersion, TopicConfig, TopicQueues
from cometmq.protocol import fastjson
from cometmq.protocol.bodies.topic import TopicConfigTable
from cometmq.protocol.json_body import JsonBody

TOPICS_MAX: Final = 200_000
"""Default maximum number of topics of one broker."""

TOPIC_BYTES_MEAN: Final = 160
"""Bytes allowed for each topic in a decompressed body. Most take a third of that."""

UNPACKED_BYTES_MIN: Final = 1024 * 1024
UNPACKED_RATIO_MAX: Final = 100
"""Maximum compression ratio of a body. Topics with long, similar names compress to a twentieth."""

_TOPIC_VALUES: Final = 12
"""JSON values per topic, as RocketMQ 5 writes it."""

_WRAPPED_SINCE: Final = 37
_MAPPING_SINCE: Final = 413
_ZLIB_FIRST_BYTE: Final = 0x78
_INT32_MAX: Final = (1 << 31) - 1
_INT = struct.Struct(">i")


class RegisterBrokerBody(JsonBody):
    """What a broker sends."""

    topics: TopicConfigTable = msgspec.field(
        name="topicConfigSerializeWrapper", default_factory=TopicConfigTable
    )
    filter_server_list: list[str] = msgspec.field(default_factory=list)


def encode_register_body(body: RegisterBrokerBody, *, compressed: bool, version: int) -> bytes:
    """``version`` is that of the request that will carry the body."""
    if not compressed:
        return body.encode()
    topics = body.topics
    parts = [_text(fastjson.dumps(topics.data_version)), _INT.pack(len(topics.topic_config_table))]
    parts += [_text(_topic_line(config)) for config in topics.topic_config_table.values()]
    parts.append(_text(fastjson.dumps(body.filter_server_list)))
    if version >= _MAPPING_SINCE:
        mappings = topics.topic_queue_mapping_info_map or {}
        parts.append(_INT.pack(len(mappings)))
        parts += [_text(fastjson.dumps(mapping)) for mapping in mappings.values()]
    return zlib.compress(b"".join(parts), 9)


class RegisteredTable(JsonBody):
    topic_config_table: dict[str, TopicQueues] = msgspec.field(default_factory=dict)
    data_version: DataVersion = msgspec.field(default_factory=DataVersion)


class RegisteredBody(JsonBody):
    """The part that a name server keeps."""

    topics: RegisteredTable = msgspec.field(
        name="topicConfigSerializeWrapper", default_factory=RegisteredTable
    )
    filter_server_list: list[str] = msgspec.field(default_factory=list)


def decode_register_body(
    body: bytes, *, compressed: bool, version: int, topics_max: int = TOPICS_MAX
) -> RegisteredBody:
    """Empty if there is no body. ``compressed`` and ``version`` are those of the request.

    Raises:
        RemoteProtocolError: not a registration, or one with more than ``topics_max`` topics.
    """
    if not body:
        return RegisteredBody()
    # A 5.x broker may send the compressed form and claim that it is not; JSON never starts with this byte.
    if compressed or body[0] == _ZLIB_FIRST_BYTE:
        return _Layout(_decompress(body, topics_max)).read(topics_max)
    limits = fastjson.Limits(
        bytes_max=fastjson.TABLE.bytes_max,
        values_max=_TOPIC_VALUES * topics_max + fastjson.BODY.values_max,
    )
    if version < _WRAPPED_SINCE:
        read = RegisteredBody(topics=fastjson.decode(body, RegisteredTable, limits=limits))
    else:
        read = fastjson.decode(body, RegisteredBody, limits=limits)
    _check_count(len(read.topics.topic_config_table), topics_max)
    return read


class _Layout:
    """Reads the compressed layout; lengths are checked against the remaining bytes before anything is read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self, topics_max: int) -> RegisteredBody:
        version = fastjson.decode(self._text(), DataVersion)
        count = self._count()
        _check_count(count, topics_max)
        topics = [_topic_queues(self._text()) for _ in range(count)]
        filter_servers = fastjson.decode(self._text(), list[str], what="list of filter servers")
        return RegisteredBody(
            topics=RegisteredTable(
                topic_config_table={topic.topic_name: topic for topic in topics},
                data_version=version,
            ),
            filter_server_list=filter_servers,
        )

    def _text(self) -> bytes:
        length = self._integer()
        text = self._data[self._at : self._at + max(length, 0)]
        if len(text) != length:
            raise RemoteProtocolError(f"registration: text of {length} bytes at {self._at}")
        self._at += length
        return text

    def _count(self) -> int:
        count = self._integer()
        # Each entry takes at least its own length word.
        if not 0 <= count <= (len(self._data) - self._at) // 4:
            raise RemoteProtocolError(f"registration: {count} entries at {self._at}")
        return count

    def _integer(self) -> int:
        try:
            (value,) = _INT.unpack_from(self._data, self._at)
        except struct.error:
            raise RemoteProtocolError(f"registration is cut off at {self._at}") from None
        self._at += 4
        return int(value)


def _check_count(count: int, topics_max: int) -> None:
    if count > topics_max:
        raise RemoteProtocolError(
            f"registration: {count} topics, where at most {topics_max} are taken of one broker"
        )


def _decompress(body: bytes, topics_max: int) -> bytes:
    bytes_max = min(
        max(UNPACKED_BYTES_MIN, UNPACKED_RATIO_MAX * len(body)),
        max(UNPACKED_BYTES_MIN, TOPIC_BYTES_MEAN * topics_max),
    )
    decompressor = zlib.decompressobj()
    try:
        plain = decompressor.decompress(body, bytes_max)
    except zlib.error as error:
        raise RemoteProtocolError(f"registration: broken compression: {error}") from None
    if not decompressor.eof:
        raise RemoteProtocolError(
            f"registration: the compressed {len(body)} bytes are cut off, or more than {bytes_max} unpacked"
        )
    return plain


def _text(text: bytes) -> bytes:
    return _INT.pack(len(text)) + text


def _topic_line(config: TopicConfig) -> bytes:
    line = (
        f"{config.topic_name} {config.read_queue_nums} {config.write_queue_nums} "
        f"{config.perm} {config.topic_filter_type}"
    ).encode()
    return line if config.attributes is None else line + b" " + fastjson.dumps(config.attributes)


def _topic_queues(line: bytes) -> TopicQueues:
    try:
        name, read, write, perm, _ = line.split(b" ", 4)
        topic = TopicQueues(
            topic_name=name.decode(),
            read_queue_nums=int(read),
            write_queue_nums=int(write),
            perm=int(perm),
        )
    except ValueError:
        raise RemoteProtocolError(f"registration: topic line {line[:200]!r}") from None
    # A struct created directly does not check ranges, and only a broken registration holds numbers that large.
    if max(topic.read_queue_nums, topic.write_queue_nums, topic.perm) > _INT32_MAX or (
        min(topic.read_queue_nums, topic.write_queue_nums, topic.perm) < -_INT32_MAX
    ):
        raise RemoteProtocolError(f"registration: topic line {line[:200]!r}")
    return topic
