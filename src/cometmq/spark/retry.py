"""Trying again what fails because a server is away for a moment: it starts anew, or is busy.

A broker that stops is no longer in the routes, so while the only one starts again no name server knows a topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

from cometmq.base.errors import CometError, RemotingError
from cometmq.client.errors import NoNameServer, NoRoute
from cometmq.protocol.reply_errors import FlowControl, GoAway, ServiceNotAvailable, SystemBusy

logger = logging.getLogger("cometmq.spark")

PASSING: Final = (
    RemotingError,
    NoNameServer,
    NoRoute,
    SystemBusy,
    ServiceNotAvailable,
    FlowControl,
    GoAway,
)
"""What the same server, or another one, may do better in a while."""

PAUSE_SECONDS: Final = 0.02
PAUSE_SECONDS_MAX: Final = 2.0

Result = TypeVar("Result")


def until_done(
    step: Callable[[], Result],
    *,
    patience: Callable[[CometError], float],
    give_up: Callable[[CometError, float], CometError],
    monotonic: Callable[[], float],
    sleep: Callable[[float], None],
) -> Result:
    """What a step returns, once it does not fail in a way that may pass.

    Args:
        patience: for how many seconds since the first try an error may last.
        give_up: what to raise after so many seconds.

    Raises:
        CometError: what the step raised, if it cannot pass; what ``give_up`` makes of it, if it did not.
    """
    started = monotonic()
    pause = PAUSE_SECONDS
    told: type[CometError] | None = None
    while True:
        try:
            return step()
        except PASSING as error:
            seconds = patience(error)
            if monotonic() + pause > started + seconds:
                raise give_up(error, seconds) from error
            if told is not type(error):
                told = type(error)
                logger.warning("waiting seconds=%g reason=%s", seconds, error)
        sleep(pause)
        pause = min(pause * 2, PAUSE_SECONDS_MAX)
