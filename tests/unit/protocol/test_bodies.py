"""Bodies whose reading or writing has a twist beyond the golden samples."""

from __future__ import annotations

import struct
import zlib

import pytest

from cometmq.base.errors import RemoteProtocolError
from cometmq.model.message_queue import MessageQueue
from cometmq.model.route import BrokerData, QueueData, TopicRoute
from cometmq.model.subscription import SubscriptionData
from cometmq.model.topic import DataVersion, TopicConfig, TopicQueues
from cometmq.protocol.bodies.admin import TimerCheckpoint, decode_timer_checkpoint
from cometmq.protocol.bodies.auth import User, decode_users, encode_list
from cometmq.protocol.bodies.group import decode_group_config
from cometmq.protocol.bodies.heartbeat import (
    ConsumerData,
    HeartbeatData,
    ProducerData,
    decode_heartbeat,
)
from cometmq.protocol.bodies.lock import LockBatchReply
from cometmq.protocol.bodies.offsets import ConsumerOffsets, ConsumerStatus, ResetOffsets
from cometmq.protocol.bodies.pop import decode_bit_set, encode_bit_set
from cometmq.protocol.bodies.register import (
    RegisterBrokerBody,
    RegisteredBody,
    RegisteredTable,
    decode_register_body,
    encode_register_body,
)
from cometmq.protocol.bodies.route import decode_route, encode_route
from cometmq.protocol.bodies.topic import (
    TopicConfigTable,
    decode_data_version,
    encode_data_version,
)

ROUTE = TopicRoute(
    queue_datas=[QueueData(broker_name="b", read_queue_nums=4, write_queue_nums=2, perm=6)],
    broker_datas=[BrokerData(cluster="c", broker_name="b", broker_addrs={1: "x:2", 0: "x:1"})],
)
REGISTRATION = RegisterBrokerBody(
    topics=TopicConfigTable(
        topic_config_table={
            "T": TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=3, perm=7),
            "%RETRY%g": TopicConfig(topic_name="%RETRY%g", attributes={"+a": "b c"}),
        },
        data_version=DataVersion(counter=3, timestamp=5),
    ),
    filter_server_list=["127.0.0.1:1"],
)
REGISTERED = RegisteredBody(
    topics=RegisteredTable(
        topic_config_table={
            "T": TopicQueues(topic_name="T", read_queue_nums=4, write_queue_nums=3, perm=7),
            "%RETRY%g": TopicQueues(topic_name="%RETRY%g"),
        },
        data_version=DataVersion(counter=3, timestamp=5),
    ),
    filter_server_list=["127.0.0.1:1"],
)


def _route_of(*counts: int, order: str | None = None) -> TopicRoute:
    """A topic with so many queues on each broker."""
    names = [f"b{number}" for number in range(len(counts))]
    return TopicRoute(
        queue_datas=[
            QueueData(broker_name=name, read_queue_nums=count, write_queue_nums=count)
            for name, count in zip(names, counts, strict=True)
        ],
        broker_datas=[
            BrokerData(cluster="c", broker_name=name, broker_addrs={0: f"{name}:1"})
            for name in names
        ],
        order_topic_conf=order,
    )


def test_heartbeat_of_java_s_shape() -> None:
    heartbeat = HeartbeatData(
        client_id="127.0.0.1@1",
        producer_data_set=[ProducerData(group_name="p")],
        consumer_data_set=[
            ConsumerData(group_name="c", subscription_data_set=[SubscriptionData(topic="T")])
        ],
    )
    body = heartbeat.encode()
    assert body == (
        b'{"clientID":"127.0.0.1@1","consumerDataSet":[{"consumeFromWhere":'
        b'"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","groupName":"c",'
        b'"messageModel":"CLUSTERING","subscriptionDataSet":[{"classFilterMode":false,'
        b'"codeSet":[],"expressionType":"TAG","subString":"*","subVersion":0,"tagsSet":[],'
        b'"topic":"T"}],"unitMode":false}],"producerDataSet":[{"groupName":"p"}]}'
    )
    assert decode_heartbeat(body) == heartbeat


