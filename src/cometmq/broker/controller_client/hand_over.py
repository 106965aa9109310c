"""A planned change of masters, at the one that goes: it lets nobody fail.

The controller asks before it elects another one by an operator's wish. From then on new requests wait (``pass_on``).
When the successor has everything that was stored and everybody has an answer, the controller is told to go ahead. The
requests that waited are passed on to the successor. If nobody is elected within the time, this broker goes on.

RocketMQ's brokers do not know this request (29005); the controller then elects without it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from cometmq.broker.controller_client.pass_on import PassOn
from cometmq.broker.controller_client.standing import Standing
from cometmq.broker.core import BrokerCore
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.hand_over import HandOverHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

log = logging.getLogger("cometmq.broker")

EMPTY_SECONDS_MAX: Final = 1.0
"""How long the successor may need for the rest of the log. Nobody stores anything meanwhile."""
HELD_SECONDS_MAX: Final = 2.0
LOOK_SECONDS: Final = 0.002


class HandOver:
    def __init__(self, core: BrokerCore, standing: Standing, pass_on: PassOn) -> None:
        self._core = core
        self._standing = standing
        self._pass_on = pass_on

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.HAND_OVER, self._hand_over)

    async def _hand_over(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(HandOverHeader, command.ext)
        standing, successor = self._standing, header.successor_id
        if not standing.is_master or standing.epoch != header.master_epoch:
            raise Refused(
                ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH,
                f"expected the master of epoch {header.master_epoch}, found {standing!r}",
            )
        if successor not in self._core.replicas.log_ends:
            raise Refused(
                ResponseCode.CONTROLLER_INVALID_REPLICAS,
                f"broker {successor} does not follow this master",
            )
        log.warning("handing over to=%d epoch=%d", successor, standing.epoch)
        self._pass_on.hold(HELD_SECONDS_MAX)
        try:
            async with asyncio.timeout(EMPTY_SECONDS_MAX):
                while not self._is_ready(successor):  # noqa: ASYNC110 - it depends on disk and slaves
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            self._pass_on.release()
            raise Refused(
                ResponseCode.SYSTEM_BUSY,
                f"broker {successor} did not get the rest of the log within {EMPTY_SECONDS_MAX:g} s",
            ) from None
        return command.reply()

    def _is_ready(self, successor: int) -> bool:
        core = self._core
        end = core.replicas.log_ends.get(successor, -1)
        return end >= core.store.max_physical and not core.durability.waiting
