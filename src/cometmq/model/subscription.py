"""What a consumer wants from a topic, and how it is identified."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Final

import msgspec

from cometmq.base.errors import UsageError
from cometmq.model.ids import Int32, Int64
from cometmq.model.java_hash import java_hash

TAG = "TAG"
SQL92 = "SQL92"
PYTHON = "PYTHON"
"""Our extension: the expression is the name of a filter function that the broker's operator provides."""
ALL = "*"

_FUNCTION_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,126}")


class TooManyTags(UsageError):
    bound = "subscriptionTagsMax"


class SubscriptionData(msgspec.Struct, kw_only=True, rename="camel"):
    topic: str
    sub_string: str = ALL
    tags_set: list[str] = []
    code_set: list[Int32] = []
    sub_version: Int64 = 0
    expression_type: str = TAG
    class_filter_mode: bool = False
    filter_class_source: str | None = None

    def asks_for_the_same(self, other: SubscriptionData) -> bool:
        """Whether both ask for the same messages, whatever their version."""
        return (
            self.topic == other.topic
            and self.sub_string == other.sub_string
            and self.expression_type == other.expression_type
            and set(self.tags_set) == set(other.tags_set)
        )


@dataclass(frozen=True, slots=True)
class Sql:
    """A condition on message properties, such as ``Sql("amount > 100 AND region = 'EU'")``."""

    text: str


@dataclass(frozen=True, slots=True)
class FilterFunction:
    """A function provided by the broker's operator, by name: ``FilterFunction("vip")``. Not supported by RocketMQ."""

    name: str


Expression = str | Sql | FilterFunction
"""``*`` for everything, tags joined by ``||``, a condition, or a filter function of the broker."""


def subscription_of(topic: str, expression: Expression, *, version: int = 0) -> SubscriptionData:
    """The subscription for a user's expression. Raises UsageError if it is empty or not a valid function name."""
    if isinstance(expression, Sql):
        return build_subscription(topic, expression.text, SQL92, version=version)
    if isinstance(expression, FilterFunction):
        if not is_function_name(expression.name):
            raise UsageError(
                f"expected the name of a filter function, a word like vip_orders, got {expression.name[:100]!r}"
            )
        return build_subscription(topic, expression.name, PYTHON, version=version)
    return build_subscription(topic, expression, version=version)


def is_function_name(name: str) -> bool:
    """A file name without its extension, never a path: ASCII letters, digits and underscores, no digit first."""
    return _FUNCTION_NAME.fullmatch(name) is not None


def is_tag_type(expression_type: str | None) -> bool:
    return expression_type is None or expression_type in ("", TAG)


def build_subscription(
    topic: str,
    expression: str | None,
    expression_type: str | None = TAG,
    *,
    version: int = 0,
    tags_max: int = sys.maxsize,
) -> SubscriptionData:
    """Parse a tag expression (``*``, or tags joined by ``||``); other types are kept as text.

    Raises:
        TooManyTags: more than ``tags_max``.
        UsageError: an expression without any tag, such as ``||``.
    """
    if not is_tag_type(expression_type):
        assert expression_type is not None
        if not expression:
            raise UsageError(f"a {expression_type} subscription of {topic} needs an expression")
        return SubscriptionData(
            topic=topic,
            sub_string=expression,
            expression_type=expression_type,
            sub_version=version,
        )
    if expression is None or expression in ("", ALL):
        return SubscriptionData(topic=topic, sub_string=ALL, sub_version=version)
    # Counted before they are told apart: the header of a request has room for hundreds of thousands.
    if (count := expression.count("||") + 1) > tags_max:
        raise TooManyTags(
            f"at most {tags_max} tags in a subscription ({TooManyTags.bound}), not {count}"
        )
    tags = [tag for part in expression.split("||") if (tag := part.strip())]
    if not tags and not expression.replace("|", ""):
        raise UsageError(f"subscription {expression!r} of {topic} holds no tag")
    return SubscriptionData(
        topic=topic,
        sub_string=expression,
        tags_set=tags,
        code_set=[java_hash(tag) for tag in tags],
        sub_version=version,
    )
