"""The handle of a timed message, in RocketMQ's form."""

from __future__ import annotations

import base64

import pytest

from cometmq.base.errors import UsageError
from cometmq.model.messages.recall_handle import RecallHandle, decode_recall_handle

JAVA = (
    "djEgVDU1X3RpbWVyIGI1NSAxNzk0Nzc5OTY2MDAxIEZEMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAy"
    "MzRFMjRFMEUyRjJBNENEMDE5MjUwMDE5"
)


def test_a_handle_of_rocketmq() -> None:
    handle = decode_recall_handle(JAVA)
    assert handle == RecallHandle("T55_timer", "b55", 1794779966001, handle.unique_key)
    assert handle.unique_key == "FD00000000000000000000000000000234E24E0E2F2A4CD019250019"
    assert handle.encode() == JAVA


def test_padding_may_be_missing() -> None:
    handle = RecallHandle("T", "b", 1, "K")
    assert decode_recall_handle(handle.encode().rstrip("=")) == handle


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x" * 5000,
        "%%%",
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        base64.urlsafe_b64encode(b"v2 T b 1 K").decode(),
        base64.urlsafe_b64encode(b"v1 T b 1").decode(),
        base64.urlsafe_b64encode(b"v1 T b soon K").decode(),
        base64.urlsafe_b64encode(b"v1 T b -1 K").decode(),
    ],
)
def test_what_is_no_handle(text: str) -> None:
    with pytest.raises(UsageError, match="recall handle is invalid"):
        decode_recall_handle(text)
