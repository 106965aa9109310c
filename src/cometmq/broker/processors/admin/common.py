"""What the admin processors share: a remark of RocketMQ's, and the rule that changes are made on a master."""

from __future__ import annotations

from typing import Final

from cometmq.broker.config_slices import IdentityConfig
from cometmq.model.names import SYSTEM_TOPICS, is_system_topic, reply_topic
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

NOT_SET: Final = "not set any response code"
"""RocketMQ leaves this remark in some successful replies; tools show it."""


def refuse_on_slave(identity: IdentityConfig) -> None:
    if identity.is_slave:
        raise Refused(
            ResponseCode.SYSTEM_ERROR, "this broker is a slave; make the change on its master"
        )


def system_topic_names(identity: IdentityConfig) -> frozenset[str]:
    """The topics that belong to the broker itself, whether they exist already or not."""
    return SYSTEM_TOPICS | {
        identity.cluster_name,
        identity.broker_name,
        reply_topic(identity.cluster_name),
    }


def is_system(topic: str, identity: IdentityConfig) -> bool:
    return is_system_topic(topic) or topic in system_topic_names(identity)
