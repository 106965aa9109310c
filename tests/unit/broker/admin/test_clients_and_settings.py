"""Requests about connected clients, those passed on to them, and settings over the wire."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cometmq.base.errors import CallTimedOut, ConnectionLost
from cometmq.base.properties_file import parse_properties
from cometmq.broker import request_modes
from cometmq.model.address import pack_host
from cometmq.model.message_id import offset_id_text
from cometmq.model.message_queue import MessageQueue
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command


def queue(queue_id: int) -> str:
    return json.dumps(
        {"brokerName": "b49", "queueId": queue_id, "topic": "t"}, separators=(",", ":")
    )


def test_connections_of_consumers_and_producers(rig: Any) -> None:
    rig.consumer("g", "c1", "t")
    rig.producer("p", "c2")
    found = rig.json(203, {"consumerGroup": "g"})
    assert found["connectionSet"] == [
        {"clientId": "c1", "clientAddr": "127.0.0.1:40001", "language": "JAVA", "version": 409}
    ]
    assert found["messageModel"] == "CLUSTERING"
    assert list(found["subscriptionTable"]) == ["t"]
    assert rig.json(204, {"producerGroup": "p"})["connectionSet"][0]["clientId"] == "c2"
    (info,) = rig.json(328)["data"]["p"]
    assert info["remoteIP"] == "/127.0.0.1:40002"
    assert info["lastUpdateTimestamp"] == rig.clock.now_ms
    assert rig.ask(203, {"consumerGroup": "x"}).code == 206
    assert rig.ask(204, {"producerGroup": "x"}).remark == "the producer group[x] not exist"


def test_members_that_differ_are_shown_with_what_they_want(rig: Any) -> None:
    rig.consumer("g", "c1", "t", peer="127.0.0.1:1")
    assert "subscriptionMismatch" not in rig.json(203, {"consumerGroup": "g"})
    rig.consumer("g", "c2", "t", "u", peer="127.0.0.1:2")
    assert rig.json(203, {"consumerGroup": "g"})["subscriptionMismatch"] == [
        {
            "topic": "u",
            "camps": [
                {"clientIds": ["c1"], "expressionType": "TAG"},
                {"clientIds": ["c2"], "expressionType": "TAG", "subString": "*"},
            ],
        }
    ]


def reset(rig: Any, **fields: str) -> Command:
    ext = {"topic": "t", "group": "g", "timestamp": "-1", "isForce": "true", **fields}
    reply: Command = rig.ask(222, ext)
    return reply


@pytest.fixture
def consumed(make_rig: Callable[..., Any]) -> Any:
    """Two queues of five messages at times 10 to 50, consumed up to 3 and 5; clients are told of resets."""
    rig = make_rig(useServerSideResetOffset="false")
    rig.topic("t", 2)
    for queue_id, offset in ((0, 3), (1, 5)):
        rig.store.add("t", queue_id, 10, 20, 30, 40, 50)
        rig.offsets.commit("g", "t", queue_id, offset)
    return rig


def test_a_reset_is_pushed_to_every_client_of_the_group(consumed: Any) -> None:
    peers = [consumed.consumer("g", f"c{n}", "t", peer=f"127.0.0.1:{n}") for n in (1, 2)]
    reply = reset(consumed, timestamp="20")
    assert (reply.code, reply.remark) == (0, "not set any response code")
    assert fastjson.loads(bytes(reply.body)) == {"offsetTable": {queue(0): 1, queue(1): 1}}
    for peer in peers:
        (push,) = peer.sent
        assert (push.code, push.is_oneway) == (220, True)
        assert push.ext == {"topic": "t", "group": "g", "timestamp": "20", "isForce": "false"}
        assert bytes(push.body) == bytes(reply.body)
    # For a queue that nobody holds at the moment.
    assert consumed.offsets.query("g", "t", 0) == 1


@pytest.mark.parametrize(
    ("fields", "first", "second"),
    [
        ({"timestamp": "-1"}, 5, 5),
        ({"timestamp": "45", "isForce": "false"}, 3, 4),
        ({"timestamp": "0"}, 0, 0),
    ],
)
def test_where_a_reset_leads(
    consumed: Any, fields: dict[str, str], first: int, second: int
) -> None:
    consumed.consumer("g", "c1", "t")
    table = fastjson.loads(bytes(reset(consumed, **fields).body))["offsetTable"]
    assert table == {queue(0): first, queue(1): second}


def test_one_queue_can_be_reset_to_an_offset(consumed: Any) -> None:
    consumed.consumer("g", "c1", "t")
    table = fastjson.loads(bytes(reset(consumed, queueId="1", offset="2").body))["offsetTable"]
    assert table == {queue(1): 2}
    assert reset(consumed, queueId="1", offset="99").code == 1
    assert reset(consumed, queueId="7", offset="0").code == 1


def test_a_client_in_c_gets_a_list(consumed: Any) -> None:
    peer = consumed.consumer("g", "c1", "t")
    ext = {"topic": "t", "group": "g", "timestamp": "20", "isForce": "true"}
    assert consumed.ask(222, ext, language="CPP").code == 0
    table = fastjson.loads(bytes(peer.sent[0].body))["offsetTable"]
    assert table[0] == {"brokerName": "b49", "queueId": 0, "topic": "t", "offset": 1}


def test_what_cannot_be_reset(consumed: Any) -> None:
    assert reset(consumed, timestamp="20").code == 206
    assert consumed.offsets.query("g", "t", 0) == 3
    reply = reset(consumed, group="x")
    assert (reply.code, reply.remark) == (1, "THe consumer group <x> not exist")
    assert reset(consumed, topic="x").code == 1
    assert reset(consumed, timestamp="soon").code == 1


def test_clients_are_asked_for_their_own_offsets(consumed: Any) -> None:
    def own_offsets(request: Command) -> Command:
        assert request.code == 221
        body = fastjson.dumps({"messageQueueTable": {MessageQueue("b49", 0, "t"): 4}})
        return request.reply(body=body)

    def lost(request: Command) -> Command:
        raise ConnectionLost("gone")

    consumed.consumer("g", "c1", "t", peer="127.0.0.1:1").answer = own_offsets
    consumed.consumer("g", "c2", "t", peer="127.0.0.1:2").answer = lost
    consumed.consumer("g", "c3", "t", peer="127.0.0.1:3").answer = lambda r: r.reply(body=b"{")
    consumed.consumer("g", "c4", "t", peer="127.0.0.1:4").answer = lambda r: r.reply(1, "no")
    answer = consumed.json(223, {"topic": "t", "group": "g"})
    assert answer == {"consumerTable": {"c1": {queue(0): 4}}, "messageQueueTable": {}}
    answer = consumed.json(223, {"topic": "t", "group": "g", "clientAddr": "c2"})
    assert answer["consumerTable"] == {}
    assert consumed.ask(223, {"topic": "t", "group": "x"}).code == 206


def test_the_answer_of_a_client_comes_back_as_it_is(rig: Any) -> None:
    def running(request: Command) -> Command:
        assert request.ext == {"consumerGroup": "g", "clientId": "c1", "jstackEnable": "true"}
        reply = request.reply(0, "fine", body=b'{"mqTable":{}}')
        reply.version = 401
        reply.opaque = 999
        return reply

    rig.consumer("g", "c1", "t").answer = running
    ext = {"consumerGroup": "g", "clientId": "c1", "jstackEnable": "true"}
    reply = rig.ask(307, ext)
    assert (reply.code, reply.remark, reply.version, reply.opaque) == (0, "fine", 401, 7)
    assert bytes(reply.body) == b'{"mqTable":{}}'


def test_a_client_that_cannot_be_asked(rig: Any) -> None:
    ext = {"consumerGroup": "g", "clientId": "c1"}
    reply = rig.ask(307, ext)
    assert (reply.code, reply.remark) == (1, "The Consumer <g> <c1> not online")
    peer = rig.consumer("g", "c1", "t")

    def late(request: Command) -> Command:
        raise CallTimedOut("10 s", sent=True)

    peer.answer = late
    assert rig.ask(307, ext).code == 207
    rig.consumer("old", "c1", "t", version=61)
    assert rig.ask(307, {**ext, "consumerGroup": "old"}).code == 1


def test_a_message_is_consumed_directly(rig: Any) -> None:
    peer = rig.consumer("g", "c1", "t")
    peer.answer = lambda request: request.reply(body=b'{"consumeResult":"CR_SUCCESS"}')
    rig.store.records[300] = b"the record"
    message_id = offset_id_text(pack_host("127.0.0.1", 10911), 300)
    ext = {"consumerGroup": "g", "clientId": "c1", "msgId": message_id}
    assert rig.json(309, ext) == {"consumeResult": "CR_SUCCESS"}
    (request,) = peer.sent
    assert bytes(request.body) == b"the record"
    assert request.ext == {**ext, "brokerName": "b49"}
    missing = offset_id_text(pack_host("127.0.0.1", 10911), 301)
    assert rig.ask(309, {**ext, "msgId": missing}).code == 1
    assert rig.ask(309, {**ext, "msgId": "zz"}).code == 1
    assert rig.ask(309, {"consumerGroup": "g"}).remark == "The Consumer <g> <> not online"


def test_the_broker_shares_queues_out(rig: Any) -> None:
    rig.remote_queues = [MessageQueue(name, n, "t") for name in ("b", "a") for n in range(2)]
    question = {
        "topic": "t",
        "consumerGroup": "g",
        "clientId": "c2",
        "strategyName": "AVG",
        "messageModel": "CLUSTERING",
    }
    assert rig.json(400, None, question) == {}
    for n in (1, 2):
        rig.consumer("g", f"c{n}", "t", peer=f"127.0.0.1:{n}")
    assigned = rig.json(400, None, question)["messageQueueAssignments"]
    assert [entry["mode"] for entry in assigned] == ["PULL", "PULL"]
    assert [entry["messageQueue"]["brokerName"] for entry in assigned] == ["b", "b"]
    assert rig.json(400, None, {**question, "clientId": "stranger"}) == {
        "messageQueueAssignments": []
    }
    assert rig.json(400, None, {**question, "strategyName": "GUESS"}) == {}
    assert rig.json(400, None, {**question, "topic": "nowhere"}) == {}
    everything = rig.json(400, None, {**question, "messageModel": "BROADCASTING"})
    assert len(everything["messageQueueAssignments"]) == 4
    assert rig.ask(400).code == 1


def test_request_modes_are_kept_across_a_restart(rig: Any) -> None:
    rig.topic("t")
    mode = {"topic": "t", "consumerGroup": "g", "mode": "PULL", "popShareQueueNum": 0}
    assert rig.ask(401, None, mode).code == 0
    rig.modes.modes.message_request_mode_map.clear()
    rig.modes.load()
    assert rig.json(402) == {"messageRequestModeMap": {"t": {"g": mode}}}


def test_request_modes_have_a_bound(rig: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_modes, "MODES_MAX", 2)
    rig.topic("t")
    mode = {"topic": "t", "mode": "PULL", "popShareQueueNum": 0}
    codes = [rig.ask(401, None, {**mode, "consumerGroup": group}).code for group in "abcab"]
    assert codes == [0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"topic": "%RETRY%g"}, 16),
        ({"topic": "nowhere"}, 17),
        ({"consumerGroup": "../x"}, 1),
        ({"mode": "PUSH"}, 1),
    ],
)
def test_a_request_mode_that_cannot_be(rig: Any, change: dict[str, str], code: int) -> None:
    rig.topic("t")
    mode = {"topic": "t", "consumerGroup": "g", "mode": "PULL", "popShareQueueNum": 0}
    assert rig.ask(401, None, mode | change).code == code
    assert rig.json(402) == {"messageRequestModeMap": {}}


def test_settings_are_read_and_changed(rig: Any) -> None:
    assert rig.ask(25, None, b"brokerPermission=4\nhaListenPort=1\n").code == 0
    reply = rig.ask(26)
    values = parse_properties(bytes(reply.body).decode())
    assert (values["brokerPermission"], values["haListenPort"]) == ("4", "1")
    assert json.loads(reply.ext["version"])["counter"] == 1
    assert rig.conf.read_text() == "# settings\nbrokerPermission=4\nhaListenPort=1\n"


@pytest.mark.parametrize(
    ("body", "code", "named"),
    [
        (b"brokerConfigPath=/tmp/x\n", 16, "brokerConfigPath"),
        (b"storePathRootDir=/tmp/x\n", 16, "storePathRootDir"),
        (b"traceOn=false\nbrokerName=x\n", 16, "brokerName"),
        (b"brokerPermission=lots\n", 1, "brokerPermission"),
        (b"brokerPermision=4\n", 1, "brokerPermission"),
        (b"\xff\xfe", 1, "UTF-8"),
        (b"a=\\u0061", 1, "unknown setting"),
        (b"a=\\uzzzz", 1, "escape"),
    ],
)
def test_a_setting_that_cannot_change_is_named(
    rig: Any, body: bytes, code: int, named: str
) -> None:
    reply = rig.ask(25, None, body)
    assert reply.code == code
    assert named in reply.remark
    assert rig.conf.read_text() == "# settings\n"


LINE_ENDS = ["\\u2028", "\\u2029", "\\u0085", "\\f", "\\u000b", "\\u001c", "\\n", "\\r", "\\u0000"]


@pytest.mark.parametrize("key", ["msgTraceTopicName", "haMasterAddress", "brokerPermission"])
@pytest.mark.parametrize("line_end", LINE_ENDS)
def test_a_value_cannot_smuggle_in_another_setting(rig: Any, key: str, line_end: str) -> None:
    body = f"{key}=4{line_end}filterFunctionDirectory=/tmp/x{line_end}bindAddress=0.0.0.0\n"
    reply = rig.ask(25, None, body.encode())
    assert reply.code == 1
    assert f"{key} must not hold the control character" in reply.remark
    assert rig.conf.read_text() == "# settings\n"


def test_a_switch_cannot_smuggle_in_another_setting(rig: Any) -> None:
    body = b"aclEnable=false\\u2028filterFunctionDirectory=/tmp/x\\u2028bindAddress=0.0.0.0"
    assert rig.ask(25, None, body).code == 1
    assert rig.conf.read_text() == "# settings\n"


@pytest.mark.parametrize("separator", ["\u2028", "\u0085", "\f", "\v", "\x1c"])
def test_only_line_feed_and_carriage_return_end_a_line(rig: Any, separator: str) -> None:
    body = f"haMasterAddress=a{separator}bindAddress=0.0.0.0\n"
    assert rig.ask(25, None, body.encode()).code == 1
    assert rig.conf.read_text() == "# settings\n"


def test_settings_of_many_bytes_are_refused_unread(rig: Any) -> None:
    reply = rig.ask(25, None, b"haMasterAddress=" + b"x" * 64 * 1024)
    assert (reply.code, rig.conf.read_text()) == (1, "# settings\n")
    assert reply.remark == "settings of 65552 bytes; at most 65536 are taken"


def test_a_setting_of_the_start_is_stored_and_the_answer_says_so(rig: Any) -> None:
    reply = rig.ask(25, None, b"maxErrorRateOfBloomFilter=10\nbrokerPermission=4\n")
    assert (reply.code, reply.remark) == (
        0,
        "stored; takes effect at the next start: maxErrorRateOfBloomFilter",
    )
    told = parse_properties(bytes(rig.ask(26).body).decode())
    assert told["maxErrorRateOfBloomFilter"] == "10"
    assert rig.conf.read_text() == "# settings\nmaxErrorRateOfBloomFilter=10\nbrokerPermission=4\n"


@pytest.mark.parametrize("key", ["aclEnable", "authenticationEnabled", "enableControllerMode"])
def test_protection_that_is_not_there_cannot_be_turned_on(rig: Any, key: str) -> None:
    assert rig.ask(25, None, f"{key}=false\n".encode()).code == 0
    reply = rig.ask(25, None, f"{key}=true\n".encode())
    assert reply.code == 1
    assert f"{key}='true' cannot be met" in reply.remark
    assert rig.conf.read_text() == f"# settings\n{key}=false\n"


def test_no_settings_change_nothing(rig: Any) -> None:
    assert rig.ask(25).code == 0
    assert json.loads(rig.ask(26).ext["version"])["counter"] == 0
