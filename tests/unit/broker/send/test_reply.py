"""Replies: pushed to the client that asked, and kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.unit.broker.rig import Rig, send_ext

from cometmq.base.errors import CallTimedOut
from cometmq.model.messages.properties import parse_properties
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.send import PushReplyMessageHeader
from cometmq.remoting.connection import Connection
from cometmq.testing.fake_connection import FakeConnection

MakeRig = Callable[..., Rig]
REGION = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
TEXT = "MSG_TYPE\x01reply\x02REPLY_TO_CLIENT\x01asker\x02CORRELATION_ID\x01c-1\x02TTL\x013000"


def asker(rig: Rig, answer: Command | Exception | None = None) -> FakeConnection:
    """A client that waits for a reply, and what it says to that."""

    def says(request: Command) -> Command:
        if isinstance(answer, Exception):
            raise answer
        return answer or Command(code=0)

    client = rig.producer("G", "asker")
    client.answer = says
    return client


def reply(rig: Rig, **fields: str) -> Command:
    ext = send_ext("C49_REPLY_TOPIC", **{"i": TEXT, "f": "1", **fields})
    return rig.ask(325, ext, b"answer")


def test_the_reply_reaches_who_asked_and_is_kept(rig: Rig) -> None:
    client = asker(rig)
    answer = reply(rig)
    (record,) = rig.records("C49_REPLY_TOPIC")
    assert answer.code == 0
    assert answer.ext == {
        "msgId": record.offset_id,
        "queueId": "0",
        "queueOffset": "0",
        **REGION,
    }
    assert record.body == b"answer"
    (push,) = client.sent
    assert (push.code, bytes(push.body)) == (326, b"answer")
    header = decode_fields(PushReplyMessageHeader, push.ext)
    assert (header.topic, header.producer_group, header.sys_flag) == ("C49_REPLY_TOPIC", "PG", 1)
    assert (header.born_host, header.store_host) == ("127.0.0.1:40000", "127.0.0.1:32010")
    assert (header.born_timestamp, header.store_timestamp) == (1700000000123, 1700000000000)
    assert parse_properties(header.properties) == {
        **parse_properties(TEXT),
        "PUSH_REPLY_TIME": "1700000000000",
    }


def test_the_long_form_is_the_same_request(rig: Rig) -> None:
    client = asker(rig)
    ext = {
        "producerGroup": "PG",
        "topic": "C49_REPLY_TOPIC",
        "defaultTopic": "TBW102",
        "queueId": "0",
        "bornTimestamp": "1",
        "properties": TEXT,
    }
    assert rig.ask(324, ext, b"a").code == 0
    assert len(client.sent) == 1


def test_without_keeping_it_has_no_place(make_rig: MakeRig) -> None:
    rig = make_rig(storeReplyMessageEnable="false")
    asker(rig)
    answer = reply(rig)
    assert answer.ext == {"msgId": "0", "queueId": "0", "queueOffset": "0", **REGION}
    assert rig.store.max_physical == 0
    assert reply(rig, i="REPLY_TO_CLIENT\x01nobody").ext == REGION


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        (
            "REPLY_TO_CLIENT\x01nobody\x02MSG_TYPE\x01reply",
            "push reply message fail, channel of <nobody> not found.",
        ),
        ("MSG_TYPE\x01reply", "reply message properties[REPLY_TO_CLIENT] is null"),
    ],
)
def test_nobody_to_push_to(rig: Rig, text: str, remark: str) -> None:
    answer = reply(rig, i=text)
    assert (answer.code, answer.remark) == (1, remark)
    (record,) = rig.records("C49_REPLY_TOPIC")
    assert (answer.ext or {})["msgId"] == record.offset_id, "it is kept all the same"


@pytest.mark.parametrize("fault", [CallTimedOut("10 s", sent=True), Command(code=1)])
def test_a_client_that_does_not_take_it(rig: Rig, fault: Command | Exception) -> None:
    asker(rig, fault)
    answer = reply(rig)
    assert (answer.code, answer.remark) == (1, "push reply message to asker fail.")


def test_a_full_disk_does_not_concern_who_asked(rig: Rig) -> None:
    client = asker(rig)
    rig.store.close()
    answer = reply(rig)
    assert (answer.code, (answer.ext or {})["msgId"]) == (0, "0")
    assert len(client.sent) == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"b": "../x"}, 1), ({"e": "9"}, 1), ({"i": TEXT + "\x02DELAY\x013"}, 13), ({"f": "4"}, 13)],
)
def test_what_no_send_may_do_no_reply_may(rig: Rig, fields: dict[str, str], code: int) -> None:
    client = asker(rig)
    answer = reply(rig, **fields)
    assert (answer.code, answer.ext) == (code, REGION)
    assert client.sent == []


def test_a_client_is_found_as_long_as_it_is_in_any_group(rig: Any) -> None:
    first = cast(Connection, FakeConnection())
    second = cast(Connection, FakeConnection())
    clients = rig.clients
    for group in ("A", "B"):
        clients.register_producer(group, first, client_id="id", language="JAVA", version=409)
    clients.unregister_producer("B", first)
    assert clients.find_producer("id").connection is first
    clients.register_producer("A", second, client_id="id", language="JAVA", version=409)
    assert clients.find_producer("id").connection is second
    clients.forget(first)
    assert clients.find_producer("id").connection is second
    clients.register_producer("A", second, client_id="new", language="JAVA", version=409)
    assert clients.find_producer("id") is None
    assert clients.find_producer("new").connection is second
    clients.forget(second)
    assert clients.find_producer("new") is None
