"""Requests of Java clients to a Java 4.9.7 broker: ours answers with the same code and the same fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cometmq.model.topic import TopicConfig
from cometmq.protocol.command import Command
from cometmq.protocol.frame import decode_bytes

GOLDEN = Path(__file__).parents[2] / "golden" / "frames-4.9.jsonl"
CODES = {10, 310, 320, 36, 14, 15, 29, 30, 31, 32, 34, 35, 41, 42}


def pairs() -> Iterator[tuple[str, Command, Command]]:
    found: dict[str, dict[str, Command]] = {}
    for entry in map(json.loads, GOLDEN.read_text().splitlines()):
        ends = entry["from"] + entry["to"]
        if entry["request_code"] in CODES and "broker 4.9.7" in ends and "acl" not in ends.lower():
            frame = decode_bytes(bytes.fromhex(entry["frame_hex"]))
            found.setdefault(entry["pair"], {})[entry["direction"]] = frame
    for name, pair in found.items():
        if len(pair) == 2:
            yield name, pair["request"], pair["response"]


def topics_of(request: Command) -> set[str]:
    ext = request.ext or {}
    return {ext[key] for key in ("topic",) if ext.get(key)}


@pytest.mark.parametrize(
    ("request_frame", "expected"),
    [pytest.param(request, reply, id=f"{name}-{request.code}") for name, request, reply in pairs()],
)
def test_the_answer_has_javas_code_and_fields(
    rig: Any, request_frame: Command, expected: Command
) -> None:
    for topic in topics_of(request_frame):
        rig.topics.put(TopicConfig(topic_name=topic))
    if request_frame.code == 36 and expected.code == 0:
        # Our log is empty: the message that is sent back lies elsewhere.
        rig.send("T")
        request_frame.ext = {**(request_frame.ext or {}), "offset": "0"}
    reply = rig.dispatch(request_frame)[-1]
    assert reply.code == expected.code, (reply.remark, expected.remark)
    assert reply.opaque == expected.opaque
    assert reply.encoding == expected.encoding
    if expected.code == 0:
        assert set(reply.ext or {}) == set(expected.ext or {})
        assert bool(reply.body) == bool(expected.body)
    elif expected.ext and "e" in (request_frame.ext or {}):
        # Without its queue id, or with text in a number, it is refused by both, each in its own words.
        assert reply.ext == expected.ext
        assert reply.remark == expected.remark
