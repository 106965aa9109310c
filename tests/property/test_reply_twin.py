"""Replies to sends that the compiled twin reads: what waiters get is what they get the general way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cometmq.base.errors import CometError
from cometmq.client.core.send.send_result import send_result
from cometmq.model.address import pack_host
from cometmq.model.message_queue import MessageQueue
from cometmq.native.choice import twin
from cometmq.protocol.command import BINARY, FLAG_RESPONSE, Command
from cometmq.protocol.frame import FrameDecoder, encode_bytes
from cometmq.protocol.send_reply import SendReplies, Stored

NATIVE = twin("messages")
pytestmark = pytest.mark.skipif(NATIVE is None, reason="the twin is not compiled")

QUEUE = MessageQueue("b", 0, "T")
WAITING = range(20)
REPLIES = SendReplies(pack_host("10.0.0.7", 10911), {"MSG_REGION": "R", "TRACE_ON": "true"})
WORDS = ["", "0", "1", "-1", "+5", "007", "true", "false", "TRUE", "R", '"', "\\", "é", "\x7f"]
WORDS += ["9" * 9, "9" * 10, "9" * 18, "9" * 19, "9223372036854775807"]
KEYS = ["msgId", "queueId", "queueOffset", "MSG_REGION", "TRACE_ON", "transactionId"]
KEYS += ["recallHandle", "batchUniqId", "other"]
HEADERS = [
    '{"code":0,"extFields":{"queueId":"0","TRACE_ON":"true","MSG_REGION":"DefaultRegion","msgId":"7F01","queueOffset":"5"'
    '},"flag":1,"language":"JAVA","opaque":%d,"serializeTypeCurrentRPC":"JSON","version":399}',
    '{"opaque":%d,"code":0,"flag":1,"extFields":{"msgId":"A","queueId":"3","queueOffset":"0"}}',
    '{"code": 0, "flag":1, "opaque":%d}',
    '{"code":0,"flag":1,"opaque":%d,"extFields":{"msgId":"A","queueId":"3","queueOffset":"0"},"opaque":7}',
    '{"code":0,"flag":1,"opaque":%d,"extFields":{"msgId":"A","queueId":"3","queueOffset":"0"},"remark":null}',
    '{"code":0,"flag":1,"opaque":0%d,"extFields":{"msgId":"A","queueId":"3","queueOffset":"0"}}',
    '{"code":0,"flag":1,"opaque":%d,"extFields":{},"extFields":{"msgId":"A","queueId":"3","queueOffset":"0"}}',
    '{"code":0,"opaque":%d,"extFields":{"msgId":"A","queueId":"3","queueOffset":"0"}}',
    '{"code":0,"flag":1,"opaque":%d,"extFields":{"msgId":"A","queueId":"3","queueOffset":"0"},"extFields":{"msgId":"B"}}',
    "[%d]",
]


def _frame(header: str, opaque: int) -> bytes:
    text = (header % opaque).encode()
    return (4 + len(text)).to_bytes(4, "big") + len(text).to_bytes(4, "big") + text


replies = st.builds(
    lambda opaque, offset: REPLIES.frame(0, opaque, 0, 1 << 40, opaque & 3, offset),
    st.sampled_from(WAITING),
    st.integers(0, 1 << 62),
)
commands = st.builds(
    lambda code, ext, opaque, flag, encoding, remark, body: encode_bytes(
        Command(code, ext, body, flag, opaque, remark, encoding=encoding)
    ),
    st.sampled_from([0, 0, 0, 10, 1]),
    st.none()
    | st.fixed_dictionaries(
        {"msgId": st.just("A1"), "queueId": st.just("2"), "queueOffset": st.just("44")},
        optional={key: st.sampled_from(WORDS) for key in KEYS[3:]},
    )
    | st.dictionaries(st.sampled_from(KEYS), st.sampled_from(WORDS)),
    st.integers(0, 22),
    st.sampled_from([FLAG_RESPONSE, FLAG_RESPONSE, 0, 3]),
    st.sampled_from([0, 0, BINARY]),
    st.sampled_from([None, None, "no"]),
    st.sampled_from([b"", b"", b"body"]),
)
headers = st.builds(_frame, st.sampled_from(HEADERS), st.sampled_from(WAITING))
streams = st.lists(replies | commands | headers, max_size=8).map(b"".join)


class Waiters:
    """Some calls, of which some may get their reply as ``Stored``."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.table: dict[int, Any] = {
            opaque: (loop.create_future(), 9.0, 310, None, 0, opaque % 5 != 4) for opaque in WAITING
        }
        self.futures = {opaque: waiter[0] for opaque, waiter in self.table.items()}

    def outcomes(self) -> dict[int, object]:
        return {
            opaque: _outcome(future.result())
            for opaque, future in self.futures.items()
            if future.done()
        }


