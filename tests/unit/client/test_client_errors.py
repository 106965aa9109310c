"""The client's own errors: RocketMQ's codes, and what to do."""

from __future__ import annotations

from cometmq.base.errors import CallTimedOut, ConnectFailed, UsageError
from cometmq.client import errors
from cometmq.client.errors import ClientError, client_code


def _all_classes(root: type[ClientError]) -> list[type[ClientError]]:
    return [each for child in root.__subclasses__() for each in (child, *_all_classes(child))]


def test_each_class_has_a_code_of_rocketmqs_client_and_advice() -> None:
    classes = _all_classes(ClientError)
    assert {each.code for each in classes} >= {10003, 10004, 10005, 10006, 10007}
    for each in classes:
        assert str(each("what happened")) == f"what happened; {each.advice}"


def test_network_errors_have_codes_too() -> None:
    assert client_code(ConnectFailed("x")) == 10001
    assert client_code(CallTimedOut("x", sent=True)) == 10002
    assert client_code(errors.NoRoute("x")) == 10005
    assert client_code(errors.BrokerNotKnown("x")) == 10003
    assert client_code(UsageError("x")) is None


def test_what_a_retry_loop_asks() -> None:
    assert errors.NoRoute.retryable
    assert errors.NoRoute.route_is_stale
    assert errors.NoNameServer.retryable
    assert not errors.NoNameServer.route_is_stale
    assert not errors.RequestTimedOut.retryable
