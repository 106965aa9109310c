"""Recalls: which broker is asked, in which words, and what its answers come to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cometmq.base.errors import CallTimedOut, ConnectFailed, UsageError
from cometmq.client.aio.send.producer import Producer
from cometmq.client.client_config import ClientConfig
from cometmq.client.errors import BrokerNotKnown
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.messages.recall_handle import RecallHandle
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import IllegalOperation, NoPermission

NAME_SERVER = "127.0.0.1:9876"
BROKERS = {"a": {0: "10.0.0.1:10911"}, "b": {0: "10.0.0.2:10911"}}


def handle(topic: str = "T", broker_name: str = "b") -> str:
    return RecallHandle(topic, broker_name, 5_000, "KEY").encode()


@pytest.fixture
def servers(remoting: Any, names: Any, make_route: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(
        "cometmq.client.aio.instance.client_instance.RemotingClient",
        lambda *args, **settings: remoting,
    )
    names.routes["T"] = names.routes["ns%T"] = make_route(BROKERS, 2)
    remoting.servers[NAME_SERVER] = names
    return remoting


def answer(servers: Any, code: int, remark: str | None = None) -> None:
    def broker(request: Command) -> Command:
        if request.code != RequestCode.RECALL_MESSAGE:
            return request.reply()
        return request.reply(code, remark, ext={"msgId": "KEY"})

    for addresses in BROKERS.values():
        servers.servers[addresses[0]] = broker


def recall(text: str | None, *, namespace: str = "", topic: str = "T", **more: Any) -> str:
    async def main() -> str:
        client = ClientConfig(name_servers=NAME_SERVER, namespace=namespace)
        async with Producer("pg", config=ProducerConfig(client=client)) as producer:
            return await producer.recall(topic, text, **more)

    return asyncio.run(main())


def test_the_broker_that_has_the_message_is_asked(servers: Any) -> None:
    answer(servers, 0)
    assert recall(handle()) == "KEY"
    (request,) = servers.sent(RequestCode.RECALL_MESSAGE, BROKERS["b"][0])
    assert request.ext == {
        "producerGroup": "pg",
        "topic": "T",
        "recallHandle": handle(),
        "bname": "b",
    }
    assert servers.sent(RequestCode.RECALL_MESSAGE, BROKERS["a"][0]) == []


def test_the_topic_is_in_the_namespace(servers: Any) -> None:
    answer(servers, 0)
    assert recall(handle("ns%T"), namespace="ns") == "KEY"
    (request,) = servers.sent(RequestCode.RECALL_MESSAGE)
    assert ((request.ext or {})["topic"], (request.ext or {})["producerGroup"]) == (
        "ns%T",
        "ns%pg",
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (None, "got None"),
        ("", "invalid"),
        ("not a handle", "invalid"),
        (handle("Other"), "'Other', not 'T'"),
    ],
)
def test_a_wrong_handle_is_refused_before_anything_is_sent(
    servers: Any, text: str | None, fault: str
) -> None:
    answer(servers, 0)
    with pytest.raises(UsageError, match=fault):
        recall(text)
    assert servers.sent(RequestCode.RECALL_MESSAGE) == []


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ResponseCode.ILLEGAL_OPERATION, IllegalOperation),
        (ResponseCode.NO_PERMISSION, NoPermission),
    ],
)
def test_a_refusal_is_final(servers: Any, code: int, error: type[Exception]) -> None:
    answer(servers, code, "recall failed")
    with pytest.raises(error, match="recall failed"):
        recall(handle())
    assert len(servers.sent(RequestCode.RECALL_MESSAGE)) == 1


def test_the_brokers_of_other_handles_are_not_known(servers: Any) -> None:
    answer(servers, 0)
    with pytest.raises(BrokerNotKnown, match="'gone'"):
        recall(handle(broker_name="gone"))


def test_a_broker_that_is_away_and_no_time(servers: Any) -> None:
    with pytest.raises(ConnectFailed):
        recall(handle())
    with pytest.raises(CallTimedOut):
        recall(handle(), timeout=0)
