"""Asks a cluster for what `cometmq top` shows."""

from __future__ import annotations

import asyncio
import time

from cometmq.admin import Admin, ByServer, Target
from cometmq.cli.top.snapshot import BrokerNow, Replicas, Snapshot
from cometmq.protocol.bodies.ha import HaStatus


async def snapshot(admin: Admin) -> Snapshot:
    """What the cluster is like now. Raises NoNameServer, NoSuchName (there is no broker)."""
    rows, groups, told = await asyncio.gather(
        admin.clusters.brokers(), admin.groups.summary(), admin.replication.status(Target())
    )
    failed = {**groups.failed, **rows.failed}
    return Snapshot(
        at=time.monotonic(),
        brokers=[
            BrokerNow(
                place=row.place, figures=row.figures, replicas=_replicas(told, row.place.address)
            )
            for row in rows
        ],
        groups=groups.rows,
        failed={address: str(error) for address, error in failed.items()},
    )


def _replicas(told: ByServer[HaStatus], address: str) -> Replicas | None:
    status = told.done.get(address)
    if status is None or not status.master:
        return None
    slaves = status.ha_connection_info
    return Replicas(
        following=len(slaves),
        in_sync=sum(one.in_sync for one in slaves),
        behind_bytes=max((one.diff for one in slaves), default=0),
    )
