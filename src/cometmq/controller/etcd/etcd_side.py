"""A controller's side of etcd: store, lease and leadership, and the loop that keeps them up to date.

Three times in each lease: renew it, look for what others have stored and who leads, and lead if nobody does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from cometmq.base.errors import StoreError
from cometmq.base.ports import Clock
from cometmq.controller.etcd import etcd_words as words
from cometmq.controller.etcd.endpoint import Endpoint, EtcdRefused
from cometmq.controller.etcd.etcd_config import EtcdConfig
from cometmq.controller.etcd.etcd_store import EtcdStore
from cometmq.controller.etcd.gateway import EtcdGateway
from cometmq.controller.etcd.key_values import KeyValues
from cometmq.controller.etcd.membership import Membership
from cometmq.controller.peers import Peer

_LOOKS_PER_LEASE: Final = 3
_READ_TIMEOUTS: Final = 1.5
"""One member of three that hangs, and an answer of the next. If two hang, nobody answers."""

log = logging.getLogger("cometmq.controller")


class EtcdSide:
    """
    Args:
        own: this controller; its port is known once it listens.
        on_lead: called when this controller begins to lead.
    """

    def __init__(
        self,
        config: EtcdConfig,
        endpoints: Sequence[Endpoint],
        own: Callable[[], Peer],
        on_lead: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._pause_seconds = config.lease_seconds / _LOOKS_PER_LEASE
        self._on_lead = on_lead
        timeout_seconds = config.timeout_ms / 1000
        self._gateway = EtcdGateway(endpoints, timeout_seconds)
        self._key_values = KeyValues(self._gateway)
        self.store = EtcdStore(self._key_values, config.prefix, _READ_TIMEOUTS * timeout_seconds)
        self.members = Membership(
            self._gateway, self._key_values, config.prefix, own, config.lease_seconds, clock
        )
        self._refusal = ""
        self._led = False
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Reads what is decided. Without etcd the controller starts all the same, and knows nothing yet."""
        await self.look()
        self._task = asyncio.get_running_loop().create_task(self._look_on(), name="cometmq-etcd")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
            try:
                await self.members.resign()
            except StoreError as error:
                log.warning("lease not given back: it runs out reason=%s", error)
        await self._gateway.close()

    async def look(self) -> None:
        """One round. What etcd cannot do is in the log, once."""
        try:
            refusal = await self._renewed()
            answer = await self._key_values.txn(
                words.txn([self.store.look(), *self.members.look()])
            )
            reply = answer.reply
            self.store.take(reply.found(0), reply.header.revision)
            self.members.take(reply.found(1), reply.found(2))
            if not refusal:
                refusal = await self._entered()
        except StoreError as error:
            self.store.lost(str(error))
        else:
            self._note(refusal)
        if self.members.leads != self._led:
            self._led = self.members.leads
            name = self.members.roster().own.name
            log.warning("%s name=%s", "leads" if self._led else "leads no longer", name)
            if self._led:
                self._on_lead()

    async def _renewed(self) -> str:
        """Why there is no lease, if etcd refuses one. A full etcd still tells what is decided."""
        try:
            await self.members.renew()
        except EtcdRefused as error:
            return str(error)
        return ""

    async def _entered(self) -> str:
        try:
            await self.members.enter()
        except EtcdRefused as error:
            return str(error)
        return ""

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(self._pause_seconds)
            try:
                await self.look()
            except Exception:
                log.exception("etcd not looked at")

    def _note(self, refusal: str) -> None:
        if refusal and refusal != self._refusal:
            log.error("no lease reason=%s: this controller does not lead", refusal)
        self._refusal = refusal
