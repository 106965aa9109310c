"""Schemas of topics whose bodies do not carry theirs: Avro by a schema file, Protobuf by a descriptor.

A rule is ``TOPIC=FILE.avsc``, or ``TOPIC=FILE:package.Message`` with a descriptor set, as ``protoc --include_imports
--descriptor_set_out=FILE`` writes it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cometmq.base.errors import ConfigError

Decode = Callable[[bytes], Any]

AVRO, PROTOBUF = "avro", "protobuf"
_AVRO_SUFFIX: Final = ".avsc"


class NotThat(Exception):
    """The body is not of the format."""


def load_schemas(rules: Sequence[str]) -> Mapping[str, tuple[str, Decode]]:
    """By topic: the name of the format, and what decodes a body. Raises ConfigError."""
    found: dict[str, tuple[str, Decode]] = {}
    for rule in rules:
        topic, equals, place = rule.partition("=")
        if not equals or not topic or not place:
            raise ConfigError(
                f"bodySchemas: expected TOPIC=FILE.avsc or TOPIC=FILE:Message, got {rule!r}"
            )
        try:
            if place.endswith(_AVRO_SUFFIX):
                found[topic] = AVRO, _avro(place)
            else:
                path, _, message = place.rpartition(":")
                found[topic] = PROTOBUF, _protobuf(path, message)
        except OSError as error:
            raise ConfigError(f"bodySchemas: cannot read the schema of {topic}: {error}") from None
        except ImportError as error:
            kind = AVRO if place.endswith(_AVRO_SUFFIX) else PROTOBUF
            raise ConfigError(
                f"bodySchemas: {kind} needs {error.name}: pip install 'cometmq[{kind}]'"
            ) from None
    return found


def _avro(path: str) -> Decode:
    import fastavro

    text = Path(path).read_bytes()
    try:
        schema = fastavro.parse_schema(json.loads(text))
    except Exception as error:  # noqa: BLE001 - fastavro raises whatever its parts raise
        raise ConfigError(f"bodySchemas: {path} is no Avro schema: {error}") from None

    def decode(body: bytes) -> Any:
        stream = io.BytesIO(body)
        try:
            value = fastavro.schemaless_reader(stream, schema, None)
        except Exception as error:  # noqa: BLE001 - as above, for bytes that are damaged
            raise NotThat(f"{type(error).__name__}: {error}") from None
        if stream.tell() != len(body):
            raise NotThat(f"{len(body) - stream.tell()} bytes are left over")
        return value

    return decode


def _protobuf(path: str, message: str) -> Decode:
    from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
    from google.protobuf.message import DecodeError

    content = Path(path).read_bytes()
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in descriptor_pb2.FileDescriptorSet.FromString(content).file:
            pool.Add(file)
        kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(message))
    except (DecodeError, KeyError, TypeError) as error:
        raise ConfigError(f"bodySchemas: {path} has no message {message!r}: {error}") from None

    def decode(body: bytes) -> Any:
        try:
            value = kind.FromString(body)
            return json_format.MessageToDict(
                value, preserving_proto_field_name=True, descriptor_pool=pool
            )
        except (DecodeError, json_format.Error, ValueError, RecursionError) as error:
            raise NotThat(str(error)) from None

    return decode
