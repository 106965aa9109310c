"""Which messages a pull wants: tag hashes that the store compares while it walks a queue.

The hash can collide; the client looks at the tag itself again.
"""

from __future__ import annotations

from collections.abc import Collection

from cometmq.base.errors import UsageError
from cometmq.model.subscription import (
    ALL,
    SubscriptionData,
    build_subscription,
    is_tag_type,
)
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused


def tag_hashes(subscription: SubscriptionData) -> Collection[int] | None:
    """The hashes of the tags a subscription names, None when it takes everything."""
    if subscription.sub_string == ALL or subscription.class_filter_mode:
        return None
    return frozenset(subscription.code_set)


def parse_wish(topic: str, expression: str | None, expression_type: str | None) -> SubscriptionData:
    """The subscription that a pull carries itself.

    Raises:
        Refused: it cannot be understood, or is of a kind this broker does not filter by.
    """
    refuse_expressions(expression_type)
    try:
        return build_subscription(topic, expression, expression_type)
    except UsageError:
        raise Refused(
            ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            "parse the consumer's subscription failed",
            ext={},
        ) from None


def refuse_expressions(expression_type: str | None) -> None:
    """Raises Refused for a subscription by expression, as a broker with ``enablePropertyFilter=false`` does."""
    if not is_tag_type(expression_type):
        raise Refused(
            ResponseCode.SYSTEM_ERROR,
            f"The broker does not support consumer to filter message by {expression_type}",
        )
