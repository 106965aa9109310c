"""Which messages share a call of a listener."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cometmq.client.core.consume.call_size import call_size
from cometmq.model.messages.received_message import ReceivedMessage


def calls(are_bad: list[bool], count_max: int) -> list[list[bool]]:
    messages = [
        ReceivedMessage(topic="T", body=b"x", body_error="bad" if is_bad else None)
        for is_bad in are_bad
    ]
    found, at = [], 0
    while at < len(messages):
        size = call_size(messages, at, count_max)
        found.append(are_bad[at : at + size])
        at += size
    return found


def test_one_that_cannot_be_read_is_alone() -> None:
    good, bad = False, True
    assert calls([good, good, bad, good, bad, bad, good], 4) == [
        [good, good],
        [bad],
        [good],
        [bad],
        [bad],
        [good],
    ]


@given(st.lists(st.booleans(), max_size=20), st.integers(1, 6))
def test_every_message_is_in_one_call_and_those_that_can_share_one_do(
    are_bad: list[bool], count_max: int
) -> None:
    found = calls(are_bad, count_max)
    assert [is_bad for call in found for is_bad in call] == are_bad
    for call, following in zip(found, [*found, [True]][1:], strict=True):
        assert call == [True] or not any(call)
        assert 1 <= len(call) <= count_max
        # It ends where it is full, or where the next one cannot be read.
        assert call == [True] or len(call) == count_max or following == [True]
