"""A broker with a fault planted in it, to see that the attack finds it: it cannot stand heartbeats of some sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cometmq.broker.__main__ import main
from cometmq.broker.clients.client_processor import ClientProcessor
from cometmq.protocol.command import Command


def plant(handler: Callable[..., Any]) -> Callable[..., Any]:
    def handle(self: ClientProcessor, connection: Any, command: Command) -> Any:
        if len(command.body) % 7 == 3:
            raise ZeroDivisionError("planted")
        return handler(self, connection, command)

    return handle


if __name__ == "__main__":
    ClientProcessor.heartbeat = plant(ClientProcessor.heartbeat)  # type: ignore[method-assign]
    main()
