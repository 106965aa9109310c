"""Brokers of different makes under one controller of either make: they follow and replace each other."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.eventually import wait_until

from cometmq.base.errors import CometError

from .java import MissingComponent
from .replication_group import (
    SLAVE,
    Group,
    group_in,
    make_topic,
    read,
    send,
    wait_for_equal_stores,
)
from .servers import Server, ServerCommands, accepts, ask, free_ports
from .systems import OURS, ROCKETMQ_5, Broker, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

EXIT_CODE_MISSING = 3
ELECTED_SECONDS_MAX = 60.0
GET_REPLICA_INFO = 1004


@pytest.fixture(scope="module")
def makes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ServerCommands]:
    home = tmp_path_factory.mktemp("homes")
    try:
        return {make: commands_of(make, home / make) for make in (OURS, ROCKETMQ_5)}
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)


class Controller:
    """One controller, alone in its group."""

    def __init__(self, make: str, commands: ServerCommands, directory: Path) -> None:
        directory.mkdir(parents=True)
        (self.port,) = free_ports(0)
        conf = directory / "controller.conf"
        conf.write_text(
            f"controllerDLegerGroup=group\n"
            f"controllerDLegerPeers=n0-127.0.0.1:{self.port}\n"
            f"controllerDLegerSelfId=n0\n"
            f"controllerStorePath={directory / 'store'}\n"
        )
        command = [sys.executable, "-m", "cometmq.controller", "-c", str(conf)]
        if make != OURS:
            *flags, _ = commands.broker
            command = [*flags, "org.apache.rocketmq.controller.ControllerStartup", "-c", str(conf)]
        self._server = Server("controller", command, commands.environment, directory)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def running(self) -> Iterator[Controller]:
        try:
            self._server.start(lambda: accepts(self.port))
            yield self
        finally:
            self._server.kill()

    def members(self) -> set[int]:
        """The SyncStateSet."""
        try:
            code, body = ask(self.port, GET_REPLICA_INFO, {"brokerName": "replicated"})
        except OSError:
            return set()
        return set(json.loads(body)["syncStateSet"]) if code == 0 and body else set()


def _broker(group: Group, controller: Controller, number: int) -> Broker:
    return group.broker(
        number,
        SLAVE,
        enableControllerMode="true",
        controllerAddr=controller.address,
        allAckInSyncStateSet="true",
        inSyncReplicas=1,
    )


def _leads(broker: Broker) -> bool:
    """Whether it takes messages."""
    try:
        return send(broker, 1, "probe", in_flight=1) == [0]
    except (CometError, OSError):
        return False


def _wait(condition: Callable[[], bool]) -> None:
    wait_until(condition, seconds=ELECTED_SECONDS_MAX)


@pytest.mark.parametrize("controller_make", [OURS, ROCKETMQ_5])
@pytest.mark.parametrize(("first", "second"), [(OURS, ROCKETMQ_5), (ROCKETMQ_5, OURS)])
def test_brokers_of_two_makes_replace_each_other(
    makes: dict[str, ServerCommands],
    tmp_path: Path,
    controller_make: str,
    first: str,
    second: str,
) -> None:
    with (
        Controller(
            controller_make, makes[controller_make], tmp_path / "controller"
        ).running() as controller,
        group_in(tmp_path, makes) as group,
    ):
        one, other = _broker(group, controller, 1), _broker(group, controller, 2)
        one.start(makes[first])
        make_topic(one)
        _wait(lambda: _leads(one))
        assert send(one, 30, "a") == [0] * 30
        other.start(makes[second], until_known=False)
        _wait(lambda: controller.members() == {1, 2})
        assert send(one, 30, "b") == [0] * 30
        wait_for_equal_stores(one, other)
        one.kill()
        _wait(lambda: _leads(other))
        assert send(other, 30, "c") == [0] * 30
        one.start(makes[first], until_known=False)
        _wait(lambda: controller.members() == {1, 2})
        assert send(other, 30, "d") == [0] * 30
        wait_for_equal_stores(other, one)
        other.kill()
        _wait(lambda: _leads(one))
        words = {body.partition(b"-")[0] for body in read(one)}
        assert words >= {b"a", b"b", b"c", b"d"}
        assert sum(body.startswith(b"c-") for body in read(one)) == 30
