"""What the admin processors share: changes are made on a master and answered when saved; names of the system."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from cometmq.base.errors import DiskFull
from cometmq.broker.config.config_slices import IdentityConfig
from cometmq.model.names import SYSTEM_TOPICS, is_system_topic, reply_topic
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.refusal import Refused

Saved = Callable[[], Awaitable[None]]
"""Returns once every change made to the tables so far is on disk; raises DiskFull."""

NOT_SET: Final = "not set any response code"
"""RocketMQ leaves this remark in some successful replies; tools show it."""

ON_MASTER_ONLY: Final = (
    "Can't modify topic or subscription group from slave broker,"
    " please execute it from master broker."
)
"""As RocketMQ 4.9 says it. 5.x takes such changes at a slave and loses them with the next sync."""


def refuse_on_slave(identity: IdentityConfig) -> None:
    if identity.is_slave:
        raise Refused(ResponseCode.SYSTEM_ERROR, ON_MASTER_ONLY)


async def reply_when_saved(saved: Saved, reply: Command) -> Command:
    try:
        await saved()
    except DiskFull as error:
        raise Refused(
            ResponseCode.SERVICE_NOT_AVAILABLE,
            f"the change is made, but not saved yet: {error}; it will be tried again",
        ) from error
    return reply


def system_topic_names(identity: IdentityConfig) -> frozenset[str]:
    """The topics that belong to the broker itself, whether they exist already or not."""
    return SYSTEM_TOPICS | {
        identity.cluster_name,
        identity.broker_name,
        reply_topic(identity.cluster_name),
    }


def is_system(topic: str, identity: IdentityConfig) -> bool:
    return is_system_topic(topic) or topic in system_topic_names(identity)
