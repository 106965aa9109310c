"""What a client is told when the store did not take its message, or must not."""

from __future__ import annotations

import logging

from cometmq.base.errors import DiskFull, NotMaster, RecordTooLarge, StoreClosed
from cometmq.broker.config.config_slices import IdentityConfig
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

log = logging.getLogger("cometmq.broker")


def refuse_on_slave(identity: IdentityConfig) -> None:
    """Raise Refused where a request must append: a slave's log is a copy of its master's."""
    if identity.is_slave:
        raise Refused(
            ResponseCode.SERVICE_NOT_AVAILABLE, "service not available now: this broker is a slave"
        )


def refusal_of(error: Exception, body_bytes_max: int) -> Refused | None:
    """The refusal for what ``MessageStore.put`` raised; None when that is a fault of ours."""
    if isinstance(error, RecordTooLarge):
        return too_large(body_bytes_max)
    if isinstance(error, DiskFull | NotMaster | StoreClosed):
        return Refused(ResponseCode.SERVICE_NOT_AVAILABLE, f"service not available now: {error}")
    if isinstance(error, OSError):
        log.error("append failed error=%r", error)
        return Refused(ResponseCode.SYSTEM_ERROR, f"the disk failed: {error}")
    return None


def too_large(body_bytes_max: int) -> Refused:
    """The refusal of a message above a limit, in RocketMQ's words."""
    return Refused(
        ResponseCode.MESSAGE_ILLEGAL,
        "the message is illegal, maybe msg body or properties length not matched. "
        f"msg body length limit {body_bytes_max}B, msg properties length limit 32KB.",
        bound="maxMessageSize",
    )
