"""Sends on an open connection, without a coroutine for each layer: they end as all others do."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest
from tests.eventually import eventually
from tests.unit.remoting.conftest import Peer

from cometmq.base.errors import CallTimedOut, ConnectionLost
from cometmq.client.aio.send.producer import Producer
from cometmq.client.aio.trace.send_hooks import SendContext
from cometmq.client.client_config import ClientConfig, Credentials
from cometmq.client.core.send.send_result import SendResult, SendStatus
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.address import pack_host
from cometmq.model.messages.message import Message
from cometmq.model.messages.properties import parse_properties
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import BINARY, FLAG_RESPONSE, Command
from cometmq.protocol.reply_errors import MessageIllegal
from cometmq.protocol.send_reply import SendReplies
from cometmq.remoting.connection import Connection

NAME_SERVER = "127.0.0.1:9876"
BROKER = "10.0.0.1:10911"
OFFSET_ID = "0A00000100002A9F0000000000003039"
REPLIES = SendReplies(pack_host("10.0.0.1", 10911), {"MSG_REGION": "R", "TRACE_ON": "false"})
EXT = {
    "msgId": OFFSET_ID,
    "queueId": "0",
    "queueOffset": "7",
    "MSG_REGION": "R",
    "TRACE_ON": "false",
}


class Line:
    """A producer, and the open connection to its broker."""

    def __init__(
        self, remoting: Any, monkeypatch: pytest.MonkeyPatch, names: Any, route: Any
    ) -> None:
        self.remoting = remoting
        names.routes["T"] = route
        remoting.servers[NAME_SERVER] = names
        remoting.servers[BROKER] = lambda request: request.reply(ext=EXT)
        monkeypatch.setattr(remoting, "ready", self._ready)
        monkeypatch.setattr(
            "cometmq.client.aio.instance.client_instance.RemotingClient",
            lambda *args, **settings: remoting,
        )

    @functools.cached_property
    def peer(self) -> Peer:
        """Made inside the running loop."""
        return Peer(is_accepted=False)

    def _ready(self, address: str) -> Connection | None:
        connection = self.peer.connection
        return None if connection.is_closed or connection.is_congested else connection

    def producer(self, **settings: Any) -> Producer:
        return Producer("pg", name_servers=NAME_SERVER, config=ProducerConfig(**settings))

    def generally(self) -> list[Command]:
        return list(self.remoting.sent(RequestCode.SEND_MESSAGE_V2))

    async def request(self, number: int = 1) -> Command:
        """The last of so many that have come on the connection."""
        return await eventually(
            lambda: self.peer.received[-1] if len(self.peer.received) == number else None
        )

    def reply(self, request: Command, *, code: int = 0, ext: Any = EXT, encoding: int = 0) -> None:
        self.peer.sends(Command(code, ext, b"", FLAG_RESPONSE, request.opaque, encoding=encoding))


@pytest.fixture
def line(remoting: Any, names: Any, make_route: Any, monkeypatch: pytest.MonkeyPatch) -> Line:
    return Line(remoting, monkeypatch, names, make_route({"a": {0: BROKER}}, 1))


def _begin(producer: Producer, **fields: Any) -> asyncio.Task[SendResult]:
    message = Message(topic="T", body=b"body", tags="t", keys=["k"])
    return asyncio.get_running_loop().create_task(producer.send(message, **fields))


@pytest.mark.parametrize("how", ["plain", "command", "binary"])
async def test_a_send_and_its_reply(line: Line, how: str) -> None:
    async with line.producer() as producer:
        sending = _begin(producer)
        request = await line.request()
        assert (request.code, request.body) == (RequestCode.SEND_MESSAGE_V2, b"body")
        properties = parse_properties((request.ext or {})["i"])
        if how == "plain":
            line.peer.gives(REPLIES.frame(0, request.opaque, 0, 12345, 0, 7))
        else:
            line.reply(request, encoding=BINARY if how == "binary" else 0)
        result = await sending
    assert (properties["TAGS"], properties["KEYS"]) == ("t", "k")
    assert result.message_id == properties["UNIQ_KEY"]
    assert result.status is SendStatus.SEND_OK
    assert (result.offset_id, result.queue_offset) == (OFFSET_ID, 7)
    assert (result.region_id, result.is_traced, result.queue.queue_id) == ("R", False, 0)
    assert line.generally() == []
    assert line.peer.connection.in_flight == 0


@pytest.mark.parametrize("code", [10, 11, 12])
async def test_stored_with_less(line: Line, code: int) -> None:
    async with line.producer() as producer:
        sending = _begin(producer)
        line.reply(await line.request(), code=code)
        assert (await sending).status is not SendStatus.SEND_OK


async def test_a_refusal_is_final_or_tried_again_under_the_same_id(line: Line) -> None:
    async with line.producer() as producer:
        sending = _begin(producer)
        line.reply(await line.request(), code=ResponseCode.MESSAGE_ILLEGAL, ext=None)
        with pytest.raises(MessageIllegal):
            await sending
        sending = _begin(producer)
        first = await line.request(2)
        line.reply(first, code=ResponseCode.SYSTEM_ERROR, ext=None)
        second = await line.request(3)
        assert (first.ext or {})["i"] == (second.ext or {})["i"]
        line.reply(second)
        assert (await sending).queue_offset == 7


async def test_nothing_is_left_of_a_send_that_is_cancelled(line: Line) -> None:
    async with line.producer() as producer:
        sending = _begin(producer)
        request = await line.request()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert line.peer.connection.in_flight == 0
        line.reply(request)
        assert not line.peer.connection.is_closed


async def test_no_reply_in_time(line: Line) -> None:
    async with line.producer(retries=0) as producer:
        with pytest.raises(CallTimedOut):
            await _begin(producer, timeout=0.01)
        assert line.peer.connection.in_flight == 0


async def test_a_connection_that_is_lost_is_opened_again_for_the_next_try(line: Line) -> None:
    async with line.producer() as producer:
        sending = _begin(producer)
        await line.request()
        line.peer.connection.connection_lost(None)
        # It is not ready any more, so the second try takes the general way.
        assert (await sending).queue_offset == 7
        assert len(line.generally()) == 1
    async with line.producer(retries=0) as producer:
        line.remoting.servers.pop(BROKER)
        with pytest.raises(Exception, match="nobody there"):
            await _begin(producer)


async def test_a_lost_connection_without_another_try(line: Line) -> None:
    async with line.producer(retries=0) as producer:
        sending = _begin(producer)
        await line.request()
        line.peer.connection.connection_lost(None)
        with pytest.raises(ConnectionLost):
            await sending


async def test_a_broker_that_does_not_read_is_waited_for(line: Line) -> None:
    line.peer.connection.pause_writing()
    async with line.producer() as producer:
        await _begin(producer)
        assert len(line.generally()) == 1


async def test_who_signs_or_watches_sees_the_command(line: Line) -> None:
    class Hook:
        def before(self, context: SendContext) -> None:
            seen.append(context.message_id)

        def after(self, context: SendContext) -> None: ...

    seen: list[str] = []
    credentials = Credentials(access_key="mq", secret_key="12345678")
    async with line.producer(client=ClientConfig(credentials=credentials)) as producer:
        await _begin(producer)
        assert "Signature" in (line.generally()[-1].ext or {})
    async with line.producer() as producer:
        producer.add_send_hook(Hook())
        result = await _begin(producer)
    assert seen == [result.message_id]
    async with line.producer(latency_fault=True) as producer:
        await _begin(producer)
    assert len(line.generally()) == 3
    assert line.peer.received == []
