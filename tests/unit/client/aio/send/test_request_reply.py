from __future__ import annotations

import zlib

import pytest

from cometmq.base.errors import RemoteProtocolError, TooManyInFlight
from cometmq.client.aio.send.request_reply import PendingRequests, reply_to, wait_for_reply
from cometmq.client.errors import ClientClosed, ReplyImpossible, RequestTimedOut
from cometmq.model.messages.message import ReceivedMessage
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command


def _push(correlation_id: str, body: bytes = b"answer", **changes: str) -> Command:
    ext = {
        "producerGroup": "answerers",
        "topic": "C_REPLY_TOPIC",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": "0",
        "sysFlag": "0",
        "bornTimestamp": "1",
        "flag": "0",
        "properties": f"CORRELATION_ID\x01{correlation_id}\x02",
        "bornHost": "/10.0.0.7:40000",
        "storeHost": "10.0.0.1:10911",
        "storeTimestamp": "2",
        **changes,
    }
    return Command(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, ext, body)


async def test_a_reply_finds_who_waits_for_it() -> None:
    pending = PendingRequests(10)
    first_id, first = pending.add()
    second_id, second = pending.add()
    pending.arrived(_push(second_id, b"two"))
    pending.arrived(_push(first_id, zlib.compress(b"one"), sysFlag="769"))
    pending.arrived(_push("somebody else's"))
    pending.arrived(_push(second_id, b"twice"))
    one, two = await first, await second
    assert (one.body, two.body) == (b"one", b"two")
    assert (two.topic, two.born_host, two.store_host) == (
        "C_REPLY_TOPIC",
        "10.0.0.7:40000",
        "10.0.0.1:10911",
    )
    assert len(pending) == 0


async def test_a_broken_reply_is_told_to_who_waits() -> None:
    pending = PendingRequests(10)
    correlation_id, future = pending.add()
    pending.arrived(_push(correlation_id, b"no zlib", sysFlag="769"))
    with pytest.raises(RemoteProtocolError, match="broken"):
        await future


async def test_time_runs_out() -> None:
    pending = PendingRequests(10)
    _, future = pending.add()
    with pytest.raises(RequestTimedOut, match="no reply to a request to 'T' within 3 s") as raised:
        await wait_for_reply(future, -1, "T", 3.0)
    assert raised.value.code == 10006


async def test_the_number_of_waiting_requests_is_bounded() -> None:
    pending = PendingRequests(1)
    correlation_id, _ = pending.add()
    with pytest.raises(TooManyInFlight):
        pending.add()
    pending.forget(correlation_id)
    pending.add()


async def test_closing_ends_the_waiting() -> None:
    pending = PendingRequests(1)
    _, future = pending.add()
    pending.close()
    with pytest.raises(ClientClosed):
        await future


REQUEST = {"CLUSTER": "C", "CORRELATION_ID": "id", "REPLY_TO_CLIENT": "client", "TTL": "3000"}


def test_a_reply_goes_back_the_way_the_request_names() -> None:
    reply = reply_to(ReceivedMessage(topic="T", body=b"?", properties=REQUEST), b"!")
    assert (reply.topic, reply.body) == ("C_REPLY_TOPIC", b"!")
    assert reply.internal_properties == {
        "MSG_TYPE": "reply",
        "CORRELATION_ID": "id",
        "REPLY_TO_CLIENT": "client",
        "TTL": "3000",
    }


@pytest.mark.parametrize("missing", ["CLUSTER", "CORRELATION_ID", "REPLY_TO_CLIENT"])
def test_what_does_not_say_whom_to_answer_is_no_request(missing: str) -> None:
    properties = {name: value for name, value in REQUEST.items() if name != missing}
    with pytest.raises(ReplyImpossible) as raised:
        reply_to(ReceivedMessage(topic="T", body=b"?", properties=properties), b"!")
    assert raised.value.code == 10007
