"""Makes the broker what its settings say that it is: a master with its duties, or a slave that follows.

    promoted   stop following -> enter what has come into its queues -> take up the duties -> tell the name servers
    demoted    lay down the duties -> refuse puts -> tell the name servers -> follow
    fenced     a slave that nobody knows and that follows nobody: until a controller says what it is

The settings change at once and the rest follows, one step after the other. In between the store refuses puts: a broker
is a master for its clients only when it is one in all respects.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from cometmq.base.errors import CometError
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.core import BrokerCore, cut_offsets
from cometmq.broker.master_duties import MasterDuties
from cometmq.broker.registration import Registration
from cometmq.broker.replication.replication_room import ReplicationRoom

log = logging.getLogger("cometmq.broker")

RETRY_SECONDS: Final = 5.0


class Role:
    def __init__(
        self,
        core: BrokerCore,
        duties: MasterDuties,
        registration: Registration,
        replication: ReplicationRoom,
    ) -> None:
        self._core = core
        self._duties = duties
        self._registration = registration
        self._replication = replication
        self._is_slave: bool | None = None
        self._is_fenced = False
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        core.live.on_change(self._settings_changed)

    @property
    def is_settled(self) -> bool:
        """Whether the broker is what the settings say."""
        return self._is_slave == self._wants_to_follow

    @property
    def is_fenced(self) -> bool:
        """Whether nobody has said yet what it is."""
        return self._is_fenced

    async def take_up(self) -> None:
        """Begin in the role of the settings, but tell nobody yet: a broker that starts opens its ports first.

        Raises:
            StoreError, CorruptFile: a duty of a master cannot go on.
        """
        if self._wants_to_follow:
            self._core.store.follow()
        else:
            await self._duties.start()
        self._is_slave = self._wants_to_follow

    async def start(self, *, is_fenced: bool = False) -> None:
        """Tell the name servers, follow, and go on to be what the settings say.

        Args:
            is_fenced: tell nobody and follow nobody until the role is another, or ``unfence``.
        """
        self._is_fenced = is_fenced
        if not is_fenced:
            await self._registration.start()
            if self._is_slave:
                self._replication.follow()
        self._task = asyncio.create_task(self._run(), name="cometmq-role")

    async def unfence(self) -> None:
        """Be known and follow, if it is a slave. A change of the role does the same."""
        if self._is_fenced and self._is_slave and self.is_settled:
            self._is_fenced = False
            await self._registration.start()
            self._replication.follow()

    def renew_reign(self) -> None:
        """The master was elected again, and its next reign begins. Raises DiskFull, UsageError."""
        if self._is_slave is False and self.is_settled:
            self._replication.lead()
            self._registration.renew()

    async def withdraw(self) -> None:
        """Leave the name servers, so that no new clients come, and keep the role as it is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        await self._registration.stop()

    async def stop(self) -> None:
        """Lay down the role."""
        await self._replication.stop_following()
        await self._duties.stop()

    @property
    def _wants_to_follow(self) -> bool:
        return self._core.live.current.identity.is_slave

    def _settings_changed(self, config: BrokerConfig) -> None:
        if not self.is_settled:
            self._changed.set()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                while not self.is_settled:
                    await (self._demote() if self._wants_to_follow else self._promote())
            except CometError as error:
                log.error(
                    "role not changed role=%s reason=%s; trying again in %g s",
                    self._core.live.current.identity.role,
                    error,
                    RETRY_SECONDS,
                )
                await asyncio.sleep(RETRY_SECONDS)
                self._changed.set()

    async def _promote(self) -> None:
        store = self._core.store
        # Neither: if this fails and the settings say slave again, it must begin to follow anew.
        self._is_slave = None
        await self._replication.stop_following()
        while store.replica.dispatch():  # noqa: ASYNC110 - others have their turn meanwhile
            await asyncio.sleep(0)
        came_to = store.max_physical
        store.lead()
        if store.max_physical < came_to:
            self._replication.port.disconnect("a partial record was cut")
        self._is_slave = False
        cut_offsets(self._core.offsets, store)
        try:
            self._replication.lead()
            await self._duties.start()
        except BaseException:
            store.follow()
            self._is_slave = None
            raise
        await self._tell()

    async def _demote(self) -> None:
        store = self._core.store
        await self._duties.stop()
        store.follow()
        self._is_slave = True
        # Nobody will confirm any more what waits here; that it is stored is all that can be said.
        store.watermarks.replicated.abandon()
        self._replication.port.disconnect("this broker is no master any more")
        self._replication.forget_master()
        await self._tell()
        self._replication.follow()

    async def _tell(self) -> None:
        self._is_fenced = False
        identity = self._core.live.current.identity
        log.warning("role changed role=%s broker_id=%d", identity.role, identity.broker_id)
        await self._registration.stop()
        await self._registration.start()

    def __repr__(self) -> str:
        return f"<Role {'slave' if self._is_slave else 'master'}{'' if self.is_settled else ', changing'}>"
