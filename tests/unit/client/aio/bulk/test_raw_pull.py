"""Replies that hold records as they are stored: what is made of them, and what is refused."""

from __future__ import annotations

import struct

import pytest

from cometmq.base.errors import RemoteProtocolError
from cometmq.client.aio.bulk.raw_pull import (
    bulk_pull_request,
    pull_request,
    read_bulk_pull,
    read_pull,
)
from cometmq.client.aio.pull.pull_call import PullStatus
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.headers.pull import BulkPullHeader, PullMessageHeader
from cometmq.protocol.reply_errors import RequestCodeNotSupported, SystemBusy

REQUEST = bulk_pull_request(
    BulkPullHeader(consumer_group="g", topic="T", queue_id=1, offset=5, max_bytes=9, max_count=2)
)
EXT = {"nextBeginOffset": "8", "minOffset": "2", "maxOffset": "90"}


def reply(code: int, body: bytes = b"", **ext: str) -> Command:
    return REQUEST.reply(code, ext={**EXT, **ext}, body=body)


def sizes(*values: int) -> bytes:
    return struct.pack(f">{len(values)}i", *values)


def test_a_bulk_pull_holds_records_and_their_sizes() -> None:
    assert REQUEST.code == RequestCode.BULK_PULL
    body = b"first" + b"second!" + sizes(5, 7)
    pulled = read_bulk_pull(reply(ResponseCode.SUCCESS, body, count="2"), "a:1")
    assert (pulled.status, pulled.next_offset) == (PullStatus.FOUND, 8)
    assert (pulled.min_offset, pulled.max_offset) == (2, 90)
    assert bytes(pulled.records) == b"firstsecond!"
    assert pulled.sizes is not None
    assert pulled.sizes.tolist() == [5, 7]


def test_sizes_may_come_without_records() -> None:
    answer = reply(ResponseCode.SUCCESS, sizes(5, 70_000), count="2")
    pulled = read_bulk_pull(answer, "a:1", sizes_only=True)
    assert pulled.sizes is not None
    assert (len(pulled.records), pulled.sizes.tolist()) == (0, [5, 70_000])


@pytest.mark.parametrize(
    ("body", "count", "reason"),
    [
        (b"1234567", "2", "reply of 7 bytes cannot hold 2 records"),
        (b"", "-1", "cannot hold -1 records"),
        (b"records" + sizes(3, 3), "2", "holds 7 bytes of records, its sizes say 6"),
    ],
)
def test_a_body_that_is_not_what_the_header_says_is_refused(
    body: bytes, count: str, reason: str
) -> None:
    with pytest.raises(RemoteProtocolError, match=reason):
        read_bulk_pull(reply(ResponseCode.SUCCESS, body, count=count), "a:1")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ResponseCode.PULL_NOT_FOUND, PullStatus.NO_NEW_MSG),
        (ResponseCode.PULL_RETRY_IMMEDIATELY, PullStatus.NO_MATCHED_MSG),
        (ResponseCode.PULL_OFFSET_MOVED, PullStatus.OFFSET_ILLEGAL),
    ],
)
def test_a_pull_that_brings_nothing_says_why(code: int, status: PullStatus) -> None:
    assert read_bulk_pull(reply(code, count="0"), "a:1").status is status
    assert read_pull(reply(code, suggestWhichBrokerId="0"), "a:1").status is status


def test_refusals_are_typed() -> None:
    refusal = REQUEST.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "no such request")
    with pytest.raises(RequestCodeNotSupported, match="a:1 answered 3"):
        read_bulk_pull(refusal, "a:1")
    with pytest.raises(SystemBusy):
        read_pull(REQUEST.reply(ResponseCode.SYSTEM_BUSY, "later"), "a:1")


def test_an_ordinary_pull_does_not_tell_sizes() -> None:
    header = PullMessageHeader(
        consumer_group="g", topic="T", queue_id=1, queue_offset=5, max_msg_nums=2, sys_flag=4
    )
    assert pull_request(header).code == RequestCode.PULL_MESSAGE
    pulled = read_pull(reply(ResponseCode.SUCCESS, b"records", suggestWhichBrokerId="0"), "a:1")
    assert (pulled.records, pulled.sizes, pulled.next_offset) == (b"records", None, 8)
