"""The copy of a message for the retry topic, and the rates that operators see."""

from __future__ import annotations

import pytest

from cometmq.client.core.consume.consume_rates import Counters, Rates, RateWindow
from cometmq.client.core.send.retry_message import retry_header
from cometmq.model.messages.properties import parse_properties
from cometmq.model.messages.received_message import ReceivedMessage


def _header(message: ReceivedMessage) -> dict[str, object]:
    header = retry_header(
        message,
        group="g",
        origin_topic="T",
        reconsume_times=message.reconsume_times + 1,
        reconsume_times_max=16,
        now_ms=1234,
    )
    return {
        "topic": header.topic,
        "group": header.producer_group,
        "times": (header.reconsume_times, header.max_reconsume_times),
        "born": header.born_timestamp,
        "pairs": parse_properties(header.properties),
    }


def test_a_copy_knows_where_it_comes_from_and_how_often_it_was_tried() -> None:
    message = ReceivedMessage(
        topic="T",
        body=b"x",
        physical_offset=77,
        reconsume_times=2,
        properties={
            "UNIQ_KEY": "id",
            "colour": "red",
            "MIN_OFFSET": "0",
            "MAX_OFFSET": "9",
            "TRAN_MSG": "true",
        },
    )
    assert _header(message) == {
        "topic": "%RETRY%g",
        "group": "CLIENT_INNER_PRODUCER",
        "times": (3, 16),
        "born": 1234,
        "pairs": {
            "UNIQ_KEY": "id",
            "colour": "red",
            "ORIGIN_MESSAGE_ID": message.offset_id,
            "RETRY_TOPIC": "T",
            "DELAY": "5",
            "WAIT": "true",
        },
    }


def test_the_first_of_all_ids_is_kept() -> None:
    message = ReceivedMessage(topic="T", body=b"x", properties={"ORIGIN_MESSAGE_ID": "first"})
    pairs = _header(message)["pairs"]
    assert isinstance(pairs, dict)
    assert pairs["ORIGIN_MESSAGE_ID"] == "first"


def test_rates_are_those_of_the_last_minute() -> None:
    window = RateWindow()
    assert window.rates() == Rates()
    for second in range(0, 130, 5):
        # Ten a second in the first minute, then twenty, each with 2 ms in the listener.
        consumed = second * 10 if second <= 60 else 600 + (second - 60) * 20
        window.sample(second, Counters(consumed, consumed, consumed * 0.002, second))
    rates = window.rates()
    assert (rates.pulled, rates.consumed, rates.failed) == (20.0, 20.0, 1.0)
    assert rates.consume_ms == pytest.approx(2.0)


def test_counters_of_queues_that_left_are_added() -> None:
    assert Counters(1, 2, 0.5, 3).plus(Counters(10, 20, 1.5, 30)) == Counters(11, 22, 2.0, 33)


@pytest.mark.parametrize(("body_error", "sys_flag"), [(None, 0), ("cut off", 0x201)])
def test_a_body_that_is_still_packed_stays_marked_as_such(
    body_error: str | None, sys_flag: int
) -> None:
    message = ReceivedMessage(topic="T", body=b"x", sys_flag=0x211, body_error=body_error)
    header = retry_header(
        message,
        group="g",
        origin_topic="T",
        reconsume_times=1,
        reconsume_times_max=16,
        now_ms=1234,
    )
    assert header.sys_flag == sys_flag
