"""Frames recorded between a Java controller and its brokers: typed headers and bodies, and back to the bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.protocol_registry import REPLY_BODIES, REPLY_HEADERS, REQUEST_BODIES, REQUEST_HEADERS

from cometmq.protocol import fastjson
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.frame import decode_bytes, encode_bytes

GOLDEN = Path(__file__).parents[1] / "golden" / "ha" / "controller-5.5.0.jsonl"


def recorded() -> Iterator[tuple[dict[str, Any], Command]]:
    for line in GOLDEN.read_text().splitlines():
        entry = json.loads(line)
        yield entry, decode_bytes(bytes.fromhex(entry["frame_hex"]))


def test_every_frame_is_written_as_it_was_read() -> None:
    for entry, command in recorded():
        if not (entry.get("hand") and entry["direction"] == "request"):
            assert encode_bytes(command) == bytes.fromhex(entry["frame_hex"]), entry["name"]


def test_typed_headers_round_trip() -> None:
    seen = set()
    for entry, command in recorded():
        if not command.ext:
            continue
        is_request = entry["direction"] == "request"
        code = RequestCode(entry["request_code"])
        header_class = (REQUEST_HEADERS if is_request else REPLY_HEADERS)[code]
        encoded = encode_fields(decode_fields(header_class, command.ext))
        if entry.get("hand") and is_request:
            assert encoded.items() >= command.ext.items(), entry["name"]
        else:
            assert encoded == command.ext, entry["name"]
        seen.add((code, is_request))
    assert len(seen) == 16


def test_typed_bodies_round_trip() -> None:
    seen = set()
    for entry, command in recorded():
        if not command.body:
            continue
        is_request = entry["direction"] == "request"
        code = RequestCode(entry["request_code"])
        body_type = (REQUEST_BODIES if is_request else REPLY_BODIES)[code]
        body = bytes(command.body)
        assert fastjson.dumps(fastjson.decode(body, body_type)) == body, entry["name"]
        seen.add((code, is_request))
    assert len(seen) == 9
