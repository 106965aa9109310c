"""What a consumer wants of a topic, as users write it: tags, ``Sql("a > 5")`` or ``FilterFunction("vip")``. No I/O."""

from __future__ import annotations

from cometmq.model.names import check_topic
from cometmq.model.sql92.selector import Selector
from cometmq.model.subscription import Expression, Sql, SubscriptionData, subscription_of

__all__ = ["Expression", "subscription_to"]


def subscription_to(topic: str, expression: Expression, *, version: int = 0) -> SubscriptionData:
    """Raises UsageError when the topic is no name, the tags are none, or no broker would take the condition or name.

    A condition is compiled here, too: sent along with a pull, RocketMQ's broker takes a wrong one for "everything".
    """
    check_topic(topic)
    if isinstance(expression, Sql):
        Selector(expression.text)
    return subscription_of(topic, expression, version=version)
