"""Requests recorded from Java programs, answered here and compared with what Java's name servers answered.

The tables are brought into the state of the recording by a recorded registration; requests whose recorded answer
depends on other moments of that recording are left to the tests below, which say what they need.
"""

from __future__ import annotations

import json
import zlib
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest

from cometmq.base.properties_file import parse_properties
from cometmq.model.topic import DataVersion, TopicConfig
from cometmq.namesrv.namesrv_config import NamesrvConfig
from cometmq.namesrv.server import NameServer
from cometmq.protocol import fastjson
from cometmq.protocol.bodies.register import RegisterBrokerBody, encode_register_body
from cometmq.protocol.bodies.topic import TopicConfigTable
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.protocol.frame import decode_bytes
from cometmq.remoting.connection import Connection

GOLDEN = Path(__file__).parents[2] / "golden"
TABLE_49 = "49-0126"
TABLE_55 = "55-0362"

SAME_AS_49 = """
    49-0119 49-0120 49-0122 49-0123 49-0126 49-0130 49-0131 49-0133 49-0134 49-0135 49-0139 49-0142 49-0161
    49-0163 49-0177 49-0199 49-0200 49-0201 49-0209 49-0210 49-0218
"""
SAME_AS_55 = """
    55-0354 55-0355 55-0357 55-0358 55-0363 55-0364 55-0365 55-0368 55-0369 55-0370 55-0371 55-0376 55-0377
    55-0378 55-0401 55-0403 55-0417 55-0439 55-0440 55-0441 55-0449 55-0450 55-0488
"""


@cache
def recorded(version: str) -> dict[str, dict[str, Command]]:
    pairs: dict[str, dict[str, Command]] = {}
    with (GOLDEN / f"frames-{version}.jsonl").open() as lines:
        for line in lines:
            frame = json.loads(line)
            if "namesrv" in frame["to"] + frame["from"]:
                command = decode_bytes(bytes.fromhex(frame["frame_hex"]))
                pairs.setdefault(frame["pair"], {})[frame["direction"]] = command
    return pairs


class Line:
    """A connection that keeps what is sent over it."""

    is_accepted = True

    peer = "127.0.0.1:1"
    is_accepted = True

    def __init__(self) -> None:
        self.sent: list[Command] = []

    def send(self, command: Command) -> None:
        self.sent.append(command)


class Server:
    def __init__(self, *tables: Command, **settings: Any) -> None:
        self.server = NameServer(NamesrvConfig(**settings))
        self.line = Line()
        for table in tables:
            self.ask_command(table)

    def ask_command(self, command: Command) -> Command:
        (reply,) = self.answers(command)
        assert (reply.opaque, reply.flag) == (command.opaque, 1)
        return reply

    def answers(self, command: Command) -> list[Command]:
        self.line.sent = []
        self.server.dispatcher.dispatch(cast(Connection, self.line), command)
        return self.line.sent

    def ask(self, code: int, body: bytes = b"", version: int = 409, /, **ext: str) -> Command:
        return self.ask_command(
            Command(code, ext=ext or None, body=body, version=version, opaque=7)
        )

    def register(self, **ext: str) -> Command:
        body = RegisterBrokerBody(
            topics=TopicConfigTable(
                topic_config_table={n: TopicConfig(topic_name=n) for n in ("T", "Tü")},
                data_version=DataVersion(counter=1, timestamp=2),
            )
        )
        data = encode_register_body(body, compressed=False, version=409)
        fields = {
            "brokerName": "a",
            "brokerAddr": "10.0.0.1:10911",
            "clusterName": "C",
            "haServerAddr": "10.0.0.1:10912",
            "brokerId": "0",
            "bodyCrc32": str(zlib.crc32(data) & 0x7FFFFFFF),
        }
        return self.ask(RequestCode.REGISTER_BROKER, data, **(fields | ext))


