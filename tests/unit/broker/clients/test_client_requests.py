"""What operators ask about connected clients, what is passed on to them, and the sharing of queues."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cometmq.base.errors import CallTimedOut
from cometmq.broker.clients import request_modes
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.message_id import offset_id_text
from cometmq.model.messages.record import decode_record
from cometmq.protocol.bodies.pop import MessageRequestModes, SetMessageRequestModeBody
from cometmq.protocol.command import Command


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
    assert info["lastUpdateTimestamp"] == rig.clock.wall_ms()
    assert rig.ask(203, {"consumerGroup": "x"}).code == 206
    assert rig.ask(204, {"producerGroup": "x"}).remark == "the producer group[x] not exist"


def test_members_that_differ_are_shown_with_what_they_want(rig: Any) -> None:
    rig.consumer("g", "c1", "t", port=1)
    assert "subscriptionMismatch" not in rig.json(203, {"consumerGroup": "g"})
    rig.consumer("g", "c2", "t", "u", port=2)
    assert rig.json(203, {"consumerGroup": "g"})["subscriptionMismatch"] == [
        {
            "topic": "u",
            "camps": [
                {"clientIds": ["c1"], "expressionType": "TAG"},
                {"clientIds": ["c2"], "expressionType": "TAG", "subString": "*"},
            ],
        }
    ]


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
    rig.send("t")
    (record,) = rig.records("t")
    message_id = record.offset_id
    ext = {"consumerGroup": "g", "clientId": "c1", "msgId": message_id}
    assert rig.json(309, ext) == {"consumeResult": "CR_SUCCESS"}
    (request,) = peer.sent
    assert decode_record(bytes(request.body)) == record
    assert request.ext == {**ext, "brokerName": "b49"}
    missing = offset_id_text(rig.core.store_host, record.physical_offset + 1)
    assert rig.ask(309, {**ext, "msgId": missing}).code == 1
    assert rig.ask(309, {**ext, "msgId": "zz"}).code == 1
    assert rig.ask(309, {"consumerGroup": "g"}).remark == "The Consumer <g> <> not online"


def test_the_broker_shares_queues_out(rig: Any) -> None:
    rig.queues_elsewhere = [MessageQueue(name, n, "t") for name in ("b", "a") for n in range(2)]
    question = {
        "topic": "t",
        "consumerGroup": "g",
        "clientId": "c2",
        "strategyName": "AVG",
        "messageModel": "CLUSTERING",
    }
    assert rig.json(400, None, question) == {}
    for n in (1, 2):
        rig.consumer("g", f"c{n}", "t", port=n)
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


def test_request_modes_are_put_together_once_per_change(rig: Any) -> None:
    mode = SetMessageRequestModeBody(topic="t", consumer_group="g", mode="POP")
    rig.modes.set(mode)
    first = rig.modes.encode()
    assert rig.modes.encode() is first
    rig.modes.set(msgspec.structs.replace(mode, mode="PULL"))
    assert rig.modes.encode() == rig.modes.modes.encode() != first
    rig.modes.replace_all(MessageRequestModes())
    assert rig.modes.encode() == b'{"messageRequestModeMap":{}}'


def test_a_request_mode_set_during_a_save_in_a_worker_is_saved_with_the_next(rig: Any) -> None:
    rig.modes.set(SetMessageRequestModeBody(topic="t", consumer_group="first"))
    write = rig.modes.unsaved()
    rig.modes.set(SetMessageRequestModeBody(topic="t", consumer_group="second"))
    write()
    path = "/store/config/messageRequestMode.json"
    assert b"second" not in rig.files.read(path)
    rig.modes.unsaved()()
    assert b"first" in rig.files.read(path)
    assert b"second" in rig.files.read(path)
    assert rig.modes.unsaved() is None


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