def test_heartbeat_with_modes_by_ordinal() -> None:
    heartbeat = decode_heartbeat(
        b'{"clientID":"c","consumerDataSet":[{"groupName":"g","consumeType":1,"messageModel":0,'
        b'"consumeFromWhere":4}],"producerDataSet":null}'
    )
    (consumer,) = heartbeat.consumer_data_set
    assert consumer.consume_type == "CONSUME_PASSIVELY"
    assert consumer.message_model == "BROADCASTING"
    assert consumer.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
    assert heartbeat.producer_data_set == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b"nonsense",
        b"[]",
        b'{"clientID":5}',
        b'{"clientID":"c","consumerDataSet":[{"groupName":"g","consumeType":99}]}',
        b'{"clientID":"c","consumerDataSet":[7]}',
        b'{"clientID":"c","consumerDataSet":{"a":1}}',
        b'{"clientID":"c","producerDataSet":[{}]}',
    ],
)
def test_what_is_no_heartbeat_is_refused(body: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_heartbeat(body)


def test_route_in_both_forms() -> None:
    old = encode_route(ROUTE, standard=False)
    new = encode_route(ROUTE, standard=True)
    assert b'"brokerAddrs":{1:"x:2",0:"x:1"}' in old
    assert b'"brokerAddrs":{"0":"x:1","1":"x:2"}' in new
    assert decode_route(old) == decode_route(new) == ROUTE


@pytest.mark.parametrize("nums", ["9999999999", "1.5", '"x"', "[]"])
def test_a_route_with_impossible_numbers_is_refused(nums: str) -> None:
    body = encode_route(ROUTE, standard=True).replace(b'"perm":6', f'"perm":{nums}'.encode())
    with pytest.raises(RemoteProtocolError, match="topic route"):
        decode_route(body)


@pytest.mark.parametrize(
    ("route", "fault"),
    [
        (_route_of(2**31 - 1), "2147483647 queues, where a topic may have 0 to 262144"),
        (_route_of(200_000, 62_145), "262145 queues"),
        (_route_of(-1), "-1 queues on broker 'b0'"),
        (_route_of(1, order="b0:4;b1:2147483647"), "2147483651 queues"),
        (_route_of(1, order="b0:" + "9" * 5000), "queues"),
    ],
)
def test_a_route_that_cannot_be_true_is_refused(route: TopicRoute, fault: str) -> None:
    with pytest.raises(RemoteProtocolError, match=f"cannot be true: .*{fault}"):
        decode_route(encode_route(route, standard=True))


def test_a_route_of_a_large_cluster_is_taken() -> None:
    route = _route_of(*[26] * 10_000, order="b0:8;b1:x;b2")
    assert decode_route(encode_route(route, standard=True)) == route
    assert route.order_counts() == [("b0", 8)]


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("version", [409, 479])
def test_registration_round_trip(compressed: bool, version: int) -> None:
    body = encode_register_body(REGISTRATION, compressed=compressed, version=version)
    assert decode_register_body(body, compressed=compressed, version=version) == REGISTERED


def test_a_compressed_registration_that_denies_it_is_read() -> None:
    body = encode_register_body(REGISTRATION, compressed=True, version=409)
    assert decode_register_body(body, compressed=False, version=409) == REGISTERED


@pytest.mark.parametrize("compressed", [True, False])
def test_queue_mappings_of_version_5_are_passed_over(compressed: bool) -> None:
    topics = TopicConfigTable(topic_queue_mapping_info_map={"S": {"topic": "S", "totalQueues": 2}})
    body = encode_register_body(
        RegisterBrokerBody(topics=topics), compressed=compressed, version=479
    )
    assert b"totalQueues" in (zlib.decompress(body) if compressed else body)
    read = decode_register_body(body, compressed=compressed, version=479)
    assert read == RegisteredBody()


def test_an_old_broker_registers_a_bare_table() -> None:
    body = REGISTRATION.topics.encode()
    read = decode_register_body(body, compressed=False, version=36)
    assert read.topics == REGISTERED.topics


def test_no_registration_body_is_an_empty_registration() -> None:
    assert decode_register_body(b"", compressed=False, version=409) == RegisteredBody()
    assert decode_register_body(b"{}", compressed=False, version=409) == RegisteredBody()


def _text(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


@pytest.mark.parametrize(
    "plain",
    [
        b"",
        b"\x00\x00",
        struct.pack(">i", -1),
        struct.pack(">i", 0x7FFFFFFF),
        _text(b"{}") + struct.pack(">i", -1),
        _text(b"{}") + struct.pack(">i", 0x7FFFFFFF),
        _text(b"{}") + struct.pack(">i", 1) + _text(b"T 1 1 6"),
        _text(b"{}") + struct.pack(">i", 1) + _text(b"T x 1 6 SINGLE_TAG"),
        _text(b"{}") + struct.pack(">i", 1) + _text(b"T 99999999999 1 6 SINGLE_TAG"),
        _text(b"{}") + struct.pack(">i", 1) + _text(b"\xff 1 1 6 SINGLE_TAG"),
        _text(b"{}") + struct.pack(">i", 1) + _text(b"T 1 1 -99999999999 SINGLE_TAG"),
        _text(b"{}") + struct.pack(">i", 0),
        _text(b"{}") + struct.pack(">i", 0) + _text(b"{}"),
        _text(b"[]") + struct.pack(">i", 0) + _text(b"[]"),
    ],
)
def test_a_broken_registration_layout_is_refused(plain: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_register_body(zlib.compress(plain), compressed=True, version=479)


def test_broken_compression_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="broken compression"):
        decode_register_body(b"not zlib", compressed=True, version=409)
    whole = encode_register_body(REGISTRATION, compressed=True, version=409)
    with pytest.raises(RemoteProtocolError, match="cut off"):
        decode_register_body(whole[:-5], compressed=True, version=409)


def test_state_version_is_written_only_when_there_is_one() -> None:
    assert encode_data_version(DataVersion(timestamp=5)) == b'{"counter":0,"timestamp":5}'
    newer = DataVersion(counter=1, timestamp=2, state_version=3)
    assert encode_data_version(newer) == b'{"counter":1,"stateVersion":3,"timestamp":2}'
    assert decode_data_version(encode_data_version(newer)) == newer


def test_tables_by_queue_have_object_keys() -> None:
    queue = MessageQueue("b", 3, "T")
    text = b'{"brokerName":"b","queueId":3,"topic":"T"}'
    assert ResetOffsets(offset_table={queue: 5}).encode() == b'{"offsetTable":{' + text + b":5}}"
    status = ConsumerStatus(consumer_table={"client": {queue: 1}})
    assert ConsumerStatus.decode(status.encode()) == status


def test_offsets_by_queue_id_have_integer_keys() -> None:
    offsets = ConsumerOffsets(offset_table={"T@g": {0: 1, 3: 9}})
    assert offsets.encode() == b'{"offsetTable":{"T@g":{0:1,3:9}}}'
    assert ConsumerOffsets.decode(offsets.encode()) == offsets
    assert ConsumerOffsets.decode(b'{"offsetTable":{"T@g":{"0":1,"3":9}}}') == offsets


@pytest.mark.parametrize("key", ["x", "99999999999", "1.5", "{}"])
def test_offsets_by_anything_else_are_refused(key: str) -> None:
    with pytest.raises(RemoteProtocolError, match="ConsumerOffsets"):
        ConsumerOffsets.decode(f'{{"offsetTable":{{"T@g":{{{key}:1}}}}}}'.encode())


def test_an_empty_lock_answer_is_an_empty_list() -> None:
    assert LockBatchReply().encode() == b'{"lockOKMQSet":[]}'


def test_a_group_config_needs_no_more_than_its_name() -> None:
    config = decode_group_config(b'{"groupName":"g","retryMaxTimes":3}')
    assert (config.retry_max_times, config.consume_enable) == (3, True)


def test_defaults_are_not_shared() -> None:
    TopicConfigTable().topic_config_table["x"] = TopicConfig(topic_name="x")
    TopicConfigTable().data_version.counter = 9
    assert TopicConfigTable() == TopicConfigTable(data_version=DataVersion())


def test_bit_sets_are_java_s() -> None:
    assert encode_bit_set([1, 9]) == "AgI="
    assert decode_bit_set("AgI=") == [1, 9]
    assert encode_bit_set([]) == ""
    with pytest.raises(RemoteProtocolError):
        decode_bit_set("not base64")


def test_timer_checkpoint_has_56_bytes() -> None:
    assert decode_timer_checkpoint(bytes(56)) == TimerCheckpoint(0, 0, 0, 0, 0, 0, 0)
    with pytest.raises(RemoteProtocolError):
        decode_timer_checkpoint(bytes(55))


def test_lists_of_users_are_bare_and_reprs_hide_passwords() -> None:
    user = User(username="u", password="hidden", user_type="Super")
    assert decode_users(encode_list([user])) == [user]
    assert "hidden" not in repr(user)
