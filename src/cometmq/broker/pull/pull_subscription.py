"""What a pull wants: its own words when it brings a subscription, else what its group's heartbeats say."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from cometmq.base.errors import StoreError, UsageError
from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.filters.consumer_filters import ConsumerFilters
from cometmq.broker.filters.functions.pool import FilterFunctions
from cometmq.broker.filters.message_filter import MessageFilter, no_filter_text, tag_filter
from cometmq.model.consumption import MessageModel
from cometmq.model.flags import PullFlag
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.names import RETRY_PREFIX
from cometmq.model.subscription import (
    PYTHON,
    SQL92,
    SubscriptionData,
    build_subscription,
    is_tag_type,
)
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.headers.pull import PullMessageHeader
from cometmq.protocol.refusal import Refused

_SUBSCRIPTION: Final = int(PullFlag.SUBSCRIPTION)

KEPT_MAX: Final = 1024
"""Filters by tags that pulls brought themselves, kept for the next pull."""
KEPT_CHARS_MAX: Final = 256
"""A longer one is made anew for each pull."""


class PullSubscriptions:
    def __init__(
        self,
        *,
        live: LiveConfig,
        clients: ClientRegistry,
        filters: ConsumerFilters,
        functions: FilterFunctions,
    ) -> None:
        self._live = live
        self._clients = clients
        self._filters = filters
        self._functions = functions

    def filter_of(self, header: PullMessageHeader, group: SubscriptionGroupConfig) -> MessageFilter:
        """Raises Refused, in RocketMQ's order of checks."""
        is_carried = header.sys_flag & _SUBSCRIPTION
        wanted = self._carried(header) if is_carried else self._registered(header, group)
        if header.topic.startswith(RETRY_PREFIX) and self._live.current.filters.retry_too:
            wanted = self._filters.retry_filter(header.topic.removeprefix(RETRY_PREFIX))
        return wanted

    def _carried(self, header: PullMessageHeader) -> MessageFilter:
        """The filter that a pull brings itself."""
        kind, text = header.expression_type, header.subscription
        try:
            if is_tag_type(kind):
                tags_max = self._live.current.filters.tags_max
                if text is not None and len(text) > KEPT_CHARS_MAX:
                    return _filter_by_tags(header.topic, text, tags_max)
                return _kept_filter_by_tags(header.topic, text, tags_max)
            if kind == PYTHON:
                return self._function_filter(text or "")
            self._refuse_expression(kind)
            if kind != SQL92:
                raise UsageError(f"expected type TAG or {SQL92}, found {kind!r}")
            return self._filters.compile(text or "")
        except UsageError as error:
            raise refused(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED,
                f"parse the consumer's subscription failed: {error}",
                bound=error.bound,
            ) from None

    def _registered(
        self, header: PullMessageHeader, group: SubscriptionGroupConfig
    ) -> MessageFilter:
        subscription = self._registered_subscription(header, group)
        if is_tag_type(subscription.expression_type):
            return tag_filter(subscription)
        if subscription.expression_type == PYTHON:
            return self._function_filter(subscription.sub_string)
        known = self._filters.get(header.topic, header.consumer_group)
        wanted = self._filters.filter_of(header.topic, header.consumer_group)
        if known is None or wanted is None:
            raise refused(
                ResponseCode.FILTER_DATA_NOT_EXIST,
                "The broker's consumer filter data is not exist!Your expression may be wrong!",
            )
        if known.client_version < subscription.sub_version:
            raise refused(
                ResponseCode.FILTER_DATA_NOT_LATEST,
                "the consumer's consumer filter data not latest",
            )
        self._refuse_expression(subscription.expression_type)
        return wanted

    def _function_filter(self, name: str) -> MessageFilter:
        if not self._functions.is_enabled:
            raise refused(ResponseCode.SYSTEM_ERROR, no_filter_text(PYTHON))
        if fault := self._functions.fault_of(name):
            raise refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, fault)
        return MessageFilter(function=name)

    def _refuse_expression(self, kind: str | None) -> None:
        if not self._live.current.filters.property_filter:
            raise refused(ResponseCode.SYSTEM_ERROR, no_filter_text(kind))

    def _registered_subscription(
        self, header: PullMessageHeader, group: SubscriptionGroupConfig
    ) -> SubscriptionData:
        """What the group's heartbeats say it wants of the topic."""
        online = self._clients.consumer_group(header.consumer_group)
        if online is None:
            raise refused(
                ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's group info not exist"
            )
        if (
            not group.consume_broadcast_enable
            and online.message_model == MessageModel.BROADCASTING.value
        ):
            raise refused(
                ResponseCode.NO_PERMISSION,
                f"the consumer group[{header.consumer_group}] can not consume by broadcast way",
            )
        subscription = online.subscriptions.get(header.topic)
        if subscription is None:
            raise refused(
                ResponseCode.SUBSCRIPTION_NOT_EXIST, "the consumer's subscription not exist"
            )
        if subscription.sub_version < header.sub_version:
            raise refused(
                ResponseCode.SUBSCRIPTION_NOT_LATEST, "the consumer's subscription not latest"
            )
        return subscription


def _filter_by_tags(topic: str, text: str | None, tags_max: int) -> MessageFilter:
    return tag_filter(build_subscription(topic, text, tags_max=tags_max))


_kept_filter_by_tags = lru_cache(maxsize=KEPT_MAX)(_filter_by_tags)


def refused(code: ResponseCode, text: str, *, bound: str = "") -> Refused:
    """A refusal of a pull: without any of the fields of its reply."""
    return Refused(code, text, ext={}, bound=bound)


def unreadable(error: StoreError) -> Refused:
    """The refusal of a pull whose messages the store cannot read, in RocketMQ's words."""
    return refused(ResponseCode.SYSTEM_ERROR, f"store getMessage return null: {error}")
