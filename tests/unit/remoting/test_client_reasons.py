"""Why no connection was made: the system's words, whichever event loop there is."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from cometmq.remoting.client import system_reason

REFUSED = os.strerror(errno.ECONNREFUSED)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, REFUSED), REFUSED),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('::1', 1)"), REFUSED),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0)"), REFUSED),
        (
            OSError("Multiple exceptions: [Errno 111] Connect call, [Errno 113] Connect call"),
            f"{REFUSED}, {os.strerror(113)}",
        ),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (OSError("something else"), "something else"),
    ],
)
def test_reasons_are_those_of_the_system(error: OSError, reason: str) -> None:
    assert system_reason(error) == reason
