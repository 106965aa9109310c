"""Brokers of different makes under one controller of either make: they follow and replace each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.eventually import wait_until

from cometmq.base.errors import CometError

from .controllers import Controller
from .java import MissingComponent
from .replication_group import (
    BROKER_NAME,
    ELECTED_SECONDS_MAX,
    group_in,
    make_topic,
    read,
    send,
    wait_for_equal_stores,
)
from .servers import ServerCommands
from .systems import OURS, ROCKETMQ_5, Broker, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

EXIT_CODE_MISSING = 3


@pytest.fixture(scope="module")
def makes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ServerCommands]:
    home = tmp_path_factory.mktemp("homes")
    try:
        return {make: commands_of(make, home / make) for make in (OURS, ROCKETMQ_5)}
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)


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
        one, other = (group.controlled(number, controller.address) for number in (1, 2))
        one.start(makes[first])
        make_topic(one)
        _wait(lambda: _leads(one))
        assert send(one, 30, "a") == [0] * 30
        other.start(makes[second], until_known=False)
        _wait(lambda: controller.members(BROKER_NAME) == {1, 2})
        assert send(one, 30, "b") == [0] * 30
        wait_for_equal_stores(one, other)
        one.kill()
        _wait(lambda: _leads(other))
        assert send(other, 30, "c") == [0] * 30
        one.start(makes[first], until_known=False)
        _wait(lambda: controller.members(BROKER_NAME) == {1, 2})
        assert send(other, 30, "d") == [0] * 30
        wait_for_equal_stores(other, one)
        other.kill()
        _wait(lambda: _leads(one))
        words = {body.partition(b"-")[0] for body in read(one)}
        assert words >= {b"a", b"b", b"c", b"d"}
        assert sum(body.startswith(b"c-") for body in read(one)) == 30
