from __future__ import annotations

import pytest

from cometmq.base.errors import (
    CallTimedOut,
    CometError,
    ConnectFailed,
    ConnectionLost,
    RemoteProtocolError,
    TooManyInFlight,
    UsageError,
)
from cometmq.client.core.send.send_retry import BUSY_CODES, RETRIED_CODES, RetryRules, SendMode
from cometmq.client.errors import BrokerNotKnown, NoNameServer, NoRoute
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import error_for

WAITING, BACKGROUND, ONEWAY = SendMode.WAITING, SendMode.BACKGROUND, SendMode.ONEWAY
NETWORK = [
    ConnectFailed("x"),
    ConnectionLost("x"),
    CallTimedOut("x", sent=True),
    TooManyInFlight("x"),
]
CLIENT = [NoRoute("x"), NoNameServer("x"), BrokerNotKnown("x")]


def _refusal(code: int) -> CometError:
    return error_for(Command(code), "127.0.0.1:10911")


@pytest.mark.parametrize(
    ("mode", "is_queue_given", "attempts"),
    [
        (WAITING, False, 3),
        (WAITING, True, 1),
        (BACKGROUND, False, 5),
        (BACKGROUND, True, 5),
        (ONEWAY, False, 1),
        (ONEWAY, True, 1),
    ],
)
def test_attempts(mode: SendMode, is_queue_given: bool, attempts: int) -> None:
    rules = RetryRules(retries=2, background_retries=4)
    assert rules.attempts(mode, is_queue_given=is_queue_given) == attempts


@pytest.mark.parametrize("error", NETWORK, ids=lambda error: type(error).__name__)
def test_network_errors_are_tried_again_by_all_that_wait(error: CometError) -> None:
    rules = RetryRules()
    assert rules.is_retried(error, WAITING, has_other_broker=False)
    assert rules.is_retried(error, BACKGROUND, has_other_broker=False)
    assert not rules.is_retried(error, ONEWAY, has_other_broker=True)


@pytest.mark.parametrize("error", CLIENT, ids=lambda error: type(error).__name__)
def test_a_missing_route_is_tried_again_by_waiting_sends(error: CometError) -> None:
    rules = RetryRules()
    assert rules.is_retried(error, WAITING, has_other_broker=False)
    assert not rules.is_retried(error, BACKGROUND, has_other_broker=False)


@pytest.mark.parametrize("code", [*ResponseCode, 31_999])
def test_of_a_brokers_answers_only_six_are_tried_again(code: int) -> None:
    rules = RetryRules()
    expected = code in {1, 14, 16, 17, 204, 205}
    assert rules.is_retried(_refusal(code), WAITING, has_other_broker=True) is expected
    # Once a broker has answered, a send in the background is over.
    assert not rules.is_retried(_refusal(code), BACKGROUND, has_other_broker=True)


@pytest.mark.parametrize("code", [2, 215])
def test_a_busy_broker_is_not_asked_again_at_once(code: int) -> None:
    assert not RetryRules().is_retried(_refusal(code), WAITING, has_other_broker=True)
    like_5 = RetryRules(codes=RETRIED_CODES | BUSY_CODES)
    assert like_5.is_retried(_refusal(code), WAITING, has_other_broker=True)
    assert not like_5.is_retried(_refusal(code), WAITING, has_other_broker=False)


def test_further_codes_can_be_tried_again() -> None:
    like_5 = RetryRules(codes=RETRIED_CODES | {2, 1500})
    assert like_5.is_retried(_refusal(1500), WAITING, has_other_broker=False)
    assert not RetryRules().is_retried(_refusal(1500), WAITING, has_other_broker=True)


@pytest.mark.parametrize("error", [UsageError("x"), RemoteProtocolError("x")])
def test_what_cannot_get_better_is_not_tried_again(error: CometError) -> None:
    assert not RetryRules().is_retried(error, WAITING, has_other_broker=True)


@pytest.mark.parametrize(
    ("error", "is_waited_out"),
    [
        (ConnectFailed("x"), True),
        (NoRoute("x"), True),
        (BrokerNotKnown("x"), True),
        (_refusal(ResponseCode.SERVICE_NOT_AVAILABLE), True),
        (CallTimedOut("x", sent=False), True),
        # It may be stored, so it costs an attempt.
        (CallTimedOut("x", sent=True), False),
        (ConnectionLost("x"), False),
        # A new master would not help.
        (TooManyInFlight("x"), False),
        (NoNameServer("x"), False),
        (UsageError("x"), False),
        (_refusal(ResponseCode.SYSTEM_BUSY), False),
        (_refusal(ResponseCode.MESSAGE_ILLEGAL), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_repeated_until_there_is_a_master(error: CometError, is_waited_out: bool) -> None:
    rules = RetryRules()
    assert rules.is_waited_out(error, WAITING) is is_waited_out
    assert rules.is_waited_out(error, BACKGROUND) is is_waited_out
    assert not rules.is_waited_out(error, ONEWAY)
    assert not RetryRules(retries=0).is_waited_out(error, WAITING)
    assert not RetryRules(background_retries=0).is_waited_out(error, BACKGROUND)
