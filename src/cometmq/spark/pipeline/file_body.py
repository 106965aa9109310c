"""The part of a pipeline file that says how bodies become columns, and where those go that cannot be decoded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cometmq.spark.pipeline.definition import BODY_FORMATS, Body, DeadLetters
from cometmq.spark.pipeline.document import Fields, Node, Reader, Text

_KEYS: Final = ("format", "schema", "file", "message", "as", "deadLetters")
_STOP: Final = "stop"


def read_body(
    reader: Reader, node: Node | None, what: str, source_format: str, options: Mapping[str, str]
) -> Body | None:
    """How the body of a source's messages becomes columns; None where the file says nothing of it."""
    if node is None:
        return None
    owner = f"body of {what}"
    fields = reader.fields(node, owner, _KEYS)
    format_name = reader.needed_choice(fields, "format", owner, BODY_FORMATS)
    schema = reader.text(fields.values.get("schema"), f"schema of {owner}")
    file = reader.text(fields.values.get("file"), f"file of {owner}")
    message = reader.text(fields.values.get("message"), f"message of {owner}")
    if format_name in ("json", "json-lines") and not schema:
        reader.mistake(
            fields.line,
            f"{owner} needs schema: columns and types, such as 'order INT, amount DOUBLE'",
        )
    if format_name == "avro" and not (schema or file):
        reader.mistake(
            fields.line, f"{owner} needs file: a schema file (.avsc), or schema: its text"
        )
    if format_name == "protobuf" and not (file and message):
        reader.mistake(
            fields.line,
            f"{owner} needs file: a descriptor set (protoc --include_imports --descriptor_set_out), "
            "and message: the full name of the message type",
        )
    return Body(
        line=fields.line,
        format=format_name,
        schema=schema,
        file=_beside(reader, file),
        message=message,
        as_column=reader.text(fields.values.get("as"), f"as of {owner}"),
        dead_letters=_dead_letters(reader, fields, owner, format_name, source_format, options),
    )


def _beside(reader: Reader, file: str | None) -> str | None:
    """Files of schemas stand beside the pipeline file, wherever it is run from."""
    return None if file is None else str(Path(reader.file).parent / file)


def _dead_letters(
    reader: Reader,
    fields: Fields,
    owner: str,
    format_name: str,
    source_format: str,
    options: Mapping[str, str],
) -> DeadLetters | None:
    node = fields.values.get("deadLetters")
    if node is None:
        if format_name not in ("raw", ""):
            reader.mistake(
                fields.line,
                f"{owner} needs deadLetters: a topic for what cannot be decoded, or '{_STOP}' to end the run",
            )
        return None
    if isinstance(node, Text):
        topic, own = node.value, dict[str, str]()
    else:
        part = reader.fields(node, f"deadLetters of {owner}", ("topic", "options"))
        topic = reader.required(part, "topic", f"deadLetters of {owner}", "the topic to write to")
        own = reader.pairs(part.values.get("options"), f"options of deadLetters of {owner}")
    if topic == _STOP:
        return DeadLetters(topic=None)
    if not topic:
        reader.mistake(node.line, f"deadLetters of {owner} has no topic; name one, or '{_STOP}'")
    is_reached = "nameServers" in own or "connectionFile" in own
    if source_format not in ("rocketmq", "") and not is_reached:
        reader.mistake(
            node.line,
            f"deadLetters of {owner} needs options: nameServers, as the source itself has no name server",
        )
    return DeadLetters(topic=topic, options=own)
