"""Members of one consumer group that do not want the same messages.

A broker keeps one subscription of a group and topic, the newest, and the queues of every topic are shared out among all
members, whatever each of them subscribed to. So when members differ, a member has queues that are filtered by another's
subscription, and a topic that it does not know has queues that nobody reads: messages are lost, and RocketMQ tells
nobody. Here it is found out when a heartbeat comes. Pure, but for ``MismatchLog``.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cometmq.model.names import RETRY_PREFIX
from cometmq.model.subscription import ALL, TAG, SubscriptionData, is_tag_type

log = logging.getLogger("cometmq.broker")

LOGGED_CLIENTS_MAX: Final = 3
LOGGED_CHARS_MAX: Final = 200

SubscriptionKey = tuple[str, str, frozenset[str]]
"""Topic, kind and content of a subscription; equal for subscriptions that ask for the same messages."""


@dataclass(frozen=True, slots=True)
class Camp:
    """Members that want the same of a topic; ``expression`` is None for those that do not subscribe to it at all."""

    expression_type: str
    expression: str | None
    client_ids: tuple[str, ...]

    def __str__(self) -> str:
        ids = ", ".join(self.client_ids[:LOGGED_CLIENTS_MAX])
        if len(self.client_ids) > LOGGED_CLIENTS_MAX:
            ids += f" and {len(self.client_ids) - LOGGED_CLIENTS_MAX} more"
        if self.expression is None:
            return f"not subscribed: {ids}"
        kind = "" if self.expression_type == TAG else f"{self.expression_type} "
        return f"{kind}{self.expression[:LOGGED_CHARS_MAX]!r}: {ids}"


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What the members of a group want of one topic: two camps at least."""

    topic: str
    camps: tuple[Camp, ...]

    def is_like(self, other: Mismatch | None) -> bool:
        """Whether the same subscriptions stand against each other, whoever has them."""
        return other is not None and _sides(self) == _sides(other)


def subscription_keys(subscriptions: Iterable[SubscriptionData]) -> frozenset[SubscriptionKey]:
    """What a member wants; its version, the order of tags and blanks do not count. Retry topics are no subscription."""
    return frozenset(_key(subscription) for subscription in _of_user(subscriptions))


def find_mismatches(members: Mapping[str, Sequence[SubscriptionData]]) -> dict[str, Mismatch]:
    """The topics about which members differ, by name.

    Args:
        members: client id to its subscriptions.
    """
    by_topic: dict[str, dict[str, SubscriptionData]] = {}
    for client_id, subscriptions in members.items():
        for subscription in _of_user(subscriptions):
            by_topic.setdefault(subscription.topic, {})[client_id] = subscription
    found = {}
    for topic in sorted(by_topic):
        camps = _camps(by_topic[topic], members)
        if len(camps) > 1:
            found[topic] = Mismatch(topic, camps)
    return found


class MismatchLog:
    """Says once when members begin to differ, when they differ otherwise, and when they agree again."""

    def __init__(self) -> None:
        self._told: dict[str, dict[str, Mismatch]] = {}

    def note(self, group: str, found: Mapping[str, Mismatch]) -> None:
        """Args: found: about the group as it is now; empty when it has no members any more."""
        told = self._told.get(group, {})
        for topic, mismatch in found.items():
            if not mismatch.is_like(told.get(topic)):
                log.warning(
                    "subscriptions differ inside a group, it will lose messages group=%s topic=%s %s",
                    group,
                    topic,
                    "; ".join(str(camp) for camp in mismatch.camps),
                )
        for topic in told:
            if topic not in found:
                log.info("subscriptions agree again group=%s topic=%s", group, topic)
        if found:
            self._told[group] = dict(found)
        elif told:
            del self._told[group]


def _camps(
    subscriptions: Mapping[str, SubscriptionData], members: Collection[str]
) -> tuple[Camp, ...]:
    ids: dict[SubscriptionKey | None, list[str]] = {}
    for client_id in sorted(members):
        subscription = subscriptions.get(client_id)
        ids.setdefault(None if subscription is None else _key(subscription), []).append(client_id)
    return tuple(_camp(subscriptions.get(camp[0]), camp) for camp in ids.values())


def _camp(subscription: SubscriptionData | None, client_ids: Iterable[str]) -> Camp:
    if subscription is None:
        return Camp(TAG, None, tuple(client_ids))
    kind = TAG if is_tag_type(subscription.expression_type) else subscription.expression_type
    return Camp(kind, subscription.sub_string or ALL, tuple(client_ids))


def _of_user(subscriptions: Iterable[SubscriptionData]) -> Iterator[SubscriptionData]:
    """Without the retry topics, to which push consumers subscribe by themselves."""
    return (
        subscription
        for subscription in subscriptions
        if not subscription.topic.startswith(RETRY_PREFIX)
    )


def _key(subscription: SubscriptionData) -> SubscriptionKey:
    if not is_tag_type(subscription.expression_type):
        return (
            subscription.topic,
            subscription.expression_type,
            frozenset((subscription.sub_string,)),
        )
    # Read from the text, since not every client sends the set of tags.
    tags = (tag.strip() for tag in subscription.sub_string.split("||"))
    return (subscription.topic, TAG, frozenset(tag for tag in tags if tag) or frozenset((ALL,)))


def _sides(mismatch: Mismatch) -> frozenset[tuple[str, str | None]]:
    return frozenset((camp.expression_type, camp.expression) for camp in mismatch.camps)
