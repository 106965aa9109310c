"""The requests a name server answers, from typed header to reply.

``remoting.dispatcher`` calls them; what they decide is in ``route_table``, ``kv`` and ``live_config``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cometmq.access.door.account_requests import IdentityOf
from cometmq.base.errors import UsageError
from cometmq.base.ports import Clock
from cometmq.model.address import split_address
from cometmq.model.flags import TopicFlag
from cometmq.model.messages.checksum import crc32
from cometmq.namesrv.kv import ORDER_TOPIC_NAMESPACE, KVConfig
from cometmq.namesrv.live_config import LiveConfig
from cometmq.namesrv.liveness import silence_seconds
from cometmq.namesrv.membership import Membership
from cometmq.namesrv.registration import Registration
from cometmq.namesrv.route_table import RouteTable
from cometmq.protocol.bodies.kv import KVTable
from cometmq.protocol.bodies.register import decode_register_body
from cometmq.protocol.bodies.route import (
    BrokerMemberGroup,
    BrokerMemberGroupBody,
    ClusterInfo,
    decode_route,
    encode_route,
)
from cometmq.protocol.bodies.topic import TopicList, decode_data_version, encode_data_version
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields, encode_fields
from cometmq.protocol.headers import namesrv as headers
from cometmq.protocol.headers.route import GetRouteInfoHeader
from cometmq.protocol.refusal import Refused
from cometmq.protocol.settings_request import change_settings
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

STANDARD_JSON_SINCE: Final = 401
_FAQ: Final = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


class BrokerProcessor:
    """Requests of brokers: registration, keep-alives, unregistration."""

    def __init__(
        self,
        table: RouteTable,
        membership: Membership,
        kv: KVConfig,
        config: LiveConfig,
        clock: Clock,
        identity_of: IdentityOf,
    ) -> None:
        self._identity_of = identity_of
        self._table = table
        self._membership = membership
        self._kv = kv
        self._config = config
        self._clock = clock

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.REGISTER_BROKER, self._register)
        dispatcher.add(RequestCode.UNREGISTER_BROKER, self._unregister)
        dispatcher.add(RequestCode.QUERY_DATA_VERSION, self._query_data_version)
        dispatcher.add(RequestCode.BROKER_HEARTBEAT, self._heartbeat)
        dispatcher.add(RequestCode.GET_BROKER_MEMBER_GROUP, self._member_group)

    def _register(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.RegisterBrokerHeader, command.ext)
        body = bytes(command.body)
        if header.body_crc32 and header.body_crc32 != crc32(body) & 0x7FFFFFFF:
            raise Refused(ResponseCode.SYSTEM_ERROR, "crc32 not match", ext={})
        _check_identity(header)
        content = decode_register_body(
            body,
            compressed=header.compressed,
            version=command.version,
            topics_max=self._config.current.broker_topics_max,
        )
        done = self._membership.register(
            Registration(
                cluster=header.cluster_name,
                broker_name=header.broker_name,
                broker_id=header.broker_id,
                address=header.broker_addr,
                ha_address=header.ha_server_addr,
                topics=content.topics.topic_config_table,
                version=content.topics.data_version,
                filter_servers=content.filter_server_list,
                acting_master=header.enable_acting_master,
                silence_seconds=silence_seconds(header.heartbeat_timeout_millis),
                connection=connection,
                is_signed=bool(self._identity_of(connection, command).name),
            )
        )
        reply = headers.RegisterBrokerReply(
            ha_server_addr=done.ha_address, master_addr=done.master_address
        )
        order = self._kv.namespace(ORDER_TOPIC_NAMESPACE)
        if order is None or not self._config.current.return_order_config:
            return command.reply(ext=encode_fields(reply))
        return command.reply(ext=encode_fields(reply), body=KVTable(table=order).encode())

    def _unregister(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.UnregisterBrokerHeader, command.ext)
        self._membership.unregister(
            header.cluster_name,
            header.broker_name,
            header.broker_addr,
            connection,
            is_signed=bool(self._identity_of(connection, command).name),
        )
        return command.reply()

    def _query_data_version(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.QueryDataVersionHeader, command.ext)
        asked = decode_data_version(command.body)
        cluster, address = header.cluster_name, header.broker_addr
        is_changed = self._table.is_changed(cluster, address, asked)
        # RocketMQ 5 sends this every second as its keep-alive, so it counts as one whatever it says.
        self._table.liveness.touch(cluster, address, self._clock.monotonic())
        live = self._table.liveness.get(cluster, address)
        return command.reply(
            ext=encode_fields(headers.QueryDataVersionReply(changed=is_changed)),
            body=encode_data_version(live.version) if live else b"",
        )

    def _heartbeat(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.BrokerHeartbeatHeader, command.ext)
        self._table.liveness.touch(header.cluster_name, header.broker_addr, self._clock.monotonic())
        return command.reply()

    def _member_group(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.GetBrokerMemberGroupHeader, command.ext)
        addresses = self._table.member_addresses(header.cluster_name, header.broker_name)
        group = BrokerMemberGroup(
            cluster=header.cluster_name, broker_name=header.broker_name, broker_addrs=addresses
        )
        return command.reply(body=BrokerMemberGroupBody(broker_member_group=group).encode())


class RouteProcessor:
    """Queries of clients and operators about topics and brokers, and manual changes by operators."""

    def __init__(self, table: RouteTable, kv: KVConfig, config: LiveConfig, clock: Clock) -> None:
        self._table = table
        self._kv = kv
        self._config = config
        self._clock = clock
        self._started_at = clock.monotonic()

    def register(self, dispatcher: Dispatcher) -> None:
        table = self._table
        unit, unit_sub = int(TopicFlag.UNIT), int(TopicFlag.UNIT_SUB)
        add = dispatcher.add
        add(RequestCode.GET_ROUTEINFO_BY_TOPIC, self._route)
        add(RequestCode.GET_BROKER_CLUSTER_INFO, self._cluster_info)
        add(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, self._all_topics)
        add(RequestCode.GET_TOPICS_BY_CLUSTER, self._topics_of_cluster)
        add(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, self._system_topics)
        add(
            RequestCode.GET_UNIT_TOPIC_LIST,
            self._list(lambda: table.topics_with_flags(unit)),
        )
        add(
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
            self._list(lambda: table.topics_with_flags(unit_sub)),
        )
        add(
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
            self._list(lambda: table.topics_with_flags(unit_sub, unit)),
        )
        add(RequestCode.DELETE_TOPIC_IN_NAMESRV, self._delete_topic)
        add(RequestCode.REGISTER_TOPIC_IN_NAMESRV, self._register_topic)
        add(RequestCode.WIPE_WRITE_PERM_OF_BROKER, self._wipe_write_perm)
        add(RequestCode.ADD_WRITE_PERM_OF_BROKER, self._add_write_perm)

    def _route(self, connection: Connection, command: Command) -> Command:
        config = self._config.current
        running_seconds = self._clock.monotonic() - self._started_at
        if config.need_wait_for_service and running_seconds < config.wait_seconds:
            raise Refused(ResponseCode.SYSTEM_ERROR, "name server not ready")
        header = decode_fields(GetRouteInfoHeader, command.ext)
        topic = header.topic
        route = None
        if topic is not None:
            route = self._table.route(topic, acting_master=config.support_acting_master)
        if topic is None or route is None:
            raise Refused(
                ResponseCode.TOPIC_NOT_EXIST,
                "No topic route info in name server for the topic:"
                f" {'null' if topic is None else topic}\n{_FAQ}",
            )
        if config.order_message_enable:
            route.order_topic_conf = self._kv.get(ORDER_TOPIC_NAMESPACE, topic)
        is_standard = command.version >= STANDARD_JSON_SINCE or header.accept_standard_json_only
        return command.reply(body=encode_route(route, standard=bool(is_standard)))

    def _cluster_info(self, connection: Connection, command: Command) -> Command:
        brokers, clusters = self._table.cluster_info()
        info = ClusterInfo(broker_addr_table=brokers, cluster_addr_table=clusters)
        return command.reply(body=info.encode())

    def _all_topics(self, connection: Connection, command: Command) -> Command:
        if not self._config.current.enable_all_topic_list:
            raise Refused(ResponseCode.SYSTEM_ERROR, "disable: enableAllTopicList is false")
        return command.reply(body=TopicList(topic_list=self._table.topics()).encode())

    def _topics_of_cluster(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.GetTopicsByClusterHeader, command.ext)
        return self._list(lambda: self._table.topics_of_cluster(header.cluster))(
            connection, command
        )

    def _system_topics(self, connection: Connection, command: Command) -> Command:
        topics, address = self._table.system_topics()
        return command.reply(body=TopicList(topic_list=topics, broker_addr=address).encode())

    def _list(self, topics: Callable[[], list[str]]) -> Callable[[Connection, Command], Command]:
        def handle(connection: Connection, command: Command) -> Command:
            if not self._config.current.enable_topic_list:
                raise Refused(ResponseCode.SYSTEM_ERROR, "disable: enableTopicList is false")
            return command.reply(body=TopicList(topic_list=topics()).encode())

        return handle

    def _delete_topic(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.DeleteTopicInNamesrvHeader, command.ext)
        self._table.delete_topic(header.topic, header.cluster_name or None)
        return command.reply()

    def _register_topic(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.RegisterTopicHeader, command.ext)
        self._table.put_topic(
            header.topic,
            decode_route(command.body).queue_datas,
            queues_max=self._config.current.topic_queues_max,
        )
        return command.reply()

    def _wipe_write_perm(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.WipeWritePermHeader, command.ext)
        count = self._table.wipe_write_perm(header.broker_name)
        return command.reply(ext=encode_fields(headers.WipeWritePermReply(wipe_topic_count=count)))

    def _add_write_perm(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.AddWritePermHeader, command.ext)
        count = self._table.add_write_perm(header.broker_name)
        return command.reply(ext=encode_fields(headers.AddWritePermReply(add_topic_count=count)))


class ConfigProcessor:
    """Key-value config, and the server's own settings."""

    def __init__(self, kv: KVConfig, config: LiveConfig) -> None:
        self._kv = kv
        self._config = config

    def register(self, dispatcher: Dispatcher) -> None:
        dispatcher.add(RequestCode.PUT_KV_CONFIG, self._put)
        dispatcher.add(RequestCode.GET_KV_CONFIG, self._get)
        dispatcher.add(RequestCode.DELETE_KV_CONFIG, self._delete)
        dispatcher.add(RequestCode.GET_KVLIST_BY_NAMESPACE, self._list)
        dispatcher.add(RequestCode.UPDATE_NAMESRV_CONFIG, self._update_config)
        dispatcher.add(RequestCode.GET_NAMESRV_CONFIG, self._get_config)

    def _put(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.PutKVConfigHeader, command.ext)
        self._kv.put(header.namespace, header.key, header.value)
        return command.reply()

    def _get(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.GetKVConfigHeader, command.ext)
        value = self._kv.get(header.namespace, header.key)
        if value is None:
            raise Refused(
                ResponseCode.QUERY_NOT_FOUND,
                f"No config item, Namespace: {header.namespace} Key: {header.key}",
                ext={},
            )
        return command.reply(ext=encode_fields(headers.GetKVConfigReply(value=value)))

    def _delete(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.DeleteKVConfigHeader, command.ext)
        self._kv.delete(header.namespace, header.key)
        return command.reply()

    def _list(self, connection: Connection, command: Command) -> Command:
        header = decode_fields(headers.GetKVListHeader, command.ext)
        table = self._kv.namespace(header.namespace)
        if table is None:
            raise Refused(
                ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {header.namespace}"
            )
        return command.reply(body=KVTable(table=table).encode())

    def _update_config(self, connection: Connection, command: Command) -> Command:
        return change_settings(
            command, self._config.update, denial="Can not update config in black list: "
        )

    def _get_config(self, connection: Connection, command: Command) -> Command:
        return command.reply(body=self._config.text().encode())


def _check_identity(header: headers.RegisterBrokerHeader) -> None:
    if header.broker_id < 0:
        raise Refused(
            ResponseCode.SYSTEM_ERROR, f"brokerId must be 0 or more, not {header.broker_id}"
        )
    try:
        split_address(header.broker_addr)
    except UsageError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, f"brokerAddr: {error}") from None
