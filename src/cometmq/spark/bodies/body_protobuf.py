"""Protobuf message types as Spark types, and Protobuf bodies as dictionaries of them.

A field that can tell whether it was set (``optional``, a message, a member of a oneof) is null when it was not; others
have their default. Enums are their names, a value without a name its number as text; ``google.protobuf.Timestamp`` is a
timestamp.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from cometmq.base.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from cometmq.spark.bodies.body_formats import Decode

_DEPTH_MAX: Final = 32
_TIMESTAMP: Final = "google.protobuf.Timestamp"


def protobuf_decoder(descriptors: bytes, message: str) -> tuple[StructType, Callable[[], Decode]]:
    """The columns of a message type, and what makes a decoder for it in a worker.

    Raises:
        ConfigError: the package is missing, the file is no descriptor set, or has no such message.
    """
    columns = _struct_type(_descriptor(descriptors, message), 0)

    def make() -> Decode:
        from google.protobuf import message_factory

        kind = message_factory.GetMessageClass(_descriptor(descriptors, message))

        def decode(body: bytes) -> dict[str, Any]:
            return _fields(kind.FromString(body))

        return decode

    return columns, make


def _descriptor(descriptors: bytes, message: str) -> Any:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool
        from google.protobuf.message import DecodeError
    except ImportError:
        raise ConfigError(
            "Protobuf bodies need the package protobuf: pip install 'cometmq[protobuf]'"
        ) from None
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
    except DecodeError:
        files = descriptor_pb2.FileDescriptorSet()
    if not files.file:
        raise ConfigError(
            "the file is no descriptor set; make one with "
            "protoc --include_imports --descriptor_set_out=FILE YOUR.proto"
        )
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in files.file:
            pool.Add(file)
        return pool.FindMessageTypeByName(message)
    except TypeError as error:
        raise ConfigError(
            f"the descriptor set lacks an import; make it with --include_imports: {error}"
        ) from None
    except KeyError:
        known = [
            f"{file.package}.{each.name}".lstrip(".")
            for file in files.file
            for each in file.message_type
        ]
        raise ConfigError(
            f"the descriptor set has no message {message!r}; it has {', '.join(known)}"
        ) from None


def _struct_type(descriptor: Any, depth: int) -> StructType:
    from pyspark.sql.types import StructField, StructType

    if depth > _DEPTH_MAX:
        raise ConfigError(
            f"message {descriptor.full_name} is nested deeper than {_DEPTH_MAX}, or contains itself: "
            "a column cannot"
        )
    return StructType(
        [StructField(each.name, _field_type(each, depth)) for each in descriptor.fields]
    )


def _field_type(field: Any, depth: int) -> DataType:
    from pyspark.sql.types import ArrayType, MapType

    if _is_map(field):
        entry = field.message_type.fields_by_name
        return MapType(_single_type(entry["key"], depth), _single_type(entry["value"], depth))
    single = _single_type(field, depth)
    return ArrayType(single) if field.is_repeated else single


def _single_type(field: Any, depth: int) -> DataType:
    from pyspark.sql.types import DataType

    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            return DataType.fromDDL("timestamp")
        return _struct_type(field.message_type, depth + 1)
    return DataType.fromDDL(
        _scalar_names()[field.cpp_type] if field.type != field.TYPE_BYTES else "binary"
    )


def _scalar_names() -> dict[int, str]:
    from google.protobuf.descriptor import FieldDescriptor as Field

    return {
        Field.CPPTYPE_INT32: "int",
        Field.CPPTYPE_INT64: "bigint",
        # Unsigned numbers in the next wider type, where all of them fit.
        Field.CPPTYPE_UINT32: "bigint",
        Field.CPPTYPE_UINT64: "decimal(20,0)",
        Field.CPPTYPE_DOUBLE: "double",
        Field.CPPTYPE_FLOAT: "float",
        Field.CPPTYPE_BOOL: "boolean",
        Field.CPPTYPE_ENUM: "string",
        Field.CPPTYPE_STRING: "string",
    }


def _fields(message: Any) -> dict[str, Any]:
    return {field.name: _value(message, field) for field in message.DESCRIPTOR.fields}


def _value(message: Any, field: Any) -> Any:
    if field.has_presence and not message.HasField(field.name):
        return None
    value = getattr(message, field.name)
    if _is_map(field):
        of_value = field.message_type.fields_by_name["value"]
        return [(key, _single(each, of_value)) for key, each in value.items()]
    if field.is_repeated:
        return [_single(each, field) for each in value]
    return _single(value, field)


def _single(value: Any, field: Any) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            return value.ToDatetime(tzinfo=UTC)
        return _fields(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known is not None else str(value)
    return value


def _is_map(field: Any) -> bool:
    return (
        field.message_type is not None
        and field.message_type.GetOptions().map_entry
        and field.is_repeated
    )
