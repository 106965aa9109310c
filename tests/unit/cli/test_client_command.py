"""What the commands around the client have in common."""

from __future__ import annotations

import logging
import signal

import pytest

from cometmq.base.errors import UsageError
from cometmq.cli.client_command import exit_codes


def test_a_command_leaves_logging_and_signals_as_they_were() -> None:
    logger = logging.getLogger("cometmq")
    before = (logger.level, signal.getsignal(signal.SIGTERM))
    with pytest.raises(SystemExit), exit_codes("cometmq"):
        raise UsageError("no such thing")
    assert (logger.level, signal.getsignal(signal.SIGTERM)) == before
