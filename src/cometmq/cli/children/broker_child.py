"""A further broker of ``cometmq up --brokers``: what runs in its process.

Told on standard input; on standard output it says where it serves, or why it does not. Its name is on the command
line only for those who list processes.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

from cometmq.base import logs
from cometmq.base.errors import CometError, one_line
from cometmq.broker.config.broker_config import load_broker_config
from cometmq.broker.server import Broker
from cometmq.cli.children.until_orphaned import read_told, serve_until_orphaned
from cometmq.monitor import event_loop


def main() -> None:
    told = read_told()
    settings: dict[str, str] = told["settings"]
    logs.configure(level=told["log_level"], label=settings["brokerName"])
    try:
        config, without_effect = load_broker_config(settings)
        ignored = {key: settings[key] for key in without_effect}
        event_loop.run(
            serve_until_orphaned(
                lambda: Broker(config, ignored=ignored),
                lambda broker: _answer(address=broker.address),
            )
        )
    except (CometError, OSError) as error:
        _answer(error=one_line(error))
        raise SystemExit(1) from None


def _answer(**said: str) -> None:
    # Nobody reads it if who started us is gone; then we are about to end anyway.
    with suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), json.dumps(said).encode() + b"\n")


if __name__ == "__main__":
    main()
