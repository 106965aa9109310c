"""What brokers ask of clients, as frames on a connection without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cometmq.client.aio.instance.roles import RoleTable
from cometmq.client.aio.instance.server_requests import ServerRequests
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.properties import render_properties
from cometmq.model.messages.record import encode_record
from cometmq.protocol.bodies.offsets import (
    ConsumerStatus,
    QueueOffset,
    ResetOffsets,
    ResetOffsetsForC,
)
from cometmq.protocol.bodies.running import ConsumeDirectlyResult, ConsumerRunningInfo
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.remoting.dispatcher import Dispatcher

HOST = bytes([127, 0, 0, 1, 0, 0, 0x2A, 0x9F])
QUEUE = MessageQueue(broker_name="b", queue_id=1, topic="T")


class FakeConnection:
    peer = "10.0.0.9:10911"

    def __init__(self) -> None:
        self.replies: list[Command] = []
        self.tasks: list[asyncio.Task[None]] = []

    def send(self, command: Command) -> None:
        self.replies.append(command)

    def run_handler(self, work: Any, body_bytes: int = 0) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))


class Setting:
    def __init__(self) -> None:
        self.roles = RoleTable()
        self.dispatcher = Dispatcher()
        ServerRequests(self.roles, namespace="ns", name_servers=lambda: ["n:1", "n:2"]).register(
            self.dispatcher
        )

    def ask(self, command: Command) -> Command | None:
        """The reply, if there is one."""

        async def main() -> list[Command]:
            connection = FakeConnection()
            self.dispatcher.dispatch(connection, command)  # type: ignore[arg-type]
            await asyncio.gather(*connection.tasks)
            return connection.replies

        replies = asyncio.run(main())
        assert len(replies) <= 1
        return replies[0] if replies else None


@pytest.fixture
def setting() -> Setting:
    return Setting()


@pytest.fixture
def consumer(setting: Setting, make_consumer: Callable[..., Any]) -> Any:
    role = make_consumer("g", "T")
    setting.roles.add_consumer(role)
    return role


@pytest.fixture
def producer(setting: Setting, make_producer: Callable[..., Any]) -> Any:
    role = make_producer("p")
    setting.roles.add_producer(role)
    return role


def _record(topic: str = "ns%T", **properties: str) -> bytes:
    return bytes(
        encode_record(
            topic=topic.encode(),
            queue_id=1,
            queue_offset=7,
            physical_offset=99,
            sys_flag=0,
            flag=3,
            born_timestamp=1,
            born_host=HOST,
            store_timestamp=2,
            store_host=HOST,
            reconsume_times=0,
            prepared_transaction_offset=0,
            body=b"hello",
            properties=render_properties(properties).encode(),
        )
    )


def test_members_of_a_group_changed(setting: Setting, consumer: Any) -> None:
    for group in ("g", "gone"):
        setting.ask(
            Command(
                RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
                {"consumerGroup": group},
                flag=FLAG_ONEWAY,
            )
        )
    assert consumer.rebalances == 1


def test_a_transaction_check_reaches_the_producer_of_its_group(
    setting: Setting, producer: Any
) -> None:
    fields = {"tranStateTableOffset": "7", "commitLogOffset": "99"}
    request = Command(
        RequestCode.CHECK_TRANSACTION_STATE, fields, _record(PGROUP="p"), flag=FLAG_ONEWAY
    )
    assert setting.ask(request) is None
    assert producer.checks == [("10.0.0.9:10911", request)]
    lost = Command(RequestCode.CHECK_TRANSACTION_STATE, fields, _record(PGROUP="other"))
    reply = setting.ask(lost)
    assert reply is not None
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert "<other>" in (reply.remark or "")


@pytest.mark.parametrize(
    "body",
    [
        ResetOffsets(offset_table={QUEUE: 42}).encode(),
        ResetOffsetsForC(
            offset_table=[QueueOffset(broker_name="b", offset=42, queue_id=1, topic="T")]
        ).encode(),
    ],
)
def test_offsets_reset_by_an_operator(setting: Setting, consumer: Any, body: bytes) -> None:
    setting.ask(
        Command(
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
            {"topic": "T", "group": "g", "timestamp": "5", "isForce": "true"},
            body,
            flag=FLAG_ONEWAY,
        )
    )
    assert consumer.resets == [("T", {QUEUE: 42})]


def test_positions(setting: Setting, consumer: Any) -> None:
    for group, expected in (("g", {QUEUE: 5}), ("gone", {})):
        request = Command(
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, {"topic": "T", "group": group}
        )
        reply = setting.ask(request)
        assert reply is not None
        assert ConsumerStatus.decode(reply.body).message_queue_table == expected


def test_running_info_with_what_the_instance_knows(setting: Setting, consumer: Any) -> None:
    fields = {"consumerGroup": "g", "clientId": "c", "jstackEnable": "true"}
    reply = setting.ask(Command(RequestCode.GET_CONSUMER_RUNNING_INFO, fields))
    assert reply is not None
    info = ConsumerRunningInfo.decode(reply.body)
    assert info.properties == {
        "own": "text",
        "PROP_NAMESERVER_ADDR": "n:1;n:2",
        "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
        "PROP_CLIENT_VERSION": "V4_9_8",
    }
    assert "MainThread" in (info.jstack or "")
    quiet = setting.ask(
        Command(RequestCode.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "g", "clientId": "c"})
    )
    assert quiet is not None
    assert ConsumerRunningInfo.decode(quiet.body).jstack is None


def test_a_message_to_be_consumed_now(setting: Setting, consumer: Any) -> None:
    fields = {"consumerGroup": "g", "clientId": "c", "msgId": "x", "brokerName": "b"}
    reply = setting.ask(Command(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields, _record()))
    assert reply is not None
    result = ConsumeDirectlyResult.decode(reply.body)
    assert result.consume_result == "CR_SUCCESS"
    [(message, broker_name)] = consumer.consumed
    assert (message.topic, message.body, broker_name) == ("T", b"hello", "b")


def test_a_reply_message_is_shown_to_every_producer(
    setting: Setting, producer: Any, make_producer: Any
) -> None:
    other = make_producer("q")
    setting.roles.add_producer(other)
    fields = {
        "producerGroup": "replier",
        "topic": "c_REPLY_TOPIC",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": "0",
        "sysFlag": "0",
        "bornTimestamp": "1",
        "flag": "0",
        "bornHost": "127.0.0.1:1",
        "storeHost": "127.0.0.1:2",
        "storeTimestamp": "2",
    }
    request = Command(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, fields, b"answer")
    reply = setting.ask(request)
    assert reply is not None
    assert reply.code == ResponseCode.SUCCESS
    assert producer.replies == other.replies == [request]


GROUP = {"consumerGroup": "g", "clientId": "c"}
RESET = {"topic": "T", "group": "g", "timestamp": "5"}


@pytest.mark.parametrize(
    ("code", "fields", "body", "complaint"),
    [
        (RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {}, b"", "consumerGroup"),
        (RequestCode.CHECK_TRANSACTION_STATE, {}, b"", "tranStateTableOffset"),
        (
            RequestCode.CHECK_TRANSACTION_STATE,
            {"tranStateTableOffset": "1", "commitLogOffset": "2"},
            b"junk",
            "no message",
        ),
        (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, {"topic": "T"}, b"{}", "group"),
        (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, RESET, b"junk", ""),
        (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, RESET | {"group": "x"}, b"{}", "<x>"),
        (RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, {}, b"", "topic"),
        (RequestCode.GET_CONSUMER_RUNNING_INFO, GROUP | {"consumerGroup": "x"}, b"", "<x>"),
        (RequestCode.CONSUME_MESSAGE_DIRECTLY, GROUP, b"", "no message"),
        (RequestCode.CONSUME_MESSAGE_DIRECTLY, GROUP, _record()[:50], "no message"),
        (RequestCode.CONSUME_MESSAGE_DIRECTLY, GROUP | {"consumerGroup": "x"}, b"", "<x>"),
        (RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, {"queueId": "none"}, b"", ""),
    ],
)
def test_bad_input_is_answered_with_an_error_code(
    setting: Setting,
    consumer: Any,
    producer: Any,
    code: int,
    fields: dict[str, str],
    body: bytes,
    complaint: str,
) -> None:
    reply = setting.ask(Command(code, fields, body))
    assert reply is not None
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert complaint in (reply.remark or "")


def test_a_role_that_fails_is_an_error_code_too(setting: Setting, consumer: Any) -> None:
    def broken() -> None:
        raise RuntimeError("boom")

    consumer.running_info = broken
    reply = setting.ask(Command(RequestCode.GET_CONSUMER_RUNNING_INFO, GROUP))
    assert reply is not None
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert "boom" in (reply.remark or "")
