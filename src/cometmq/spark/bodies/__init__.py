"""Bodies of messages into columns, and the formats they may have."""

from __future__ import annotations

from cometmq.spark.bodies.body_formats import (
    AvroBody,
    JsonBody,
    ProtobufBody,
    RawBody,
    Split,
    TextBody,
    decode,
)

__all__ = ["AvroBody", "JsonBody", "ProtobufBody", "RawBody", "Split", "TextBody", "decode"]
