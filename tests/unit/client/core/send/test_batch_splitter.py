from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cometmq.base.errors import UsageError
from cometmq.client.core.send.batch_splitter import split_batch, travels_alone
from cometmq.client.core.send.prepare import Envelope, prepare, prepare_batch
from cometmq.model.messages.message import Message

ENVELOPE = Envelope(group="pg", default_topic="TBW102", default_topic_queue_nums=4, unit_mode=False)
MESSAGES = st.builds(
    Message,
    topic=st.sampled_from(["T", "U"]),
    body=st.binary(min_size=1, max_size=300),
    tags=st.none() | st.text(alphabet="äb", max_size=20),
    delay_level=st.sampled_from([0, 0, 0, 1]),
    wait_store_ok=st.sampled_from([True, True, False]),
)


@given(messages=st.lists(MESSAGES, max_size=30), bytes_max=st.integers(600, 2000))
def test_every_part_can_be_sent_and_nothing_is_lost_or_moved(
    messages: list[Message], bytes_max: int
) -> None:
    parts = list(split_batch(messages, bytes_max=bytes_max, count_max=5))
    assert [message for part in parts for message in part] == messages
    for part in parts:
        assert 1 <= len(part) <= 5
        if len(part) == 1 and travels_alone(part[0]):
            prepare(
                ENVELOPE, "T", part[0], message_id="0" * 56, born_ms=1, body_bytes_max=bytes_max
            )
        else:
            prepare_batch(
                ENVELOPE,
                "T",
                part,
                next_id=lambda now_ms: "0" * 56,
                born_ms=1,
                body_bytes_max=bytes_max,
            )


def test_parts_are_as_large_as_they_may_be() -> None:
    message = Message(topic="T", body=b"x" * 100)
    [first, *_] = split_batch([message] * 10, bytes_max=1000, count_max=100)
    # 100 of body, 22 around it, 77 of properties: five fit.
    assert len(first) == 5


def test_a_message_above_the_limit_is_refused() -> None:
    with pytest.raises(UsageError, match="at most 150"):
        list(split_batch([Message(topic="T", body=b"x" * 100)], bytes_max=150, count_max=9))
