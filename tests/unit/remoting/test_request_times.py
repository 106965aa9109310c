"""How long requests took, and which were slow."""

from __future__ import annotations

import re
from time import monotonic

import pytest

from cometmq.protocol.codes import RequestCode
from cometmq.remoting.times.request_times import (
    UNKNOWN,
    Outcome,
    RequestTimes,
    Wait,
    answer_name,
    request_name,
)

SEND = int(RequestCode.SEND_MESSAGE_V2)
PULL = int(RequestCode.PULL_MESSAGE)


def times(slow_ms: int = 0) -> RequestTimes:
    made = RequestTimes()
    made.is_on = True
    made.slow_from(slow_ms)
    return made


def over(made: RequestTimes, seconds: float, handling: float = 0.0) -> None:
    started = monotonic() - seconds
    made.turn_over(started, started + handling)


def test_what_a_turn_answered_took_as_long_as_the_turn() -> None:
    made = times()
    made.answered(SEND, 0, 3)
    made.answered(SEND, 2)
    made.answered(PULL, 0)
    over(made, 0.05)
    assert made.table[Outcome(SEND, 0)].counts[5] == 3
    assert made.table[Outcome(SEND, 2)].counts[5] == 1
    assert 0.15 <= made.table[Outcome(SEND, 0)].seconds < 3
    over(made, 9.0)
    assert sum(made.table[Outcome(PULL, 0)].counts) == 1


def test_waits_for_messages_are_told_apart_and_never_slow(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = times(slow_ms=10)
    made.took(PULL, 0, 15.0, Wait.MESSAGE)
    assert made.table[Outcome(PULL, 0, is_long_polling=True)].counts[-1] == 1
    assert (made.slow_count, caplog.messages) == (0, [])


def test_a_slow_turn_is_logged_with_its_phases(caplog: pytest.LogCaptureFixture) -> None:
    made = times(slow_ms=100)
    made.answered(SEND, 0, 2)
    over(made, 3.0, handling=1.0)
    [line] = caplog.messages
    found = re.fullmatch(
        r"slow requests took_ms=3(...) handling_ms=(\d+) storing_ms=(\d+) codes=send_message_v2:2",
        line,
    )
    assert found is not None, line
    assert 990 <= int(found[2]) <= 1000
    assert int(found[3]) >= 2000
    assert made.slow_count == 2


def test_a_request_that_waited_long_is_logged_with_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = times(slow_ms=100)
    made.took(SEND, 0, 0.05, Wait.DURABLE)
    made.took(SEND, 0, 1.5, Wait.DURABLE, count=40)
    [line] = caplog.messages
    assert line == (
        "slow request peer=several code=send_message_v2 answer=0 took_ms=1500 count=40 waited_for=disk or slaves"
    )


def test_off_nothing_is_kept_but_slow_ones_are_told(caplog: pytest.LogCaptureFixture) -> None:
    made = RequestTimes()
    made.slow_from(100)
    made.took(SEND, 0, 1.0, Wait.HANDLER, peer="a:1")
    over(made, 0.01)
    over(made, 0.5)
    assert made.table == {}
    assert "peer=a:1" in caplog.messages[0]
    assert caplog.messages[1].endswith("codes=not counted without metricsExporterType")
    assert made.slow_count == 2


def test_codes_have_the_names_of_rocketmq() -> None:
    assert request_name(SEND) == "send_message_v2"
    assert (request_name(UNKNOWN), request_name(99_999)) == ("unknown", "99999")
    assert (answer_name(0), answer_name(12_345)) == ("success", "12345")
