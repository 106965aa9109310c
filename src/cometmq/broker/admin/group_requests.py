"""Subscription groups: create, change, delete, list. Requests 200, 201, 207, 225, 352 and 353."""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from cometmq.broker.admin.admin_replies import Saved, refuse_on_slave, reply_when_saved
from cometmq.broker.admin.paging import PageRequest, TablePages, when_rendered
from cometmq.broker.broker_stats import BrokerStats
from cometmq.broker.config.live_config import LiveConfig
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.names import group_fault
from cometmq.protocol.bodies.group import (
    GroupForbidden,
    SubscriptionGroupList,
    decode_group_config,
    encode_group_config,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.admin import (
    DeleteGroupHeader,
    GetAllGroupConfigHeader,
    GetGroupConfigHeader,
    GroupForbiddenHeader,
)
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.store.meta.consumer_offsets import OffsetTable
from cometmq.store.meta.groups import GroupTable

log = logging.getLogger("cometmq.broker")


class GroupAdmin:
    def __init__(
        self,
        *,
        live: LiveConfig,
        groups: GroupTable,
        offsets: OffsetTable,
        stats: BrokerStats,
        saved: Saved,
    ) -> None:
        self._live = live
        self._groups = groups
        self._pages = TablePages(groups, lambda: {"forbiddenTable": groups.forbidden()})
        self._offsets = offsets
        self._stats = stats
        self._saved = saved

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, self.update)
        dispatcher.add(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, self.update_many)
        dispatcher.add(RequestCode.DELETE_SUBSCRIPTIONGROUP, self.delete)
        dispatcher.add(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, self.all)
        dispatcher.add(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, self.one)
        dispatcher.add(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, self.forbid)

    def update(self, connection: Connection, command: Command) -> Awaitable[Command]:
        self._store_all(connection, [decode_group_config(command.body)])
        return reply_when_saved(self._saved, command.reply())

    def update_many(self, connection: Connection, command: Command) -> Awaitable[Command]:
        self._store_all(connection, SubscriptionGroupList.decode(command.body).group_config_list)
        return reply_when_saved(self._saved, command.reply())

    def delete(self, connection: Connection, command: Command) -> Awaitable[Command]:
        header = decode_fields(DeleteGroupHeader, command.ext)
        refuse_on_slave(self._live.current.identity)
        removed = self._groups.remove(header.group_name)
        if header.wants_offsets_removed:
            self._offsets.remove_group(header.group_name)
        self._stats.forget_group(header.group_name)
        log.info(
            "group deleted group=%s known=%s by=%s", header.group_name, removed, connection.peer
        )
        return reply_when_saved(self._saved, command.reply())

    def all(self, connection: Connection, command: Command) -> Command | Awaitable[Command]:
        header = decode_fields(GetAllGroupConfigHeader, command.ext)
        page = PageRequest(header.group_seq, header.data_version, header.max_group_num)

        def answer() -> Command:
            body = self._pages.body(page)
            return command.reply(ext={"totalGroupNum": str(len(self._groups))}, body=body)

        return when_rendered(self._groups, answer)

    def one(self, connection: Connection, command: Command) -> Command:
        name = decode_fields(GetGroupConfigHeader, command.ext).group
        config = self._groups.get(name)
        if config is None:
            if not self._live.current.topics.auto_create_group:
                raise Refused(
                    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
                    f"subscription group {name} does not exist",
                )
            _check_name(name)
            config = SubscriptionGroupConfig(group_name=name)
            if not self._live.current.identity.is_slave:
                self._groups.put(config)
        return command.reply(body=encode_group_config(config))

    def forbid(self, connection: Connection, command: Command) -> Awaitable[Command]:
        header = decode_fields(GroupForbiddenHeader, command.ext)
        _check_name(header.group)
        if header.readable is not None:
            refuse_on_slave(self._live.current.identity)
            self._groups.set_readable(header.group, header.topic, header.readable)
            log.info(
                "group reading set group=%s topic=%s readable=%s by=%s",
                header.group,
                header.topic,
                header.readable,
                connection.peer,
            )
        body = GroupForbidden(
            group=header.group,
            topic=header.topic,
            readable=self._groups.is_readable(header.group, header.topic),
        )
        return reply_when_saved(self._saved, command.reply(remark="", body=body.encode()))

    def _store_all(self, connection: Connection, configs: list[SubscriptionGroupConfig]) -> None:
        """All of them or, when one has an illegal name, none."""
        refuse_on_slave(self._live.current.identity)
        queues_max = self._live.current.topics.queues_max
        for config in configs:
            _check_name(config.group_name)
            if not 0 <= config.retry_queue_nums <= queues_max:
                raise Refused(
                    ResponseCode.INVALID_PARAMETER,
                    f"retryQueueNums must be between 0 and {queues_max} (topicQueuesMax),"
                    f" not {config.retry_queue_nums}",
                )
        changed = [config for config in configs if config != self._groups.get(config.group_name)]
        if changed:
            self._groups.put_many(changed)
        for config in changed:
            log.info(
                "group set group=%s enabled=%s retries=%d by=%s",
                config.group_name,
                config.consume_enable,
                config.retry_max_times,
                connection.peer,
            )


def _check_name(group: str) -> None:
    if fault := group_fault(group):
        raise Refused(ResponseCode.INVALID_PARAMETER, fault)
