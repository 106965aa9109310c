"""Which brokers have the same log, for whoever needs a piece of it: a slave's master, or a master's slaves.

The wire of replication does not say where a slave's own port for replication is. The name servers know the slave's main
port, and the other one is next to it unless ``haListenPort`` says otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from cometmq.model.address import join_address, split_address
from cometmq.model.ids import MASTER_ID

Members = Callable[[], Awaitable[Mapping[int, str] | None]]


class LogPeers:
    """
    Args:
        members: asks the name servers for the brokers of this name; None when none answers.
        master: the replication address of the master; None on a master.
    """

    def __init__(self, members: Members, master: Callable[[], str | None]) -> None:
        self._members = members
        self._master = master
        self._slaves: list[str] = []
        self._slave_count = 0
        self._task: asyncio.Task[None] | None = None

    def __call__(self) -> Sequence[str]:
        """Their replication addresses, as far as they are known."""
        master = self._master()
        return self._slaves if master is None else [master]

    def slaves_changed(self, count: int) -> None:
        """So many slaves are connected now. Where they are is asked when one came or went."""
        if count != self._slave_count and (self._task is None or self._task.done()):
            self._slave_count = count
            self._task = asyncio.get_running_loop().create_task(
                self._learn(), name="cometmq-log-peers"
            )

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _learn(self) -> None:
        members = await self._members() or {}
        self._slaves = [
            _ha_address(address)
            for number, address in sorted(members.items())
            if number != MASTER_ID
        ]


def _ha_address(address: str) -> str:
    host, port = split_address(address)
    return join_address(host, port + 1)
