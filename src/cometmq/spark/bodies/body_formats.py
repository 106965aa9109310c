"""Bodies of messages into columns: JSON, Avro, Protobuf, text. What cannot be decoded is told apart, with the reason.

    split = decode(frame, JsonBody("order INT NOT NULL, amount DOUBLE"))
    split.good      the columns of the frame, ``body`` replaced by the fields of the schema
    split.failed    the rows that are left, as they came, and the column ``reason``

Every row is in exactly one of the two; with lines of JSON, every line is. JSON is decoded by Spark itself, and only
what failed is looked at in Python, for the reason; Avro and Protobuf are decoded in Python workers.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from cometmq.base.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

REASON: Final = "reason"
_VALUE: Final = "__value"
_CORRUPT: Final = "__corrupt"
_SCHEMA_BYTES_MAX: Final = 16 * 1024 * 1024

Decode = Callable[[bytes], dict[str, Any]]
"""The fields of one body. What it raises becomes the reason."""


@dataclass(frozen=True, slots=True)
class RawBody:
    """Bytes, left as they are."""


@dataclass(frozen=True, slots=True)
class TextBody:
    """UTF-8 text; the column ``body`` becomes a string."""


@dataclass(frozen=True, slots=True)
class JsonBody:
    """One JSON object a message. ``schema`` is Spark DDL; a body without a field that is NOT NULL fails.

    With ``is_lines`` a body has an object on each of its lines, and each line is a row, good or failed on its own.
    Lines of blanks are passed over.
    """

    schema: str
    is_lines: bool = False


@dataclass(frozen=True, slots=True)
class AvroBody:
    """One Avro record a message, without a header: what ``fastavro.schemaless_writer`` writes. ``schema`` is JSON."""

    schema: str


@dataclass(frozen=True, slots=True)
class ProtobufBody:
    """One Protobuf message; ``descriptors`` is a descriptor set with all imports, ``message`` a full type name."""

    descriptors: bytes
    message: str


BodyFormat = RawBody | TextBody | JsonBody | AvroBody | ProtobufBody


@dataclass(frozen=True, slots=True)
class Split:
    """``failed`` is None when nothing can fail."""

    good: DataFrame
    failed: DataFrame | None


def body_format(
    name: str, *, schema: str | None = None, file: str | None = None, message: str | None = None
) -> BodyFormat:
    """A format from its name and where its schema is.

    Raises:
        ConfigError: the file cannot be read, or something is missing.
    """
    if name == "raw":
        return RawBody()
    if name == "text":
        return TextBody()
    if name == "json":
        return JsonBody(_given(schema, "json bodies need a schema"))
    if name == "json-lines":
        return JsonBody(_given(schema, "json-lines bodies need a schema"), is_lines=True)
    if name == "avro":
        return AvroBody(schema or _read(_given(file, "avro bodies need a schema file")).decode())
    if name == "protobuf":
        return ProtobufBody(
            _read(_given(file, "protobuf bodies need a file with a descriptor set")),
            _given(message, "protobuf bodies need the full name of a message type"),
        )
    raise ConfigError(
        f"expected json, json-lines, avro, protobuf, text or raw as format of a body, not {name!r}"
    )


def decode(frame: DataFrame, body: BodyFormat, *, as_column: str | None = None) -> Split:
    """Decode the column ``body`` of a frame, batch or stream.

    Args:
        as_column: put the fields into one struct column of this name instead of beside the frame's own columns.

    Raises:
        ConfigError: the frame has no body, the schema cannot be used, or a field has the name of a column.
    """
    if "body" not in frame.columns:
        raise ConfigError(
            f"expected a column body to decode, found {', '.join(frame.columns)}; leave includeBody on"
        )
    if isinstance(body, RawBody):
        return Split(frame, None)
    if isinstance(body, TextBody):
        return _text(frame)
    if isinstance(body, JsonBody):
        return _json(frame, body, as_column)
    if isinstance(body, AvroBody):
        from cometmq.spark.bodies.body_avro import avro_decoder

        return _in_python(frame, *avro_decoder(body.schema), as_column)
    from cometmq.spark.bodies.body_protobuf import protobuf_decoder

    return _in_python(frame, *protobuf_decoder(body.descriptors, body.message), as_column)


def _text(frame: DataFrame) -> Split:
    from pyspark.sql import functions as F

    is_text = F.coalesce(F.expr("is_valid_utf8(body)"), F.lit(False))
    return Split(
        frame.filter(is_text).withColumn("body", F.col("body").cast("string")),
        frame.filter(~is_text).withColumn(REASON, F.lit("the body is not UTF-8 text")),
    )


def _json(frame: DataFrame, body: JsonBody, as_column: str | None) -> Split:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F
    from pyspark.sql.types import (
        ArrayType,
        BooleanType,
        DataType,
        StringType,
        StructField,
        StructType,
    )

    from cometmq.spark.bodies.body_json import reason_for

    try:
        schema = DataType.fromDDL(body.schema)
    except PySparkException as error:
        raise ConfigError(
            f"expected a schema such as 'order INT, amount DOUBLE', not {body.schema!r}: {first_line(error)}"
        ) from None
    if not isinstance(schema, StructType):
        raise ConfigError(
            f"expected columns and types in a schema, not the single type {body.schema!r}"
        )
    if body.is_lines:
        frame = _by_line(frame)
    # Spark reads the first value of a text and passes over what follows it. So the body becomes the first of two
    # elements of a list, between texts that no sender knows: whatever follows in the body breaks the list.
    end = f"end_{secrets.token_hex(8)}"
    element = StructType([*schema.fields, StructField(end, BooleanType())])
    whole = StructType([StructField(end, ArrayType(element)), StructField(_CORRUPT, StringType())])
    text = F.concat(
        F.lit(f'{{"{end}":['), F.col("body").cast("string"), F.lit(f',{{"{end}":true}}]}}')
    )
    value = F.from_json(text, whole, {"columnNameOfCorruptRecord": _CORRUPT})
    # Through a list of one, since Spark would copy a plain column into the filters below, and parse each body twice.
    parsed = frame.select("*", F.explode(F.array(value)).alias(_VALUE))
    elements = F.col(_VALUE)[end]
    value = F.get(elements, F.lit(0))
    # A body that is no UTF-8 would be read with its bad bytes replaced: data changed without a word.
    is_good = F.expr("is_valid_utf8(body)") & F.col(_VALUE)[_CORRUPT].isNull()
    is_good &= (F.size(elements) == 2) & F.get(elements, F.lit(1))[end] & value.isNotNull()
    for field in schema.fields:
        if not field.nullable:
            is_good &= value[field.name].isNotNull()
    is_good = F.coalesce(is_good, F.lit(False))
    return Split(
        _unpacked(parsed.filter(is_good), value.dropFields(end), schema, as_column),
        parsed.filter(~is_good).drop(_VALUE).withColumn(REASON, _text_of(reason_for(schema))),
    )


def _by_line(frame: DataFrame) -> DataFrame:
    """A row for each line of a body that is not blank. A body of none, or that is no text, stays one row and fails."""
    from pyspark.sql import functions as F

    lines = F.split(F.col("body").cast("string"), "\r?\n")
    lines = F.filter(lines, lambda line: line.rlike(r"\S"))
    is_text = F.expr("is_valid_utf8(body)") & (F.size(lines) > 0)
    binary = F.transform(lines, lambda line: line.cast("binary"))
    bodies = F.when(is_text, binary).otherwise(F.array("body"))
    return frame.withColumn("body", F.explode(bodies))


def _in_python(
    frame: DataFrame, schema: StructType, decoder: Callable[[], Decode], as_column: str | None
) -> Split:
    from pyspark.sql import functions as F

    parsed = frame.withColumn(_VALUE, _struct_of(schema, decoder))
    is_good = F.col(_VALUE)[REASON].isNull()
    return Split(
        _unpacked(parsed.filter(is_good), F.col(_VALUE)["value"], schema, as_column),
        parsed.filter(~is_good).withColumn(REASON, F.col(_VALUE)[REASON]).drop(_VALUE),
    )


def _unpacked(
    parsed: DataFrame, value: Column, schema: StructType, as_column: str | None
) -> DataFrame:
    """The frame with its body replaced: by one column, or by one for each field."""
    kept = [name for name in parsed.columns if name not in ("body", _VALUE)]
    if as_column is not None:
        if as_column in kept:
            raise ConfigError(
                f"as: the messages have a column {as_column} of their own; choose another"
            )
        return parsed.select(*kept, value.alias(as_column))
    lower = {name.lower() for name in kept}
    taken = [field.name for field in schema.fields if field.name.lower() in lower]
    if taken:
        raise ConfigError(
            f"the body has fields with the names of columns that every message has: {', '.join(taken)}; "
            "put them into a column of their own with as: NAME"
        )
    return parsed.select(*kept, *(value[field.name].alias(field.name) for field in schema.fields))


def _text_of(reason: Callable[[bytes | None], str]) -> Column:
    from pyspark.sql.functions import col
    from pyspark.sql.pandas.functions import arrow_udf

    def reasons(bodies: pa.Array) -> pa.Array:
        return pa.array([reason(body) for body in bodies.to_pylist()], pa.string())

    return arrow_udf(reasons, "string")(col("body"))  # type: ignore[call-overload, no-any-return]


def _struct_of(schema: StructType, decoder: Callable[[], Decode]) -> Column:
    """A struct of ``value`` and ``reason``, one of them null in each row."""
    from pyspark.sql.functions import col
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import StringType, StructField, StructType

    result = StructType([StructField("value", schema), StructField(REASON, StringType())])
    arrow_type = to_arrow_type(result, timezone="UTC")
    made: list[Decode] = []

    def decode_all(bodies: pa.Array) -> pa.Array:
        # Once in each worker: schemas are compiled, and compiled ones cannot be sent.
        if not made:
            made.append(decoder())
        rows = [_decode_one(made[0], body) for body in bodies.to_pylist()]
        try:
            return pa.array(rows, arrow_type)
        except (pa.ArrowException, OverflowError):
            return pa.array([_fitting(row, arrow_type) for row in rows], arrow_type)

    return arrow_udf(decode_all, result)(col("body"))  # type: ignore[call-overload, no-any-return]


def _decode_one(decode_body: Decode, body: bytes | None) -> dict[str, Any]:
    try:
        if body is None:
            raise ValueError("there is no body")
        return {"value": decode_body(body), REASON: None}
    # Bytes of strangers in the hands of a library that promises no error type: whatever it raises is the reason.
    except Exception as error:  # noqa: BLE001
        return {"value": None, REASON: f"{type(error).__name__}: {error}"[:1000]}


def _fitting(row: dict[str, Any], arrow_type: Any) -> dict[str, Any]:
    """The row, or why its values do not fit into their columns."""
    try:
        pa.array([row], arrow_type)
    except (pa.ArrowException, OverflowError) as error:
        return {"value": None, REASON: f"a value does not fit its column: {error}"[:1000]}
    return row


def first_line(error: Exception) -> str:
    """What Spark says, without its drawings and traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _given(value: str | None, complaint: str) -> str:
    if not value:
        raise ConfigError(complaint)
    return value


def _read(file: str) -> bytes:
    try:
        with Path(file).open("rb") as stream:
            data = stream.read(_SCHEMA_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"cannot read the schema file {file}: {error.strerror}") from None
    if len(data) > _SCHEMA_BYTES_MAX:
        raise ConfigError(f"the schema file {file} has more than {_SCHEMA_BYTES_MAX} bytes")
    return data
