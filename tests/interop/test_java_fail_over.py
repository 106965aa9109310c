"""RocketMQ's own clients while the master of a group of ours is replaced, planned and unplanned.

They ask for routes every 30 seconds, or as often as they are told to (``setPollNameServerInterval``).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.eventually import wait_until

from .controllers import Controller
from .features import JAVA_VERSIONS
from .java import MissingComponent
from .moved_clients import moved_clients
from .replication_group import (
    BROKER_NAME,
    ELECTED_SECONDS_MAX,
    group_in,
    make_topic,
    wait_for_equal_logs,
)
from .servers import ask
from .systems import OURS, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

EXIT_CODE_MISSING = 3
ELECT_MASTER = 1002


@pytest.mark.parametrize("version", JAVA_VERSIONS)
def test_clients_go_on_when_the_master_is_replaced(version: str, tmp_path: Path) -> None:
    try:
        makes = {OURS: commands_of(OURS, tmp_path / "home")}
        with (
            Controller(OURS, makes[OURS], tmp_path / "controller").running() as controller,
            group_in(tmp_path, makes) as group,
        ):
            one, other = (group.controlled(number, controller.address) for number in (1, 2))
            one.start(makes[OURS])
            make_topic(one)
            other.start(makes[OURS], until_known=False)
            _wait_for_both(controller)
            with moved_clients(
                version, group.name_server.address, tmp_path / "client", pause_ms=5
            ) as clients:
                clients.sends_on()
                for successor in (2, 1):
                    _elect(controller, successor)
                    clients.sends_on(100)
                    clients.takes_on()
                    assert clients.failed == 0, "a planned change fails no send"
                    _wait_for_both(controller)
                one.kill()
                clients.sends_on()
                clients.takes_on()
                one.start(makes[OURS], until_known=False)
                _wait_for_both(controller)
                clients.be_quiet()
                clients.drain()
            wait_for_equal_logs(other, one)
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)


def _wait_for_both(controller: Controller) -> None:
    wait_until(
        lambda: controller.members(BROKER_NAME) == {1, 2},
        "both in the SyncStateSet",
        ELECTED_SECONDS_MAX,
    )


def _elect(controller: Controller, broker_id: int) -> None:
    fields = {
        "clusterName": "interop-cluster",
        "brokerName": BROKER_NAME,
        "brokerId": str(broker_id),
        "designateElect": "true",
    }
    code, _ = ask(controller.port, ELECT_MASTER, fields)
    assert code == 0
