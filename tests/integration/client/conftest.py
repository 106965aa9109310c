"""Servers for the tests of the client: a name server and a broker as processes, for the whole run.

``COMETMQ_CLIENT_SERVERS=rocketmq-4.9.7`` (or ``rocketmq-5.5.0``) starts RocketMQ's own in place of ours; every test
must pass with either. Fixtures:

    name_servers     what clients are given
    broker_control   stop, kill and start the broker; it runs again after the test
    create_topic     create_topic("Orders", queues=4) -> a new topic's name, known to the name server
    unique           unique("orders") -> a name that no other test has
    makers           how to start further servers of the same make (``tests.interop.systems``)

Delay levels are short, so that retries come soon, and half messages are checked after two seconds.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from tests.eventually import wait_until

ROOT = str(Path(__file__).parents[3])
if ROOT not in sys.path:
    sys.path.append(ROOT)

from tests.interop.servers import ServerCommands, ask  # noqa: E402
from tests.interop.systems import OURS, Broker, NameServer, commands_of  # noqa: E402

GET_ROUTE = 105
CREATE_TOPIC = 17
KNOWN_SECONDS_MAX = 60.0
POLL_SECONDS = 0.02

# Level 1 is 1 s as usual, level 2 two; the rest is for retries, which begin with level 3.
DELAY_LEVELS = "1s 2s " + " ".join(["1s"] * 16)

BROKER_SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": 64 * 1024 * 1024,
    "mappedFileSizeConsumeQueue": 20 * 1000,
    "maxHashSlotNum": 5000,
    "maxIndexNum": 20000,
    "messageDelayLevel": DELAY_LEVELS,
    "enablePropertyFilter": "true",
    "transactionTimeOut": 2000,
    "transactionCheckInterval": 2000,
    # Otherwise a new group of a topic whose messages are all in memory begins at offset 0, whatever it asks for.
    "accessMessageInMemoryMaxRatio": 0,
    # Otherwise RocketMQ 5 resets a group's offsets by itself and tells no client.
    "useServerSideResetOffset": "false",
    # Otherwise RocketMQ's broker refuses to write on a disk that is nearly full.
    "diskMaxUsedSpaceRatio": 95,
}


class CreateTopic(Protocol):
    def __call__(self, name: str = "topic", *, queues: int = 4, perm: int = 6) -> str: ...


class BrokerControl:
    """The one broker of the run."""

    def __init__(self, broker: Broker, commands: ServerCommands) -> None:
        self._broker = broker
        self._commands = commands
        self.is_running = False

    @property
    def name(self) -> str:
        return self._broker.name

    @property
    def address(self) -> str:
        return self._broker.address

    def start(self) -> None:
        """Returns when clients can find it."""
        if not self.is_running:
            self._broker.start(self._commands)
            self.is_running = True

    def stop(self) -> None:
        """As an operator does it: SIGTERM."""
        self._broker.stop()
        self.is_running = False

    def kill(self) -> None:
        """SIGKILL."""
        self._broker.kill()
        self.is_running = False

    def restart(self) -> None:
        self.stop()
        self.start()


@pytest.fixture(scope="session")
def makers(tmp_path_factory: pytest.TempPathFactory) -> ServerCommands:
    kind = os.environ.get("COMETMQ_CLIENT_SERVERS") or OURS
    if kind == OURS:
        # Of the very environment that the tests run in.
        return ServerCommands(
            (sys.executable, "-m", "cometmq.namesrv"), (sys.executable, "-m", "cometmq.broker")
        )
    return commands_of(kind, tmp_path_factory.mktemp("system") / "home")


@pytest.fixture(scope="session")
def _servers(
    tmp_path_factory: pytest.TempPathFactory, makers: ServerCommands
) -> Iterator[tuple[NameServer, BrokerControl]]:
    directory = tmp_path_factory.mktemp("servers")
    with NameServer(makers, directory / "namesrv").running() as name_server:
        broker = Broker([name_server], directory / "broker", "broker-c", **BROKER_SETTINGS)
        control = BrokerControl(broker, makers)
        try:
            control.start()
            yield name_server, control
        finally:
            control.kill()


@pytest.fixture
def name_servers(_servers: tuple[NameServer, BrokerControl]) -> str:
    _servers[1].start()
    return _servers[0].address


@pytest.fixture
def broker_control(_servers: tuple[NameServer, BrokerControl]) -> Iterator[BrokerControl]:
    control = _servers[1]
    control.start()
    yield control
    control.start()


@pytest.fixture
def unique() -> Callable[[str], str]:
    return lambda name: f"{name}-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def create_topic(
    _servers: tuple[NameServer, BrokerControl], unique: Callable[[str], str]
) -> CreateTopic:
    name_server, control = _servers

    def create(name: str = "topic", *, queues: int = 4, perm: int = 6) -> str:
        topic = unique(name)
        fields = {
            "topic": topic,
            "defaultTopic": "TBW102",
            "readQueueNums": str(queues),
            "writeQueueNums": str(queues),
            "perm": str(perm),
            "topicFilterType": "SINGLE_TAG",
            "topicSysFlag": "0",
            "order": "false",
        }
        port = int(control.address.rpartition(":")[2])
        code, _ = ask(port, CREATE_TOPIC, fields)
        assert code == 0, f"broker answered {code} to the creation of {topic}"
        wait_until(
            lambda: ask(name_server.port, GET_ROUTE, {"topic": topic})[0] == 0,
            seconds=KNOWN_SECONDS_MAX,
        )
        return topic

    return create
