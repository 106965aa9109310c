"""A client instance and real servers: who is known where, what brokers ask back, lost connections, TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.client_config import ClientConfig
from cometmq.model.consumption import ConsumeFromWhere, ConsumeType, MessageModel
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message import ReceivedMessage
from cometmq.model.names import AUTO_CREATE_TOPIC
from cometmq.model.subscription import SubscriptionData, build_subscription
from cometmq.protocol.bodies.connection import ConsumerConnection
from cometmq.protocol.bodies.offsets import ConsumerStatus
from cometmq.protocol.bodies.running import (
    ConsumeDirectlyResult,
    ConsumeResult,
    ConsumerRunningInfo,
)
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import Header, decode_fields, encode_fields
from cometmq.protocol.headers.offsets import UpdateConsumerOffsetHeader
from cometmq.protocol.headers.send import SendMessageHeaderV2, SendMessageReply
from cometmq.remoting.tls import tls_config_of

pytestmark = pytest.mark.timeout(180)


class Consumer:
    """A role that reads nothing and remembers everything."""

    consume_type = ConsumeType.CONSUME_PASSIVELY
    message_model = MessageModel.CLUSTERING
    consume_from = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET

    def __init__(self, group: str, topic: str) -> None:
        self.group = group
        self._topic = topic
        self.rebalances = 0
        self.resets: list[dict[MessageQueue, int]] = []
        self.consumed: list[ReceivedMessage] = []

    def topics(self) -> Collection[str]:
        return [self._topic]

    def subscriptions(self) -> list[SubscriptionData]:
        return [build_subscription(self._topic, "red || green", version=1)]

    @property
    def retries_max(self) -> int | None:
        return None

    def rebalance_soon(self) -> None:
        self.rebalances += 1

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        self.resets.append(offsets)

    def positions(self, topic: str) -> dict[MessageQueue, int]:
        return {MessageQueue(broker_name="b", queue_id=3, topic=topic): 12}

    def running_info(self) -> ConsumerRunningInfo:
        return ConsumerRunningInfo(subscription_set=self.subscriptions())

    async def consume_directly(
        self, message: ReceivedMessage, broker_name: str
    ) -> ConsumeDirectlyResult:
        self.consumed.append(message)
        return ConsumeDirectlyResult(consume_result=ConsumeResult.CR_SUCCESS, spent_time_mills=1)


class Producer:
    def __init__(self, group: str) -> None:
        self.group = group

    def topics(self) -> Collection[str]:
        return []

    async def check_transaction(self, address: str, request: Command) -> None:
        raise AssertionError("nobody sent a half message")

    def reply_arrived(self, request: Command) -> None:
        raise AssertionError("nobody sent a request")


async def _connections(instance: ClientInstance, address: str, group: str) -> list[str]:
    """The client ids that the broker knows for a consumer group."""
    request = Command(RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group})
    reply = await instance.call(address, request, 5.0)
    if reply.code == ResponseCode.CONSUMER_NOT_ONLINE:
        return []
    assert reply.code == ResponseCode.SUCCESS, reply
    body = ConsumerConnection.decode(reply.body)
    return sorted(each.client_id for each in body.connection_set)


async def _ask(
    instance: ClientInstance, address: str, code: int, header: Header | dict[str, str]
) -> Command:
    ext = header if isinstance(header, dict) else encode_fields(header)
    reply = await instance.call(address, Command(code, ext), 10.0)
    assert reply.code == ResponseCode.SUCCESS, reply
    return reply


def _send(topic: str, body: bytes) -> Command:
    header = SendMessageHeaderV2(
        producer_group="senders",
        topic=topic,
        default_topic=AUTO_CREATE_TOPIC,
        queue_id=0,
        born_timestamp=1,
        properties="TAGS\x01red\x02",
    )
    return Command(RequestCode.SEND_MESSAGE_V2, encode_fields(header), body)


async def test_a_broker_knows_who_is_here_and_tells_the_others(
    name_servers: str, broker_control: Any, create_topic: Any, unique: Any
) -> None:
    topic, group = create_topic(), unique("group")
    address = broker_control.address

    async def _is_alone() -> bool:
        probe = ClientInstance(ClientConfig(name_servers=name_servers))
        try:
            return len(await _connections(probe, address, group)) == 1
        finally:
            await probe.release()

    config = ClientConfig(name_servers=name_servers)
    first = ClientInstance.acquire(config)
    consumer = Consumer(group, topic)
    first.add_consumer(consumer)
    await first.start()
    await eventually(lambda: _is_alone())
    assert first.broker_version(broker_control.name) > 0
    assert await first.consumer_ids(topic, group) == [first.client_id]

    second = ClientInstance.acquire(config)
    other = Consumer(group, topic)
    second.add_consumer(other)
    known = consumer.rebalances
    await second.start()
    await eventually(lambda: consumer.rebalances > known)
    both = sorted([first.client_id, second.client_id])
    assert await _connections(first, address, group) == both

    known = consumer.rebalances
    second.remove_consumer(other)
    await second.release()
    await eventually(lambda: consumer.rebalances > known)
    assert await _connections(first, address, group) == [first.client_id]
    await first.release()

    watcher = ClientInstance(config)
    assert await _connections(watcher, address, group) == []
    await watcher.release()


async def test_a_producer_is_known_before_it_sent_anything(
    name_servers: str, broker_control: Any, unique: Any
) -> None:
    group = unique("senders")

    instance = ClientInstance(ClientConfig(name_servers=name_servers))
    instance.add_producer(Producer(group))
    await instance.start()
    request = {"producerGroup": group}

    async def is_known() -> bool:
        code = RequestCode.GET_PRODUCER_CONNECTION_LIST
        reply = await instance.call(broker_control.address, Command(code, request), 5.0)
        return reply.code == ResponseCode.SUCCESS and instance.client_id.encode() in bytes(
            reply.body
        )

    await eventually(is_known, seconds=5.0)
    await instance.release()


async def test_a_restarted_broker_hears_of_its_consumers_again(
    name_servers: str, broker_control: Any, create_topic: Any, unique: Any
) -> None:
    topic, group = create_topic(), unique("group")

    config = ClientConfig(name_servers=name_servers, poll_name_server_millis=200)
    instance = ClientInstance(config)
    instance.add_consumer(Consumer(group, topic))
    await instance.start()

    async def is_known() -> bool:
        found = await _connections(instance, broker_control.address, group)
        return found == [instance.client_id]

    await eventually(is_known)
    await asyncio.to_thread(broker_control.kill)
    await asyncio.to_thread(broker_control.start)
    await eventually(is_known)
    await instance.release()


async def test_what_operators_ask_of_a_consumer_through_the_broker(
    name_servers: str, broker_control: Any, create_topic: Any, unique: Any
) -> None:
    topic, group = create_topic(queues=1), unique("group")
    address = broker_control.address

    instance = ClientInstance(ClientConfig(name_servers=name_servers))
    operator = ClientInstance(ClientConfig(name_servers=name_servers))
    consumer = Consumer(group, topic)
    instance.add_consumer(consumer)
    await instance.start()
    await eventually(lambda: instance.broker_version(broker_control.name))
    who = {"consumerGroup": group, "clientId": instance.client_id}

    reply = await _ask(
        operator,
        address,
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        {**who, "jstackEnable": "true"},
    )
    info = ConsumerRunningInfo.decode(reply.body)
    assert [each.topic for each in info.subscription_set] == [topic]
    assert info.properties["PROP_NAMESERVER_ADDR"] == name_servers
    assert "MainThread" in (info.jstack or "")

    sent = decode_fields(
        SendMessageReply, (await operator.call(address, _send(topic, b"now"), 5.0)).ext
    )
    reply = await _ask(
        operator, address, RequestCode.CONSUME_MESSAGE_DIRECTLY, {**who, "msgId": sent.msg_id}
    )
    assert ConsumeDirectlyResult.decode(reply.body).consume_result == "CR_SUCCESS"
    [message] = consumer.consumed
    assert (message.body, message.tags, message.topic) == (b"now", "red", topic)

    reply = await _ask(
        operator,
        address,
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        {"topic": topic, "group": group},
    )
    table = ConsumerStatus.decode(reply.body).consumer_table[instance.client_id]
    assert list(table.values()) == [12]

    position = UpdateConsumerOffsetHeader(
        consumer_group=group, topic=topic, queue_id=0, commit_offset=1
    )
    await _ask(operator, address, RequestCode.UPDATE_CONSUMER_OFFSET, position)
    await _ask(
        operator,
        address,
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        {"topic": topic, "group": group, "timestamp": "0", "isForce": "true"},
    )
    await eventually(lambda: consumer.resets)
    queue = MessageQueue(broker_name=broker_control.name, queue_id=0, topic=topic)
    assert consumer.resets == [{queue: 0}]
    await operator.release()
    await instance.release()


async def test_everything_goes_over_tls_when_it_is_enabled(makers: Any, tmp_path: Path) -> None:
    from tests.interop.certificates import Certificates
    from tests.interop.servers import ServerPair

    certificates = Certificates(tmp_path / "certificates")
    pair = ServerPair(
        makers,
        tmp_path / "pair",
        broker_settings={"mappedFileSizeCommitLog": 16 * 1024 * 1024},
        tls=certificates,
    )

    with pair.running():
        settings = {**certificates.client_settings(), "tls.client.checkHostname": "true"}
        config = ClientConfig(name_servers=pair.address, tls=tls_config_of(settings))
        instance = ClientInstance(config)
        instance.add_producer(Producer("senders"))
        await instance.start()
        await instance.route(AUTO_CREATE_TOPIC)
        reply = await instance.call(pair.broker_address, _send("Guarded", b"x"), 5.0)
        assert reply.code == ResponseCode.SUCCESS
        await eventually(lambda: instance.broker_version("interop-broker"))
        await instance.release()