def _outcome(reply: Command | Stored) -> object:
    try:
        return send_result(reply, "10.0.0.7:10911", QUEUE, "id")
    except CometError as error:
        return type(error), str(error)


def _go(data: bytes, *, natively: bool) -> tuple[dict[int, object], int, list[str]]:
    """What waiters got, how many bytes the twin took, and what came besides: other commands, and an error."""
    loop = asyncio.new_event_loop()
    try:
        waiters = Waiters(loop)
        taken = NATIVE.answer_plain(data, waiters.table, Stored) if natively else 0
        others: list[str] = []
        try:
            for command in FrameDecoder().feed(data[taken:]):
                waiter = waiters.table.pop(command.opaque, None) if command.is_response else None
                if waiter is None:
                    others.append(repr(command))
                else:
                    waiter[0].set_result(command)
        except CometError as error:
            others.append(repr(error))
        assert waiters.table.keys() == {
            o for o, future in waiters.futures.items() if not future.done()
        }
        return waiters.outcomes(), taken, others
    finally:
        loop.close()


def check_same(data: bytes) -> int:
    expected, _, others = _go(data, natively=False)
    found, taken, found_others = _go(data, natively=True)
    assert found == expected
    assert found_others == others
    return taken


@given(streams)
@example(b"".join(_frame(header, opaque) for opaque, header in enumerate(HEADERS)))
def test_whole_replies(stream: bytes) -> None:
    check_same(stream)


@pytest.mark.parametrize("header", HEADERS)
def test_headers_of_others(header: str) -> None:
    check_same(_frame(header, 3) + _frame(HEADERS[0], 5))


@given(streams, st.data())
def test_damaged_replies(stream: bytes, data: st.DataObject) -> None:
    damaged = bytearray(stream)
    for _ in range(data.draw(st.integers(1, 3)) if stream else 0):
        at = data.draw(st.integers(0, len(stream) - 1))
        damaged[at] = data.draw(st.sampled_from(b'\x00"{}:,\\ 019a\xff') | st.integers(0, 255))
    check_same(bytes(damaged[: data.draw(st.integers(0, len(stream)))]))
    check_same(bytes(damaged))


def test_plain_replies_are_taken_up_to_the_first_other() -> None:
    plain = [REPLIES.frame(0, opaque, 0, 7, 1, 5) for opaque in (0, 1, 2)]
    java = _frame(HEADERS[0], 3)
    stream = b"".join([*plain, java])
    assert check_same(stream) == len(stream)
    assert check_same(stream[:-1]) == len(stream) - len(java)
    # Nobody waits for 21; whoever waits for 4 wants a command.
    for other in (REPLIES.frame(0, 21, 0, 7, 1, 5), REPLIES.frame(0, 4, 0, 7, 1, 5)):
        assert check_same(plain[0] + other + plain[1]) == len(plain[0])


def test_a_reply_that_nobody_waits_for_any_more_is_taken_without_error() -> None:
    loop = asyncio.new_event_loop()
    waiters = Waiters(loop)
    waiters.futures[0].cancel()
    frame = REPLIES.frame(0, 0, 0, 7, 1, 5)
    assert NATIVE.answer_plain(frame, waiters.table, Stored) == len(frame)
    assert 0 not in waiters.table
    loop.close()
