"""Whether a broker is alive, and whether clients should come."""

from __future__ import annotations

from cometmq.broker.core import BrokerCore
from cometmq.broker.registration import Registration
from cometmq.broker.replication.replication_room import ReplicationRoom
from cometmq.broker.replication.role import Role
from cometmq.monitor.health import Health
from cometmq.monitor.loop_lag import LoopLag


def broker_health(
    core: BrokerCore,
    role: Role,
    registration: Registration,
    replication: ReplicationRoom,
    lag: LoopLag,
) -> Health:
    def disk() -> str | None:
        if not core.store.is_disk_full:
            return None
        limit = core.live.current.store.retention.disk_warning_percent
        return f"more than {limit} percent of the disk are in use: sends are refused (diskSpaceWarningLevelRatio)"

    def role_known() -> str | None:
        if role.is_fenced:
            return "no controller has said yet whether this broker is the master"
        return None if role.is_settled else "the role is being changed"

    def registered() -> str | None:
        known = registration.known
        if not known or any(known.values()):
            return None
        return f"no name server has this broker: {', '.join(known)}"

    def following() -> str | None:
        if not core.live.current.identity.is_slave or replication.link.is_following:
            return None
        return (
            f"this slave does not follow its master: {replication.link.master or 'not known yet'}"
        )

    return Health(
        alive={"loop": lag.check, "log": lambda: core.store.fault},
        ready={
            "disk": disk,
            "role": role_known,
            "registered": registered,
            "following": following,
        },
    )
