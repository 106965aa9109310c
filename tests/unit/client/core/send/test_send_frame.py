"""Frames of plain sends: byte for byte those of the general way, or left to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cometmq.client.core.send import send_frame
from cometmq.client.core.send.prepare import Envelope, pack_body, prepare
from cometmq.client.core.send.send_frame import SendFrames
from cometmq.model.flags import COMPRESSION_ZLIB
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import Message
from cometmq.protocol.frame import encode_bytes

ENVELOPE = Envelope(
    group='a "group" \\', default_topic="TBW102", default_topic_queue_nums=4, unit_mode=False
)


def _prepare(message: Message, born_ms: int = 1_700_000_000_123, wire_topic: str = "T") -> Any:
    return prepare(
        ENVELOPE,
        wire_topic,
        message,
        message_id="7F0000010D2A5A1B2C3D000A0001B00C",
        born_ms=born_ms,
        body_bytes_max=1000,
    )


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), max_size=20)


@given(
    tags=st.none() | TEXT,
    keys=st.lists(TEXT, max_size=2),
    body=st.binary(min_size=1, max_size=50),
    born_ms=st.integers(0, 1 << 62),
    opaque=st.integers(0, (1 << 31) - 1),
    queue_id=st.integers(0, 9),
)
@example(tags='"\\/\x00\x7f\u2028é\U0001f600', keys=[], body=b"x", born_ms=0, opaque=0, queue_id=0)
def test_the_same_bytes_as_the_general_way(
    tags: str | None, keys: list[str], body: bytes, born_ms: int, opaque: int, queue_id: int
) -> None:
    frames = SendFrames()
    queue = MessageQueue("broker-a", queue_id, "T")
    # Names that look like the text around what differs.
    for topic in ("T", "1000000001", "properties"):
        message = Message(topic=topic, body=body, tags=tags, keys=keys)
        request = _prepare(message, born_ms, topic)
        command = request.to(queue)
        command.opaque = opaque
        head = frames.head(request, queue, opaque)
        assert head is not None
        assert head + body == encode_bytes(command)


@pytest.mark.parametrize(
    "fields",
    [
        {"flag": 9},
        {"internal_properties": {"TRAN_MSG": "true"}},
        {"internal_properties": {"MSG_TYPE": "reply"}},
    ],
)
def test_others_take_the_general_way(fields: dict[str, Any]) -> None:
    assert not _prepare(Message(topic="T", body=b"x", **fields)).is_plain


def test_a_text_that_is_no_utf_8_takes_the_general_way() -> None:
    request = _prepare(Message(topic="T", body=b"x", tags="\ud800"))
    assert SendFrames().head(request, MessageQueue("b", 0, "T"), 1) is None


def test_a_compressed_body_takes_the_general_way() -> None:
    request = _prepare(Message(topic="T", body=b"x" * 500))
    assert request.is_plain
    pack_body(request, COMPRESSION_ZLIB)
    assert not request.is_plain


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_frame, "SHAPES_MAX", 3)
    frames = SendFrames()
    request = _prepare(Message(topic="T", body=b"x"))
    for _ in range(2):
        for number in range(7):
            assert frames.head(request, MessageQueue("b", number, "T"), number) is not None
            assert len(frames._shapes) <= 3
