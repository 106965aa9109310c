"""A broker that does a bit of everything, so that all of its metrics have series."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from tests.eventually import eventually
from tests.integration.raw_client import RawClient

from cometmq.client import Message, ReceivedMessage
from cometmq.client.aio import Producer, PushConsumer, TransactionProducer, TransactionState
from cometmq.protocol.command import Command
from cometmq.testing.cluster import Cluster

INVISIBLE_MS = 1000
_SEND_BACK = 36
_UPDATE_TOPIC = 17
_UPDATE_GROUP = 200
_POP = 200050
_ACK = 200051


class BusyBroker:
    """Keeps clients connected between ``start`` and ``stop``."""

    def __init__(self, servers: Cluster) -> None:
        self._servers = servers
        names = servers.name_servers
        self.taken: list[ReceivedMessage] = []
        self._producer = Producer("grp_send", name_servers=names)
        self._deciding = TransactionProducer(
            "grp_tx", execute=_decide, check=_never, name_servers=names
        )
        self._consumer = PushConsumer("grp_n", listener=self._take, name_servers=names)
        self._raw = RawClient(servers.broker_address)

    async def start(self) -> None:
        """Everything has happened once when it returns, a retry of a popped message included."""
        await self._administrate()
        await self._producer.start()
        await self._deciding.start()
        self._consumer.subscribe("GN")
        self._consumer.subscribe("GD")
        await self._consumer.start()
        await self.send()
        await self._transactions()
        await self._dead_letter()
        await self._pop()
        await eventually(lambda: len(self.taken) >= 7 or None, "messages at the consumer")

    async def stop(self) -> None:
        await self._consumer.close()
        await self._deciding.close()
        await self._producer.close()
        await self._raw.remoting.close()

    async def send(self) -> None:
        send = self._producer.send
        for number in range(5):
            await send(Message(topic="GN", body=b"x" * (1 + 1000 * number)))
        await send(Message(topic="GF", body=b"x"), sharding_key="order-1")
        await send(Message(topic="GD", body=b"x", delay_level=1))
        await send(Message(topic="GD", body=b"x", delay_ms=1000))
        await send(Message(topic="GU", body=b"x"))

    async def _take(self, message: ReceivedMessage) -> None:
        self.taken.append(message)

    async def _administrate(self) -> None:
        topic = {
            "topic": "GU",
            "defaultTopic": "TBW102",
            "readQueueNums": "1",
            "writeQueueNums": "1",
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0",
            "order": "false",
        }
        _expect(await self._raw.ask(_UPDATE_TOPIC, topic), 0)
        _expect(await self._raw.ask(_UPDATE_TOPIC, topic | {"topic": "no name"}), 1)
        group = {"groupName": "grp_u", "retryQueueNums": 1, "retryMaxTimes": 16}
        _expect(await self._raw.ask(_UPDATE_GROUP, None, group), 0)

    async def _transactions(self) -> None:
        for state in TransactionState:
            await self._deciding.send_transaction(Message(topic="GT", body=b"x"), state)

    async def _dead_letter(self) -> None:
        sent = await self._raw.send("GU", b"poison")
        assert sent.ext is not None
        fields = {
            "offset": str(int(sent.ext["msgId"][-16:], 16)),
            "group": "grp_u",
            "delayLevel": "-1",
            "originMsgId": "",
            "originTopic": "GU",
            "unitMode": "false",
            "maxReconsumeTimes": "16",
        }
        _expect(await self._raw.ask(_SEND_BACK, fields), 0)

    async def _pop(self) -> None:
        """One message is acknowledged, the others come again, are popped once more, and stay out."""
        reply = await self._pop_once(INVISIBLE_MS)
        ext = reply.ext or {}
        kind, queue_id, start = ext["startOffsetInfo"].split(";")[0].split(" ")
        offset = ext["msgOffsetInfo"].split(";")[0].split(" ")[2].split(",")[0]
        handle = f"{start} {ext['popTime']} {ext['invisibleTime']} {ext['reviveQid']} {kind} b {queue_id} {offset}"
        acked = {
            "consumerGroup": "grp_zz",
            "topic": "GU",
            "queueId": queue_id,
            "extraInfo": handle,
            "offset": offset,
        }
        _expect(await self._raw.ask(_ACK, acked), 0)

        async def again() -> bool | None:
            found = await self._pop_once(600_000)
            # Kind 1 is the retry topic.
            return (
                found.code == 0 and (found.ext or {})["startOffsetInfo"].startswith("1")
            ) or None

        await eventually(again, "a popped message again")

    async def _pop_once(self, invisible_ms: int) -> Command:
        fields = {
            "consumerGroup": "grp_zz",
            "topic": "GU",
            "queueId": "-1",
            "maxMsgNums": "8",
            "invisibleTime": str(invisible_ms),
            "pollTime": "0",
            "bornTime": str(time.time_ns() // 1_000_000),
            "initMode": "0",
            "expType": "TAG",
            "exp": "*",
            "order": "false",
        }
        return await self._raw.ask(_POP, fields)


def _expect(reply: Command, code: int) -> None:
    assert reply.code == code, (reply.code, reply.remark)


async def _decide(message: Message, state: Any) -> TransactionState:
    assert isinstance(state, TransactionState)
    return state


async def _never(message: ReceivedMessage) -> TransactionState:
    await asyncio.sleep(0)
    return TransactionState.UNKNOWN
