"""The error tree: what a retry loop may ask of every class."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from cometmq.base import errors

CLASSES = [
    value
    for _, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, Exception) and value.__module__ == errors.__name__
]


@pytest.mark.parametrize("error_class", CLASSES)
def test_every_error_is_a_comet_error_and_named_in_the_tree(error_class: type) -> None:
    assert issubclass(error_class, errors.CometError)
    assert error_class.__name__ in (errors.__doc__ or "")
    assert isinstance(error_class.retryable, bool)
    assert isinstance(error_class.route_is_stale, bool)


def test_usage_errors_are_value_errors() -> None:
    assert issubclass(errors.ConfigError, ValueError)


def test_a_network_failure_may_be_tried_elsewhere() -> None:
    assert errors.ConnectionLost("x").retryable
    assert errors.ConnectFailed("x").route_is_stale
    assert not errors.TooManyInFlight("x").route_is_stale
    assert not errors.RemoteProtocolError("x").retryable


def test_a_timeout_tells_whether_the_request_left() -> None:
    assert errors.CallTimedOut("late", sent=True).sent


def test_a_corrupt_file_is_named_with_advice() -> None:
    error = errors.CorruptFile("/store/checkpoint", "has 5 bytes", "Restore it from a backup.")
    assert str(error) == "/store/checkpoint: has 5 bytes. Restore it from a backup."


def test_an_error_of_the_system_is_shown_without_its_number() -> None:
    with pytest.raises(OSError, match="Errno") as missing:
        Path("/no/such").stat()
    assert errors.one_line(missing.value) == "/no/such: No such file or directory"
    assert errors.one_line(OSError(28, "No space left on device")) == "No space left on device"
    assert errors.one_line(errors.UsageError("say please")) == "say please"
