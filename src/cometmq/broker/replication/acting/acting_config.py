"""Settings of brokers that watch each other, so that a slave can stand in for its lost master."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.base.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ActingConfig:
    """For RocketMQ 5's slaves that act as master: for reads alone, see ``acting_master``."""

    is_enabled: bool = setting(
        "enableSlaveActingMaster",
        "Let a slave stand in for its lost master for readers, if the name servers allow it "
        "(supportActingMaster). Set it for the master and all of its slaves.",
        default=False,
        next_start=True,
    )
    heartbeat_ms: int = setting(
        "brokerHeartbeatInterval",
        "Milliseconds between two heartbeats to the name servers with enableSlaveActingMaster.",
        default=1000,
        low=100,
        next_start=True,
    )
    heartbeat_timeout_ms: int = setting(
        "sendHeartbeatTimeoutMillis",
        "Timeout of such a heartbeat, in milliseconds.",
        default=1000,
        low=1,
        next_start=True,
    )
    silence_ms: int = setting(
        "brokerNotActiveTimeoutMillis",
        "Milliseconds without a heartbeat after which the name servers take the broker for lost.",
        default=10_000,
        low=1000,
        next_start=True,
    )
    watch_ms: int = setting(
        "syncBrokerMemberGroupPeriod",
        "Milliseconds between two looks at which brokers of the same name are there.",
        default=1000,
        low=100,
        next_start=True,
    )
    is_old_name_server: bool = setting(
        "compatibleWithOldNameSrv",
        "Send heartbeats in a form that name servers of RocketMQ 4 understand, too.",
        default=True,
        next_start=True,
    )
