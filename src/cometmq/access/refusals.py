"""How a request that is not allowed is answered: RocketMQ 4 and 5 use different codes and texts."""

from __future__ import annotations

from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused


class AccessRefused(Refused):
    """The sender is not known, or may not do what it asks for."""


def plain_refusal(text: str) -> AccessRefused:
    """As RocketMQ 4 answers; it adds the line of its source."""
    remark = f"org.apache.rocketmq.acl.common.AclException: {text}"
    return AccessRefused(ResponseCode.SYSTEM_ERROR, remark)


def account_refusal(text: str) -> AccessRefused:
    """As RocketMQ 5 answers."""
    return AccessRefused(ResponseCode.NO_PERMISSION, text)
