"""What became of a message, by position and subscription."""

from __future__ import annotations

import pytest

from cometmq.admin import TrackType
from cometmq.admin.messages.fate import track_type
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.model.subscription import SQL92, SubscriptionData, build_subscription

MESSAGE = ReceivedMessage(topic="orders", body=b"", properties={"TAGS": "paid"}, queue_offset=7)


@pytest.mark.parametrize(
    ("position", "subscription", "expected"),
    [
        (None, build_subscription("orders", "*"), TrackType.NOT_CONSUME_YET),
        (7, build_subscription("orders", "*"), TrackType.NOT_CONSUME_YET),
        (8, build_subscription("orders", "*"), TrackType.CONSUMED),
        (8, None, TrackType.CONSUMED),
        (8, build_subscription("orders", "paid || open"), TrackType.CONSUMED),
        (8, build_subscription("orders", "open"), TrackType.CONSUMED_BUT_FILTERED),
        (8, build_subscription("orders", "a > 1", SQL92), TrackType.CONSUMED),
    ],
)
def test_track(
    position: int | None, subscription: SubscriptionData | None, expected: TrackType
) -> None:
    assert track_type(MESSAGE, position, subscription) is expected
