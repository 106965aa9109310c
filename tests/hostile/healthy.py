"""A client that behaves, while others do not: it sends, reads back and asks for routes, and notes how long it takes."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from cometmq.base.errors import CometError
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient

TOPIC: Final = "Healthy"
GROUP: Final = "healthy"
PAUSE_SECONDS: Final = 0.01
CALL_SECONDS: Final = 20.0
BUSY: Final = (ResponseCode.SYSTEM_BUSY,)


class Healthy:
    """``run`` until ``stop``; then ``millis`` tells how long each request took."""

    def __init__(self, name_server: int, broker: int) -> None:
        self._name_server = f"127.0.0.1:{name_server}"
        self._broker = f"127.0.0.1:{broker}"
        self._client = RemotingClient()
        self._is_stopping = False
        self.millis: list[float] = []
        self.refused_count = 0
        self.sent: list[bytes] = []

    async def start(self) -> None:
        ext = {
            "topic": TOPIC,
            "defaultTopic": "TBW102",
            "readQueueNums": "1",
            "writeQueueNums": "1",
            "perm": "6",
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0",
            "order": "false",
        }
        await self._ask(self._broker, Command(RequestCode.UPDATE_AND_CREATE_TOPIC, ext))
        await self._round()
        self.millis.clear()

    async def run(self) -> None:
        while not self._is_stopping:
            await self._round()
            await asyncio.sleep(PAUSE_SECONDS)

    def stop(self) -> None:
        self._is_stopping = True

    async def close(self) -> None:
        await self._client.close()

    @property
    def p99_millis(self) -> float:
        return sorted(self.millis)[int(len(self.millis) * 0.99)] if self.millis else 0.0

    async def _round(self) -> None:
        body = b"message %d" % len(self.sent)
        send = {"a": GROUP, "b": TOPIC, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "0"}
        stored = await self._ask(
            self._broker, Command(RequestCode.SEND_MESSAGE_V2, send, body), may_be=BUSY
        )
        if stored.code != ResponseCode.SUCCESS:
            self.refused_count += 1
            return
        assert stored.ext is not None
        assert int(stored.ext["queueOffset"]) == len(self.sent), "somebody else's message"
        self.sent.append(body)
        pull = {
            "consumerGroup": GROUP,
            "topic": TOPIC,
            "queueId": "0",
            "queueOffset": stored.ext["queueOffset"],
            "maxMsgNums": "1",
            "sysFlag": "4",
            "commitOffset": "0",
            "suspendTimeoutMillis": "0",
            "subscription": "*",
            "subVersion": "0",
            "expressionType": "TAG",
        }
        found = await self._ask(self._broker, Command(RequestCode.PULL_MESSAGE, pull), may_be=BUSY)
        assert found.code != ResponseCode.SUCCESS or body in bytes(found.body)
        route = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": TOPIC})
        await self._ask(self._name_server, route)

    async def _ask(self, address: str, command: Command, may_be: tuple[int, ...] = ()) -> Command:
        started = time.perf_counter()
        try:
            reply = await self._client.call(address, command, CALL_SECONDS)
        except CometError as error:
            raise AssertionError(
                f"request {command.code} of the healthy client: {error}"
            ) from error
        self.millis.append((time.perf_counter() - started) * 1000)
        assert reply.code == 0 or reply.code in may_be, (command.code, reply.code, reply.remark)
        return reply
