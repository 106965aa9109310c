"""A controller on a real socket: the conversation that was recorded with a Java controller, and the command."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.controller_conversation import BROKERS, CONTROLLER, SCRIPT, Conversation
from tests.integration.commands import ask, free_port, process, run

from cometmq.controller.controller_config import SCHEMA
from cometmq.controller.server import Controller
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.server import RemotingServer

MODULE, NAME_SERVER = "cometmq.controller", "cometmq.namesrv"
NOTICE = 1008


class StandIn:
    """A broker as the controller sees it: a connection that it opened, and a port that takes notices."""

    def __init__(self) -> None:
        self.client = RemotingClient()
        self.notices: asyncio.Queue[Command] = asyncio.Queue()
        dispatcher = Dispatcher()
        dispatcher.add(NOTICE, self._take)
        self.server = RemotingServer(dispatcher)

    def _take(self, connection: Connection, command: Command) -> None:
        self.notices.put_nowait(command)


class SocketStage:
    def __init__(self, controller: Controller) -> None:
        self._controller = f"127.0.0.1:{controller.port}"
        self._brokers = {1: StandIn(), 2: StandIn()}
        self._script = RemotingClient()
        self.addresses = {CONTROLLER: self._controller}

    async def start(self) -> None:
        for broker, one in self._brokers.items():
            port = await one.server.start("127.0.0.1", 0)
            self.addresses[BROKERS[broker]] = f"127.0.0.1:{port}"

    async def stop(self) -> None:
        await self._script.close()
        for one in self._brokers.values():
            await one.client.close()
            await one.server.stop()

    async def ask(self, speaker: int, command: Command) -> Command:
        client = self._script if speaker == SCRIPT else self._brokers[speaker].client
        return await client.call(self._controller, command)

    async def beat(self, speaker: int, command: Command) -> None:
        await self._brokers[speaker].client.oneway(self._controller, command)
        # Answered after the heartbeat, on the same connection, so that others find it done.
        await self.ask(speaker, Command(code=1005))

    async def kill(self, speaker: int) -> None:
        await self._brokers[speaker].client.close()
        self._brokers[speaker].client = RemotingClient()

    async def notice(self, listener: int) -> Command:
        return await asyncio.wait_for(self._brokers[listener].notices.get(), 5)


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Controller]:
    config, _ = SCHEMA.load(
        {
            "controllerStorePath": str(directory),
            "controllerDLegerGroup": "grp1",
            "listenPort": "0",
        }
    )
    controller = Controller(config)
    await controller.start()
    try:
        yield controller
    finally:
        await controller.stop()


async def test_the_recorded_conversation_is_answered_as_java_answers(tmp_path: Path) -> None:
    async with running(tmp_path / "store") as controller:
        stage = SocketStage(controller)
        await stage.start()
        try:
            await Conversation(stage).play()
        finally:
            await stage.stop()
    # Its decisions are there for the next one.
    async with running(tmp_path / "store") as controller:
        group = controller.store.known()["bk"].group
        assert (sorted(group.sync_state_set), group.sync_state_set_epoch) == ([1, 2], 8)


def test_the_command_says_what_runs_where_and_stops_when_told(tmp_path: Path) -> None:
    port = free_port()
    path = tmp_path / "controller.conf"
    path.write_text(
        f"controllerDLegerPeers=n0-127.0.0.1:{port}\ncontrollerStorePath={tmp_path}/store\n"
        "controllerThreadPoolNums=8\n"
    )
    with process(MODULE, "-c", str(path)) as (child, greeting):
        assert greeting[0].startswith("The Controller Server boot success.")
        assert f"  brokers use     controllerAddr=127.0.0.1:{port}" in greeting
        reply = ask(port, Command(code=1005))
        assert (reply.ext or {})["peers"] == f"n0:127.0.0.1:{port};"
        assert ask(port, Command(code=1009, body=b"enableElectUncleanMaster=true")).code == 0
        # A second one on the same decisions would be a second opinion.
        second = run(MODULE, "-c", str(path))
        assert second.returncode == 1
        assert "another controller uses" in second.stderr
        child.send_signal(signal.SIGTERM)
        assert child.wait(10) == 0
    assert "enableElectUncleanMaster=true" in path.read_text()


def test_the_command_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    path = tmp_path / "controller.conf"
    path.write_text("controllerDLegerPeers=n0-127.0.0.1:1;n1-127.0.0.1:2\n")
    done = run(MODULE, "-c", str(path))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: controllerDLegerPeers names 2 controllers")


def test_a_name_server_runs_a_controller_if_told_to(tmp_path: Path) -> None:
    port, name_port = free_port(), free_port()
    path = tmp_path / "namesrv.conf"
    path.write_text(
        f"listenPort={name_port}\nkvConfigPath={tmp_path}/kv.json\nenableControllerInNamesrv=true\n"
        f"controllerDLegerGroup=group1\ncontrollerDLegerPeers=n0-127.0.0.1:{port}\n"
        f"controllerDLegerSelfId=n0\ncontrollerStorePath={tmp_path}/store\n"
    )
    with process(NAME_SERVER, "-c", str(path)) as (child, greeting):
        assert f"  controller      127.0.0.1:{port}" in greeting
        assert (ask(port, Command(code=1005)).ext or {})["group"] == "group1"
        assert ask(name_port, Command(code=319)).code == 0
        child.send_signal(signal.SIGTERM)
        _, errors = child.communicate(timeout=10)
        assert child.returncode == 0
        assert "without effect" not in errors


def test_a_name_server_stops_if_its_controller_cannot_start(tmp_path: Path) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_text(
        f"listenPort=0\nkvConfigPath={tmp_path}/kv.json\nenableControllerInNamesrv=true\n"
        f"controllerStorePath={path}/below-a-file\n"
    )
    done = run(NAME_SERVER, "-c", str(path))
    assert done.returncode == 1
    assert "controllerStorePath" in done.stderr
