"""The short way of a send's reply gives the bytes of the long one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cometmq.protocol.command import BINARY, FLAG_RESPONSE, JSON, Command
from cometmq.protocol.frame import encode_bytes
from cometmq.protocol.send_reply import SendReplies

HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
INT63 = st.integers(0, (1 << 63) - 1)


@given(
    code=st.sampled_from([0, 10, 11, 12]),
    opaque=st.integers(-(1 << 31), (1 << 31) - 1),
    encoding=st.sampled_from([JSON, BINARY]),
    physical_offset=INT63,
    queue_id=st.integers(0, (1 << 31) - 1),
    queue_offset=INT63,
)
def test_the_frame_is_that_of_the_command(
    code: int, opaque: int, encoding: int, physical_offset: int, queue_id: int, queue_offset: int
) -> None:
    ext = {"MSG_REGION": 'a "region" of 100% ü', "TRACE_ON": "true"}
    frame = SendReplies(HOST, ext).frame(
        code, opaque, encoding, physical_offset, queue_id, queue_offset
    )
    assert frame == encode_bytes(
        Command(
            code,
            {
                "msgId": f"7F00000100002A9F{physical_offset:016X}",
                "queueId": str(queue_id),
                "queueOffset": str(queue_offset),
                **ext,
            },
            b"",
            FLAG_RESPONSE,
            opaque,
            encoding=encoding,
        )
    )


@pytest.mark.parametrize("region", ["1000000001", "<queue id>", "1000000002"])
def test_a_region_that_looks_like_a_placeholder_is_kept(region: str) -> None:
    frame = SendReplies(HOST, {"MSG_REGION": region}).frame(0, 7, JSON, 1, 2, 3)
    ext = {"msgId": "7F00000100002A9F0000000000000001", "queueId": "2", "queueOffset": "3"}
    command = Command(0, {**ext, "MSG_REGION": region}, b"", FLAG_RESPONSE, 7)
    assert frame == encode_bytes(command)
