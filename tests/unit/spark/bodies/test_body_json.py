"""Why a body is not the JSON that was expected, in words for its sender."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import IntegerType, StructField, StructType

from cometmq.spark.bodies.body_json import reason_for

reason = reason_for(StructType([StructField("order", IntegerType(), nullable=False)]))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"order":1}\n{"order":2}', 'got more from character 12 on: {"order":2}; objects on'),
        (b'{"order":1}garbage', "got more from character 11 on: garbage; objects on"),
        ('{"größe":1} ü'.encode(), "got more from character 12 on: ü; objects on"),
        (b'{"order":1}' + b"x" * 1000, "on: " + "x" * 80 + "…; objects on"),
        (b"[1] 2", "got more from character 4 on: 2; objects on"),
        (b"nope", "not JSON: Expecting value"),
        (b"[1]", "expected a JSON object, got [1]"),
        (b"{}", "field order is missing"),
    ],
)
def test_reasons(body: bytes, text: str) -> None:
    assert text in reason(body)