def content(body: bytes) -> Any:
    """A body without what is not told apart: the order of lists of names, a flag of 5.x that nobody reads."""
    if not body.startswith(b"{"):
        return body
    return _plain(fastjson.loads(body))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if k != "enableActingMaster"}
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return sorted(value)
    return [_plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("pair", SAME_AS_49.split())
def test_answers_are_those_of_rocketmq_4(pair: str) -> None:
    check_pair(recorded("4.9"), TABLE_49, pair)


@pytest.mark.parametrize("pair", SAME_AS_55.split())
def test_answers_are_those_of_rocketmq_5(pair: str) -> None:
    check_pair(recorded("5.5"), TABLE_55, pair)


def check_pair(pairs: dict[str, dict[str, Command]], table: str, pair: str) -> None:
    server = Server(pairs[table]["request"])
    # The namespace existed in the recording and was empty.
    server.ask(100, namespace="ORDER_TOPIC_CONFIG", key="k", value="v")
    server.ask(102, namespace="ORDER_TOPIC_CONFIG", key="k")
    request, expected = pairs[pair]["request"], pairs[pair]["response"]
    reply = server.ask_command(request)
    assert reply.code == expected.code
    assert (reply.ext or {}) == (expected.ext or {})
    assert content(bytes(reply.body)) == content(bytes(expected.body))


def test_bodies_of_rocketmq_4_are_equal_byte_for_byte() -> None:
    pairs = recorded("4.9")
    server = Server(pairs[TABLE_49]["request"])
    for pair in ("49-0133", "49-0134", "49-0139", "49-0142"):
        assert server.ask_command(pairs[pair]["request"]).body == pairs[pair]["response"].body


def test_a_slave_is_told_its_master() -> None:
    pairs = recorded("4.9")
    server = Server(pairs[TABLE_49]["request"])
    assert server.ask_command(pairs["49-0127"]["request"]).ext == {
        "masterAddr": "127.0.0.1:32010",
        "haServerAddr": "127.0.0.1:32011",
    }


def test_a_oneway_registration_counts_and_is_not_answered() -> None:
    pairs = recorded("4.9")
    server = Server()
    request = pairs["49-0128"]["request"]
    assert request.flag & FLAG_ONEWAY
    assert server.answers(request) == []
    assert server.ask(105, topic="SELF_TEST_TOPIC").code == ResponseCode.SUCCESS


def test_wiped_and_given_back_write_permission_counts_topics() -> None:
    pairs = recorded("4.9")
    server = Server(pairs[TABLE_49]["request"])
    count = str(len(server.server.table.topics()))
    assert server.ask(205, brokerName="b49").ext == {"wipeTopicCount": count}
    assert server.ask(327, brokerName="b49").ext == {"addTopicCount": count}
    assert server.ask(205, brokerName="nobody").ext == {"wipeTopicCount": "0"}


def test_the_reply_to_an_unknown_topic_names_it() -> None:
    server = Server()
    reply = server.ask(105, topic="T")
    assert reply.code == ResponseCode.TOPIC_NOT_EXIST
    assert reply.remark is not None
    assert reply.remark.startswith("No topic route info in name server for the topic: T\nSee http")
    reply = server.ask(105)
    assert (reply.code, "topic: null" in (reply.remark or "")) == (17, True)


def test_the_form_of_a_route_follows_the_version_of_the_client() -> None:
    server = Server()
    assert server.register().code == ResponseCode.SUCCESS
    old = bytes(server.ask(105, b"", 399, topic="Tü").body)
    new = bytes(server.ask(105, b"", 401, topic="Tü").body)
    asked = bytes(server.ask(105, b"", 0, topic="Tü", acceptStandardJsonOnly="true").body)
    assert b'{0:"10.0.0.1:10911"}' in old
    assert b'{"0":"10.0.0.1:10911"}' in new
    assert asked == new


def test_order_configuration_is_told_to_brokers_and_if_enabled_to_clients() -> None:
    server = Server()
    server.ask(100, namespace="ORDER_TOPIC_CONFIG", key="T", value="a:4")
    assert fastjson.loads(bytes(server.register().body)) == {"table": {"T": "a:4"}}
    assert "orderTopicConf" not in fastjson.loads(bytes(server.ask(105, topic="T").body))
    server.ask(318, b"orderMessageEnable=true\nreturnOrderTopicConfigToBroker=false")
    assert fastjson.loads(bytes(server.ask(105, topic="T").body))["orderTopicConf"] == "a:4"
    assert server.register().body == b""


def test_versions_are_compared_and_told() -> None:
    server = Server()
    who = {"brokerName": "a", "brokerAddr": "10.0.0.1:10911", "clusterName": "C", "brokerId": "0"}
    unknown = server.ask(322, b'{"counter":1,"timestamp":2}', **who)
    assert (unknown.ext, unknown.body) == ({"changed": "true"}, b"")
    server.register()
    same = server.ask(322, b'{"counter":1,"timestamp":2}', **who)
    assert same.ext == {"changed": "false"}
    other = server.ask(322, b'{"counter":9,"timestamp":2}', **who)
    assert other.ext == {"changed": "true"}
    assert fastjson.loads(bytes(other.body)) == {"counter": 1, "timestamp": 2}


def test_key_values_are_put_listed_and_deleted() -> None:
    server = Server()
    assert server.ask(100, namespace="n", key="k", value="v").code == 0
    assert server.ask(101, namespace="n", key="k").ext == {"value": "v"}
    assert server.ask(219, namespace="n").body == b'{"table":{"k":"v"}}'
    server.ask(102, namespace="n", key="k")
    assert server.ask(219, namespace="n").body == b'{"table":{}}'


def test_a_topic_is_registered_and_deleted_by_hand() -> None:
    server = Server()
    server.register()
    body = b'{"queueDatas":[{"brokerName":"a","readQueueNums":2,"writeQueueNums":2,"perm":6}]}'
    assert server.ask(217, body, topic="N").code == 0
    assert server.ask(105, topic="N").code == 0
    server.ask(216, topic="N", clusterName="other")
    assert server.ask(105, topic="N").code == 0
    server.ask(216, topic="N", clusterName="C")
    assert server.ask(105, topic="N").code == 17


def test_lists_can_be_switched_off() -> None:
    server = Server(enable_all_topic_list=False, enable_topic_list=False)
    for code in (206, 311, 312, 313):
        assert server.ask(code).code == ResponseCode.SYSTEM_ERROR
    assert server.ask(224, cluster="C").code == ResponseCode.SYSTEM_ERROR
    assert server.ask(304).code == ResponseCode.SUCCESS


def test_routes_wait_for_brokers_if_so_configured() -> None:
    server = Server(need_wait_for_service=True, wait_seconds=60)
    server.register()
    reply = server.ask(105, topic="T")
    assert (reply.code, reply.remark) == (1, "name server not ready")


def test_the_configuration_is_told() -> None:
    values = parse_properties(bytes(Server().ask(319).body).decode())
    assert values["listenPort"] == "9876"
    assert values["orderMessageEnable"] == "false"


@pytest.mark.parametrize(
    ("ext", "text"),
    [
        ({"brokerId": "-1"}, "brokerId must be 0 or more"),
        ({"brokerId": "x"}, "brokerId"),
        ({"brokerAddr": "nowhere"}, "expected an address"),
        ({"brokerName": ""}, "printable"),
        ({"bodyCrc32": "1"}, "crc32 not match"),
        ({"compressed": "true"}, "broken compression"),
    ],
)
def test_a_registration_that_cannot_be_meant_is_refused(ext: dict[str, str], text: str) -> None:
    server = Server()
    reply = server.register(**ext)
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert text in (reply.remark or "")
    assert server.server.table.cluster_info() == ({}, {})


@pytest.mark.parametrize("code", [100, 101, 102, 103, 104, 205, 216, 217, 219, 224, 322, 327, 901])
def test_missing_fields_are_refused_by_name(code: int) -> None:
    reply = Server().ask(code)
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert "missing required field" in (reply.remark or "")


@pytest.mark.parametrize("body", [b"\xff", b"x" * 70_000])
def test_settings_that_are_no_small_text_are_refused(body: bytes) -> None:
    assert Server().ask(318, body).code == ResponseCode.SYSTEM_ERROR


def test_deep_json_is_refused() -> None:
    server = Server()
    reply = server.ask(217, b'{"queueDatas":' + b"[" * 100_000, topic="T")
    assert reply.code == ResponseCode.SYSTEM_ERROR


def test_an_unknown_request_is_answered_with_3() -> None:
    reply = Server().ask(10)
    assert (reply.code, reply.remark) == (3, " request type 10 not supported")


def test_no_route_is_told_that_no_client_could_hold() -> None:
    server = Server()
    server.register()
    body = b'{"queueDatas":[{"brokerName":"a","readQueueNums":2147483647,"writeQueueNums":1}]}'
    reply = server.ask(217, body, topic="N")
    assert reply.code == ResponseCode.SYSTEM_ERROR
    assert "2147483647 queues, where a topic may have" in (reply.remark or "")
    assert server.ask(105, topic="N").code == 17


def test_the_topics_of_a_broker_and_the_queues_of_a_topic_are_settings() -> None:
    server = Server(broker_topics_max=1)
    reply = server.register()
    assert (reply.code, reply.remark) == (
        1,
        "registration: 2 topics, where at most 1 are taken of one broker",
    )
    assert server.ask(318, b"brokerTopicsMax=1000\ntopicQueuesMax=15").code == 0
    assert server.register().code == 0
    assert server.ask(105, topic="T").code == 17, "it has 16 queues"
    assert server.ask(318, b"topicQueuesMax=16").code == 0
    assert server.register().code == 0
    assert server.ask(105, topic="T").code == 0
