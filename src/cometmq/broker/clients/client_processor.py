"""Clients and the broker about each other: HEART_BEAT, UNREGISTER_CLIENT, GET_CONSUMER_LIST_BY_GROUP,
CHECK_CLIENT_CONFIG, and what follows from a connection that closes or falls silent."""

from __future__ import annotations

import logging

from cometmq.broker.access.may_touch import AccountOf
from cometmq.broker.clients.client_registry import ClientRegistry, text_bytes
from cometmq.broker.clients.consumer_notifier import ConsumerNotifier
from cometmq.broker.clients.subscription_mismatch import MismatchLog
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.filters.consumer_filters import ConsumerFilters
from cometmq.broker.filters.functions.pool import FilterFunctions
from cometmq.broker.filters.message_filter import no_filter_text
from cometmq.broker.topic_creation import TopicCreation
from cometmq.model.names import group_fault
from cometmq.model.sql92.errors import BadExpression
from cometmq.model.subscription import PYTHON, SQL92, is_tag_type
from cometmq.protocol.bodies.heartbeat import (
    CheckClientConfigBody,
    ConsumerData,
    ConsumerList,
    HeartbeatData,
    decode_heartbeat,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.heartbeat import GetConsumerListHeader, UnregisterClientHeader
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

log = logging.getLogger("cometmq.broker")


class ClientProcessor:
    def __init__(
        self,
        *,
        live: LiveConfig,
        clients: ClientRegistry,
        filters: ConsumerFilters,
        functions: FilterFunctions,
        notifier: ConsumerNotifier,
        creation: TopicCreation,
        account_of: AccountOf,
    ) -> None:
        self._account_of = account_of
        self._live = live
        self._filters = filters
        self._functions = functions
        self._clients = clients
        self._notifier = notifier
        self._creation = creation
        self._mismatch_log = MismatchLog()

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.HEART_BEAT, self.heartbeat)
        dispatcher.add(RequestCode.UNREGISTER_CLIENT, self.unregister)
        dispatcher.add(RequestCode.GET_CONSUMER_LIST_BY_GROUP, self.list_consumers)
        dispatcher.add(RequestCode.CHECK_CLIENT_CONFIG, self.check_config)

    def heartbeat(self, connection: Connection, command: Command) -> Command:
        beat = decode_heartbeat(command.body)
        self._check(connection, beat)
        refused: Refused | None = None
        for consumer in beat.consumer_data_set:
            try:
                self._beat_consumer(connection, command, beat.client_id, consumer)
            except Refused as error:
                # A new group that cannot be created now must not take the others down with it.
                refused = error
        for producer in beat.producer_data_set:
            self._clients.register_producer(
                producer.group_name,
                connection,
                client_id=beat.client_id,
                language=command.language,
                version=command.version,
                account=self._account_of(connection),
            )
        if refused is not None:
            raise refused
        return command.reply()

    def unregister(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(UnregisterClientHeader, command.ext)
        if header.producer_group is not None:
            self._clients.unregister_producer(header.producer_group, connection)
        if header.consumer_group is not None and self._clients.unregister_consumer(
            header.consumer_group, connection
        ):
            log.info("consumer left group=%s client=%s", header.consumer_group, header.client_id)
            self._left(header.consumer_group)
        return command.reply(ext={})

    def list_consumers(self, connection: Connection, command: Command) -> Command:
        group = decode_fields(GetConsumerListHeader, command.ext).consumer_group
        online = self._clients.consumer_group(group)
        if online is None:
            raise Refused(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {group}", ext={})
        return command.reply(
            ext={}, body=ConsumerList(consumer_id_list=online.client_ids()).encode()
        )

    def check_config(self, connection: Connection, command: Command) -> Command:
        if command.body:
            subscription = CheckClientConfigBody.decode(command.body).subscription_data
            if not is_tag_type(subscription.expression_type):
                self._check_expression(subscription.expression_type, subscription.sub_string)
        return command.reply()

    def _check_expression(self, kind: str, text: str) -> None:
        if kind == PYTHON and self._functions.is_enabled:
            if fault := self._functions.fault_of(text):
                raise Refused(ResponseCode.SUBSCRIPTION_PARSE_FAILED, fault)
            return
        if kind == PYTHON or not self._live.current.filters.property_filter:
            raise Refused(ResponseCode.SYSTEM_ERROR, no_filter_text(kind))
        if kind != SQL92:
            raise Refused(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED,
                f"expected type TAG or {SQL92}, found {kind!r}",
            )
        try:
            self._filters.compile(text)
        except BadExpression as error:
            raise Refused(
                ResponseCode.SUBSCRIPTION_PARSE_FAILED, str(error), bound=error.bound
            ) from None

    def closed(self, connection: Connection) -> None:
        """Whoever used a closed connection is gone; the other members of its groups share its queues."""
        for group in self._clients.forget(connection):
            log.info("consumer gone group=%s peer=%s", group, connection.peer)
            self._left(group)

    def expire(self, silent_seconds: float) -> None:
        """Close connections of clients that stopped sending heartbeats."""
        for connection in self._clients.expired(silent_seconds):
            log.warning("client silent peer=%s limit_s=%g", connection.peer, silent_seconds)
            connection.close(f"no heartbeat for {silent_seconds:g} s")
            self.closed(connection)

    def _left(self, group: str) -> None:
        online = self._clients.consumer_group(group)
        if online is None:
            self._filters.retire(group)
        self._mismatch_log.note(group, {} if online is None else online.mismatches)
        self._notifier.notify(group)

    def _check(self, connection: Connection, beat: HeartbeatData) -> None:
        """Raises Refused before anything of the heartbeat has been taken in."""
        consumers = [consumer.group_name for consumer in beat.consumer_data_set]
        producers = [producer.group_name for producer in beat.producer_data_set]
        limits = self._live.current.consumers
        new = self._clients.new_groups(connection, producers, consumers)
        count = self._clients.group_count(connection) + new
        if new and count > limits.groups_per_connection_max:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"a connection may be in at most {limits.groups_per_connection_max} groups"
                f" (clientGroupsPerConnectionMax), with this heartbeat it would be in {count}",
                bound="clientGroupsPerConnectionMax",
            )
        if new and self._clients.membership_count + new > limits.memberships_max:
            raise Refused(
                ResponseCode.SYSTEM_BUSY,
                f"all connections together may be in groups {limits.memberships_max} times (clientMembershipsMax),"
                " which this heartbeat would exceed",
                bound="clientMembershipsMax",
            )
        if len(beat.client_id) > limits.client_id_length_max:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"a client's id may have at most {limits.client_id_length_max} characters (clientIdLengthMax), not"
                f" {len(beat.client_id)}",
                bound="clientIdLengthMax",
            )
        self._check_subscriptions(connection, beat)
        for name in (*consumers, *producers):
            if fault := group_fault(name):
                raise Refused(ResponseCode.SYSTEM_ERROR, fault)

    def _check_subscriptions(self, connection: Connection, beat: HeartbeatData) -> None:
        config = self._live.current
        limits, tags_max = config.consumers, config.filters.tags_max
        kept = self._clients.subscriptions_of(connection)
        new = {one.group_name: one.subscription_data_set for one in beat.consumer_data_set}
        count = sum(map(len, ({**kept, **new}).values()))
        if count > limits.subscriptions_of_connection_max:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"a connection may have at most {limits.subscriptions_of_connection_max} subscriptions"
                f" (clientSubscriptionsMax), with this heartbeat it would have {count}",
                bound="clientSubscriptionsMax",
            )
        tags = max((len(one.tags_set) for data in new.values() for one in data), default=0)
        if tags > tags_max:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"a subscription may have at most {tags_max} tags (subscriptionTagsMax), not {tags}",
                bound="subscriptionTagsMax",
            )
        growth = sum(map(text_bytes, new.values())) - sum(
            text_bytes(kept[group]) for group in new if group in kept
        )
        if growth > 0 and self._clients.subscription_bytes + growth > limits.subscription_bytes_max:
            raise Refused(
                ResponseCode.SYSTEM_BUSY,
                f"the subscriptions of all connections may take {limits.subscription_bytes_max} bytes"
                " (clientSubscriptionBytesMax), which this heartbeat would exceed",
                bound="clientSubscriptionBytesMax",
            )

    def _beat_consumer(
        self, connection: Connection, command: Command, client_id: str, consumer: ConsumerData
    ) -> None:
        group = consumer.group_name
        config = self._creation.group(group, connection)
        if config is not None:
            self._creation.retry_topic(config, is_unit=consumer.unit_mode)
        is_new = self._clients.register_consumer(
            group,
            connection,
            client_id=client_id,
            language=command.language,
            version=command.version,
            consume_type=consumer.consume_type,
            message_model=consumer.message_model,
            consume_from_where=consumer.consume_from_where,
            subscriptions=consumer.subscription_data_set,
        )
        online = self._clients.consumers[group]
        if consumer.max_reconsume_times is not None:
            online.clients[connection].retries_max = consumer.max_reconsume_times
        self._mismatch_log.note(group, online.mismatches)
        self._filters.register(group, consumer.subscription_data_set)
        if is_new:
            log.info(
                "consumer group changed group=%s client=%s peer=%s",
                group,
                client_id,
                connection.peer,
            )
            self._notifier.notify(group)
