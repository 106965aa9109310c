"""Transactions in a store that changes hands: what one make of broker was not told about, the next one asks about."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from cometmq.model.messages.record import decode_record
from cometmq.protocol import fastjson
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher

from .admin_calls import CALL_SECONDS, create_topic, read_all
from .conftest import required
from .systems import OURS, ROCKETMQ_4, ROCKETMQ_5, THEIRS, Broker, NameServer, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

TOPIC = "transaction-exchange"
GROUP = "transaction-exchange-producers"
COMMIT, ROLLBACK = "8", "12"
COUNT = 4
WAIT_SECONDS_MAX = 60.0
# RocketMQ 5 asks twice, and then delivers twice, when it looks again before it has stored what it was told.
CHECK_INTERVAL_MS = {ROCKETMQ_4: 2000, ROCKETMQ_5: 4000}
SETTINGS: dict[str, object] = {"transactionTimeOut": 1000, "transactionOpBatchInterval": 200}


@pytest.mark.parametrize("theirs", THEIRS)
def test_open_transactions_are_handed_on(theirs: str, tmp_path: Path) -> None:
    with required():
        makes = {system: commands_of(system, tmp_path / system) for system in (OURS, theirs)}
    producer = Producer()
    with NameServer(makes[OURS], tmp_path / "namesrv").running() as name_server:
        interval = {"transactionCheckInterval": CHECK_INTERVAL_MS[theirs]}
        broker = Broker([name_server], tmp_path, "transactions", **SETTINGS, **interval)
        for number, system in enumerate((OURS, theirs, OURS, theirs, OURS)):
            try:
                broker.start(makes[system])
                asyncio.run(producer.visit(broker.address, number))
                broker.stop()
            finally:
                broker.kill()


class Producer:
    """Bodies are ``visit-kind-number``. The kind tells when the transaction is ended, if the number is even by commit.

    now: right after the send; next: when a broker asks in the next visit; later: when one asks in the visit after that
    """

    def __init__(self) -> None:
        self.visit_number = 0
        self.asked: list[bytes] = []
        self.answered: set[bytes] = set()
        self.committed: list[bytes] = []

    async def visit(self, address: str, number: int) -> None:
        self.visit_number = number
        self.asked = []
        dispatcher = Dispatcher()
        dispatcher.add(39, self._answer)
        remoting = RemotingClient(dispatcher)
        try:
            if number == 0:
                await create_topic(remoting, address, TOPIC, 1)
            beat = {"clientID": "exchange", "producerDataSet": [{"groupName": GROUP}]}
            body = fastjson.dumps({**beat, "consumerDataSet": []})
            reply = await remoting.call(address, Command(code=34, body=body), CALL_SECONDS)
            assert reply.code == 0, reply.remark
            await self._until_settled(remoting, address, number)
            for kind in ("now", "next", "later"):
                for index in range(COUNT):
                    await self._send(remoting, address, f"{number}-{kind}-{index}".encode())
            await self._until_settled(remoting, address, number)
        finally:
            await remoting.close()

    async def _until_settled(self, remoting: RemotingClient, address: str, number: int) -> None:
        """What had to be asked was, what was committed is delivered, and nothing else is."""
        wanted = {b"%d-next-%d" % (number - 1, index) for index in range(COUNT) if number > 0}
        wanted |= {b"%d-later-%d" % (number - 2, index) for index in range(COUNT) if number > 1}
        asked = {b"%d-later-%d" % (number - 1, index) for index in range(COUNT) if number > 0}
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while True:
            found = Counter(record.body for record in await read_all(remoting, address, TOPIC))
            expected = Counter(self.committed)
            assert not found - Counter(self.committed), "delivered twice, or in spite of it"
            if wanted <= self.answered and asked <= set(self.asked) and found == expected:
                return
            assert time.monotonic() < deadline, (wanted - self.answered, asked, expected - found)
            await asyncio.sleep(0.05)

    async def _send(self, remoting: RemotingClient, address: str, body: bytes) -> None:
        ext = {
            **{"a": GROUP, "b": TOPIC, "c": "TBW102", "d": "4", "e": "0", "f": "4", "h": "0"},
            **{"g": str(time.time_ns() // 1_000_000), "j": "0", "k": "false", "m": "false"},
            "i": f"TRAN_MSG\x01true\x02PGROUP\x01{GROUP}\x02UNIQ_KEY\x01{body.decode()}\x02",
        }
        reply = await remoting.call(address, Command(code=310, ext=ext, body=body), CALL_SECONDS)
        assert reply.code == 0, reply.remark
        if b"-now-" in body:
            place = reply.ext or {}
            physical_offset = str(int(place["msgId"][-16:], 16))
            end = self._end(body, place["queueOffset"], physical_offset, "false")
            reply = await remoting.call(address, end, CALL_SECONDS)
            assert reply.code == 0, reply.remark

    def _answer(self, connection: Connection, command: Command) -> None:
        body = decode_record(command.body).body
        self.asked.append(body)
        visit, kind, _ = body.split(b"-")
        ended_in = int(visit) + {b"now": 0, b"next": 1, b"later": 2}[kind]
        if self.visit_number >= ended_in and body not in self.answered:
            ext = command.ext or {}
            connection.oneway(
                self._end(body, ext["tranStateTableOffset"], ext["commitLogOffset"], "true")
            )

    def _end(self, body: bytes, offset: str, physical_offset: str, from_check: str) -> Command:
        is_commit = int(body.rpartition(b"-")[2]) % 2 == 0
        self.answered.add(body)
        if is_commit:
            self.committed.append(body)
        ext = {
            "producerGroup": GROUP,
            "tranStateTableOffset": offset,
            "commitLogOffset": physical_offset,
            "commitOrRollback": COMMIT if is_commit else ROLLBACK,
            "fromTransactionCheck": from_check,
            "msgId": body.decode(),
        }
        return Command(code=37, ext=ext)
