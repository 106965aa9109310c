"""Requests and replies: two clients and a broker on real sockets."""

from __future__ import annotations

from cometmq.model.messages.properties import parse_properties
from cometmq.testing.cluster import cluster

from .raw_client import RawClient

REPLIES = "DefaultCluster_REPLY_TOPIC"


async def test_a_reply_finds_who_asked() -> None:
    async with (
        cluster() as servers,
        RawClient(servers.broker_address) as asker,
        RawClient(servers.broker_address) as server,
    ):
        await asker.beat("asker@1", "Asking")
        await asker.send(
            "Questions",
            b"how many?",
            {
                "CORRELATION_ID": "c-1",
                "REPLY_TO_CLIENT": "asker@1",
                "TTL": "3000",
                "MSG_TYPE": "request",
            },
        )
        (question,) = await server.read("Questions")
        asked = question.properties
        assert asked["CLUSTER"] + "_REPLY_TOPIC" == REPLIES
        answer = await server.send(
            REPLIES,
            b"42",
            {
                "MSG_TYPE": "reply",
                "CORRELATION_ID": asked["CORRELATION_ID"],
                "REPLY_TO_CLIENT": asked["REPLY_TO_CLIENT"],
                "TTL": asked["TTL"],
            },
            code=325,
        )
        assert answer.code == 0, answer.remark
        push = asker.replies.get_nowait()
        assert bytes(push.body) == b"42"
        assert push.ext is not None
        found = parse_properties(push.ext["properties"])
        assert found["CORRELATION_ID"] == "c-1"
        assert "PUSH_REPLY_TIME" in found
        (kept,) = await server.read(REPLIES)
        assert (answer.ext or {})["msgId"] == kept.offset_id


async def test_an_asker_that_has_gone_is_not_found() -> None:
    async with cluster() as servers, RawClient(servers.broker_address) as server:
        async with RawClient(servers.broker_address) as asker:
            await asker.beat("asker@1", "Asking")
        answer = await server.send(REPLIES, b"42", {"REPLY_TO_CLIENT": "asker@1"}, code=325)
        assert answer.code == 1
        assert answer.remark == "push reply message fail, channel of <asker@1> not found."
