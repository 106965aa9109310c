"""Body of a broker's registration (103): JSON, or a compressed layout of its own.

The layout inside the zlib stream:

    int32 + n   data version, JSON
    int32       count of topics, then each int32 + n: ``name readQueues writeQueues perm filterType[ attributes]``
    int32 + n   filter servers, a JSON array
    int32       count of queue mappings, then each int32 + n JSON; from RocketMQ 5 on (request version 413)
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

import msgspec

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.topic import DataVersion, TopicConfig
from cometmq.protocol import fastjson
from cometmq.protocol.bodies.topic import TopicConfigTable
from cometmq.protocol.json_body import JsonBody

PLAIN_BYTES_MAX: Final = 64 * 1024 * 1024
"""What a compressed body may grow to: about a million topics."""

_WRAPPED_SINCE: Final = 37
_MAPPING_SINCE: Final = 413
_ZLIB_FIRST_BYTE: Final = 0x78
_INT = struct.Struct(">i")


class RegisterBrokerBody(JsonBody):
    topics: TopicConfigTable = msgspec.field(
        name="topicConfigSerializeWrapper", default_factory=TopicConfigTable
    )
    filter_server_list: list[str] = msgspec.field(default_factory=list)


def encode_register_body(body: RegisterBrokerBody, *, compressed: bool, version: int) -> bytes:
    """``version`` is that of the request which will carry the body."""
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


def decode_register_body(body: bytes, *, compressed: bool, version: int) -> RegisterBrokerBody:
    """Empty for no body at all. ``compressed`` and ``version`` are those of the request.

    Raises:
        RemoteProtocolError: not a registration, or one that grows beyond ``PLAIN_BYTES_MAX``.
    """
    if not body:
        return RegisterBrokerBody()
    # A 5.x broker may send the compressed form and say it is not; JSON never starts with this byte.
    if compressed or body[0] == _ZLIB_FIRST_BYTE:
        return _Layout(_decompress(body)).read(has_mappings=version >= _MAPPING_SINCE)
    if version < _WRAPPED_SINCE:
        return RegisterBrokerBody(topics=TopicConfigTable.decode(body))
    return RegisterBrokerBody.decode(body)


class _Layout:
    """Reads the compressed layout; lengths are checked against what is there before anything is taken."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def read(self, *, has_mappings: bool) -> RegisterBrokerBody:
        version = fastjson.decode(self._text(), DataVersion)
        configs = [_topic_config(self._text()) for _ in range(self._count())]
        filter_servers = fastjson.decode(self._text(), list[str], what="list of filter servers")
        mappings: dict[str, Any] | None = None
        if has_mappings and self._at < len(self._data):
            mappings = {}
            for _ in range(self._count()):
                mapping = fastjson.loads(self._text())
                if isinstance(mapping, dict) and isinstance(mapping.get("topic"), str):
                    mappings[mapping["topic"]] = mapping
        return RegisterBrokerBody(
            topics=TopicConfigTable(
                topic_config_table={config.topic_name: config for config in configs},
                data_version=version,
                topic_queue_mapping_info_map=mappings,
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


def _decompress(body: bytes) -> bytes:
    decompressor = zlib.decompressobj()
    try:
        plain = decompressor.decompress(body, PLAIN_BYTES_MAX)
    except zlib.error as error:
        raise RemoteProtocolError(f"registration: broken compression: {error}") from None
    if not decompressor.eof:
        raise RemoteProtocolError(
            f"registration: compressed body is cut off or above {PLAIN_BYTES_MAX} bytes"
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


def _topic_config(line: bytes) -> TopicConfig:
    parts = line.split(b" ", 5)
    if len(parts) < 5:
        raise RemoteProtocolError(f"registration: topic line {line[:200]!r}")
    attributes = None
    if len(parts) == 6:
        attributes = fastjson.decode(parts[5], dict[str, str], what="map of attributes")
    try:
        return fastjson.convert(
            {
                "topicName": parts[0].decode(),
                "readQueueNums": int(parts[1]),
                "writeQueueNums": int(parts[2]),
                "perm": int(parts[3]),
                "topicFilterType": parts[4].decode(),
                "attributes": attributes,
            },
            TopicConfig,
        )
    except ValueError:
        raise RemoteProtocolError(f"registration: topic line {line[:200]!r}") from None
