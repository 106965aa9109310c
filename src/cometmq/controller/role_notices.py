"""Tells brokers who their master is (NOTIFY_BROKER_ROLE_CHANGED), and a master that another is about to be elected.

Nobody relies on either: brokers also ask, and a master that was not told loses nothing but time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Final, Protocol

from cometmq.base.errors import CometError
from cometmq.controller.controller_config import LiveConfig
from cometmq.controller.group import Group
from cometmq.protocol.bodies.ha import SyncStateSet
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.controller import NotifyRoleChangedHeader
from cometmq.protocol.headers.hand_over import HandOverHeader

_NOTICES_MAX: Final = 256
_HAND_OVER_SECONDS: Final = 1.5

_log = logging.getLogger("cometmq.controller")


class Client(Protocol):
    """The part of a ``RemotingClient`` that is needed here."""

    async def call(self, address: str, command: Command, timeout: float) -> Command: ...

    async def oneway(self, address: str, command: Command) -> None: ...

    async def close(self) -> None: ...


class RoleNotices:
    def __init__(self, config: LiveConfig) -> None:
        self._config = config
        self._client: Client | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    def start(self, client: Client) -> None:
        self._client = client

    async def stop(self) -> None:
        for task in self._under_way:
            task.cancel()
        if self._under_way:
            await asyncio.wait(self._under_way)
        if self._client is not None:
            await self._client.close()
            self._client = None

    def tell(self, group: Group, ids: Collection[int]) -> None:
        """Tell these brokers; those that left the group meanwhile are passed over."""
        if not self._config.current.notify_role_changed:
            return
        for broker_id in sorted(ids):
            member = group.members.get(broker_id)
            if member is None:
                continue
            if len(self._under_way) >= _NOTICES_MAX:
                _log.warning("notice dropped address=%s reason=too many under way", member.address)
                continue
            task = asyncio.get_running_loop().create_task(
                self._send(member.address, role_changed(group))
            )
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def prepare(self, group: Group, successor: int) -> None:
        """Have the master wait with new messages until the successor has all of the old ones.

        RocketMQ's brokers do not know the request. They are replaced without it.
        """
        if self._client is None or group.master is None:
            return
        header = HandOverHeader(master_epoch=group.master_epoch, successor_id=successor)
        command = Command(code=RequestCode.HAND_OVER, ext=encode_fields(header))
        try:
            reply = await self._client.call(group.master.address, command, _HAND_OVER_SECONDS)
            reason = reply.remark if reply.code else None
        except CometError as error:
            reason = str(error)
        if reason is not None:
            _log.warning(
                "master not prepared name=%s id=%d successor=%d reason=%s",
                group.broker_name,
                group.master_id,
                successor,
                reason,
            )

    async def _send(self, address: str, command: Command) -> None:
        if self._client is None:
            return
        try:
            await self._client.oneway(address, command)
        except CometError as error:
            _log.warning("notice not delivered address=%s reason=%s", address, error)


def role_changed(group: Group) -> Command:
    master = group.master
    header = NotifyRoleChangedHeader(
        master_address=None if master is None else master.address,
        master_broker_id=group.master_id,
        master_epoch=group.master_epoch,
        sync_state_set_epoch=group.sync_state_set_epoch,
    )
    return Command(
        code=RequestCode.NOTIFY_BROKER_ROLE_CHANGED,
        ext=encode_fields(header),
        body=set_body(group).encode(),
    )


def set_body(group: Group) -> SyncStateSet:
    return SyncStateSet(
        sync_state_set=sorted(group.sync_state_set),
        sync_state_set_epoch=group.sync_state_set_epoch,
    )
