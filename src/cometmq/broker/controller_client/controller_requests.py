"""Requests to a broker under a controller: its notice of a new master, and operators who ask for the epochs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.replication.autoswitch.epochs import EpochTable
from cometmq.protocol.bodies.ha import EpochCache, EpochEntry
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

NO_END: Final = 2**63 - 1


class ControllerRequests:
    """
    Args:
        epochs: those of the log now; None without a controller.
        notice: called when a controller says that there is another master. Whoever reaches the port can say so, so the
            controller is asked.
    """

    def __init__(
        self,
        live: LiveConfig,
        log_end: Callable[[], int],
        epochs: Callable[[], EpochTable] | None = None,
        notice: Callable[[], None] | None = None,
    ) -> None:
        self._live = live
        self._log_end = log_end
        self._epochs = epochs
        self._notice = notice

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.GET_BROKER_EPOCH_CACHE, self.epoch_cache)
        dispatcher.add(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, self.role_changed)

    def epoch_cache(self, connection: Connection, command: Command) -> Command:
        if self._epochs is None:
            raise _no_controller()
        table = list(self._epochs())
        ends = [entry.start for entry in table[1:]]
        identity = self._live.current.identity
        body = EpochCache(
            cluster_name=identity.cluster_name,
            broker_name=identity.broker_name,
            broker_id=identity.broker_id,
            max_offset=self._log_end(),
            epoch_list=[
                EpochEntry(epoch=entry.number, start_offset=entry.start, end_offset=end)
                for entry, end in zip(table, [*ends, NO_END], strict=False)
            ],
        )
        return command.reply(body=body.encode())

    def role_changed(self, connection: Connection, command: Command) -> Command:
        if self._notice is None:
            raise _no_controller()
        self._notice()
        return command.reply()


def _no_controller() -> Refused:
    return Refused(
        ResponseCode.SYSTEM_ERROR, "this broker is under no controller (enableControllerMode=false)"
    )
