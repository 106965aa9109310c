"""Avro schemas as Spark types, and Avro bodies as dictionaries of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from cometmq.base.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from cometmq.spark.bodies.body_formats import Decode

_DEPTH_MAX: Final = 32


def avro_decoder(schema: str) -> tuple[StructType, Callable[[], Decode]]:
    """The columns of a schema, and what makes a decoder for it in a worker.

    Raises:
        ConfigError: the package is missing, or the schema is none, or no record.
    """
    try:
        import fastavro
        import fastavro.schema
    except ImportError:
        raise ConfigError(
            "Avro bodies need the package fastavro: pip install 'cometmq[avro]'"
        ) from None
    from pyspark.sql.types import StructType

    try:
        parsed = fastavro.schema.parse_schema(json.loads(schema))
    except (
        ValueError,
        KeyError,
        fastavro.schema.SchemaParseException,
        fastavro.schema.UnknownType,
    ) as error:
        raise ConfigError(f"this is no Avro schema: {type(error).__name__}: {error}") from None
    columns = _spark_type(parsed, {}, 0)
    if not isinstance(columns, StructType):
        raise ConfigError(f"expected an Avro schema of a record, not {columns.simpleString()}")

    def make() -> Decode:
        import fastavro
        import fastavro.schema

        reader_schema = fastavro.schema.parse_schema(json.loads(schema))

        def decode(body: bytes) -> dict[str, Any]:
            stream = io.BytesIO(body)
            record = fastavro.schemaless_reader(stream, reader_schema, None)
            left = len(body) - stream.tell()
            if left:
                raise ValueError(f"{left} bytes are left behind the record")
            assert isinstance(record, dict), record
            return record

        return decode

    return columns, make


_SIMPLE: Final = {
    "null": "void",
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
    "enum": "string",
    "fixed": "binary",
}
_LOGICAL: Final = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}


def _spark_type(schema: Any, named: dict[str, Any], depth: int) -> DataType:
    from pyspark.sql.types import (
        ArrayType,
        DataType,
        DecimalType,
        MapType,
        StringType,
        StructField,
        StructType,
    )

    if depth > _DEPTH_MAX:
        raise ConfigError(f"the Avro schema is nested deeper than {_DEPTH_MAX}, or contains itself")
    if isinstance(schema, list):
        kinds = [each for each in schema if each != "null"]
        if len(kinds) != 1:
            raise ConfigError(
                f"expected a union of null and one type, not {json.dumps(schema)}: a column has one type"
            )
        return _spark_type(kinds[0], named, depth)
    if isinstance(schema, str):
        if schema in named:
            return _spark_type(named[schema], named, depth + 1)
        return DataType.fromDDL(_SIMPLE[schema])
    kind, logical = schema["type"], schema.get("logicalType")
    if "name" in schema:
        named[schema["name"]] = schema
    if kind == "record":
        fields = schema["fields"]
        return StructType(
            [
                StructField(each["name"], _spark_type(each["type"], named, depth + 1))
                for each in fields
            ]
        )
    if kind == "array":
        return ArrayType(_spark_type(schema["items"], named, depth + 1))
    if kind == "map":
        return MapType(StringType(), _spark_type(schema["values"], named, depth + 1))
    if logical == "decimal":
        return DecimalType(schema["precision"], schema.get("scale", 0))
    if logical in _LOGICAL:
        return DataType.fromDDL(_LOGICAL[logical])
    if logical is not None:
        raise ConfigError(f"the Avro type {logical} has no Spark type here; drop logicalType")
    return _spark_type(kind, named, depth + 1) if kind in named else DataType.fromDDL(_SIMPLE[kind])
