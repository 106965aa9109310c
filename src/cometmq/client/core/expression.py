"""What a consumer wants of a topic, as users write it: tags as text, or a condition as ``Sql("a > 5")``. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from cometmq.model.names import check_topic
from cometmq.model.sql92.selector import Selector
from cometmq.model.subscription import SQL92, TAG, SubscriptionData, build_subscription


@dataclass(frozen=True, slots=True)
class Sql:
    """A condition over message properties: ``Sql("region = 'north' AND amount > 5")``.

    Raises:
        BadExpression: no broker would take it. Some would deliver everything instead of saying so.
    """

    text: str

    def __post_init__(self) -> None:
        Selector(self.text)


Expression = str | Sql
"""``*`` for everything, tags joined by ``||``, or a condition."""


def subscription_to(topic: str, expression: Expression, *, version: int = 0) -> SubscriptionData:
    """Raises UsageError when the topic is no name, or the expression names no tag."""
    check_topic(topic)
    if isinstance(expression, Sql):
        return build_subscription(topic, expression.text, SQL92, version=version)
    return build_subscription(topic, expression, TAG, version=version)
