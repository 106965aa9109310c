"""A controller without a network: brokers are connections in memory, and the clock moves when told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, cast

from tests.controller_conversation import BROKERS, CONTROLLER

from cometmq.controller.controller_config import SCHEMA
from cometmq.controller.server import Controller
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.remoting.connection import Connection
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.fake_connection import FakeConnection
from cometmq.testing.faulty_files import FaultyFiles

GRACE_SECONDS = 11.0


class Notices:
    """Takes what would be sent to brokers."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Command]] = []
        self.asked: list[tuple[str, Command]] = []
        self.answers: dict[str, int] = {}
        """By address, the code that a broker answers with; RocketMQ's do not know what is asked here."""

    async def call(self, address: str, command: Command, timeout: float) -> Command:
        self.asked.append((address, command))
        code = self.answers.get(address, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
        return command.reply(code, "request type not supported" if code else None)

    async def oneway(self, address: str, command: Command) -> None:
        command.flag |= FLAG_ONEWAY
        self.sent.append((address, command))

    async def close(self) -> None: ...


class MemoryController:
    """``ask`` and the like run everything that follows from them before they return."""

    def __init__(
        self, settings: Mapping[str, str] | None = None, *, is_young: bool = False
    ) -> None:
        self.clock = FakeClock()
        self.files = FaultyFiles(self.clock)
        self._settings = {
            "controllerStorePath": "/data",
            "controllerDLegerGroup": "grp1",
            "controllerDLegerPeers": f"n0-{CONTROLLER}",
            "configStorePath": "/data/controller.conf",
            **(settings or {}),
        }
        self.notices = Notices()
        self.controller = self._opened()
        if not is_young:
            self.clock.advance(GRACE_SECONDS)
        self.lines: dict[int, FakeConnection] = {}

    def _opened(self) -> Controller:
        config, _ = SCHEMA.load(self._settings)
        controller = Controller(config, clock=self.clock, files=self.files)
        controller.store.open()
        controller.notices.start(self.notices)
        return controller

    def restart(self) -> None:
        """Another process on the same file, which knows nobody alive."""
        asyncio.run(self.controller.store.close())
        self.lines = {}
        self.controller = self._opened()

    def ask(self, command: Command, line: FakeConnection | None = None) -> Command:
        line = line or FakeConnection()

        def dispatch() -> None:
            self.controller.dispatcher.dispatch(cast(Connection, line), command)

        pending: list[Coroutine[Any, Any, None]] = []
        line.run_handler = lambda handler, body_bytes=0: pending.append(handler)  # type: ignore[method-assign]

        async def run() -> None:
            dispatch()
            for handler in pending:
                await handler
            await _all_done()

        asyncio.run(run())
        (reply,) = line.take()
        return reply

    def run(self, work: Callable[[], None]) -> None:
        """Call something that starts tasks, and wait for them."""

        async def run() -> None:
            work()
            await _all_done()

        asyncio.run(run())

    # -- brokers

    def line(self, broker: int) -> FakeConnection:
        return self.lines.setdefault(broker, FakeConnection(40000 + broker))

    def beat(self, broker: int, **fields: object) -> Command:
        ext = {
            "clusterName": "HaCluster",
            "brokerName": "bk",
            "brokerId": str(broker),
            "brokerAddr": address(broker),
            "epoch": "-1",
            "maxOffset": "0",
            **{key: str(value) for key, value in fields.items()},
        }
        return self.ask(Command(code=904, ext=ext), self.line(broker))

    def join(self, broker: int) -> Command:
        """Apply for the id, register, and be heard from; the reply to the registration."""
        self.say(1013, broker, appliedBrokerId=broker, registerCheckCode=f"{address(broker)};7")
        return self.start(broker)

    def start(self, broker: int) -> Command:
        reply = self.say(1003, broker, brokerId=broker, brokerAddress=address(broker))
        self.beat(broker)
        return reply

    def elect(self, broker: int = -1, *, designated: bool = False) -> Command:
        return self.say(
            1002, broker, brokerId=broker, designateElect="true" if designated else "false"
        )

    def alter(self, master: int, epoch: int, ids: list[int], set_epoch: int) -> Command:
        body = f'{{"syncStateSet":{ids},"syncStateSetEpoch":{set_epoch}}}'.encode()
        return self.say(1001, master, body=body, masterBrokerId=master, masterEpoch=epoch)

    def say(self, code: int, broker: int, *, body: bytes = b"", **fields: object) -> Command:
        ext = {
            "clusterName": "HaCluster",
            "brokerName": "bk",
            **{key: str(value) for key, value in fields.items()},
        }
        return self.ask(Command(code=code, ext=ext, body=body), self.line(broker))

    def kill(self, broker: int) -> None:
        line = self.lines.pop(broker)
        self.run(lambda: self.controller.fail_over.connection_lost(line))

    def master(self) -> tuple[int | None, int, list[int], int]:
        group = self.controller.store.known()["bk"].group
        return (
            group.master_id,
            group.master_epoch,
            sorted(group.sync_state_set),
            group.sync_state_set_epoch,
        )

    def told(self) -> list[tuple[str, dict[str, str]]]:
        """The notices since the last call."""
        sent, self.notices.sent = self.notices.sent, []
        return [(to, command.ext or {}) for to, command in sent]


def address(broker: int) -> str:
    return BROKERS.get(broker, f"10.0.0.{broker}:10911")


async def _all_done() -> None:
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.gather(*others)
