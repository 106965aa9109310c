"""RocketMQ's own mqadmin against a controller with a master and its slave, ours and RocketMQ's."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.eventually import wait_until

from .controllers import Controller
from .java import MissingComponent
from .mqadmin_cluster import (
    CLUSTER_NAME,
    AdminProgram,
    Answer,
    Transcript,
    prepare,
    run_steps,
)
from .mqadmin_compare import differences
from .mqadmin_script import CONTROLLER_SCRIPT, NEW
from .replication_group import BROKER_NAME, ELECTED_SECONDS_MAX, group_in, wait_for_equal_stores
from .systems import OURS, ROCKETMQ_5, commands_of
from .test_mqadmin_replication import java_tool

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

EXIT_CODE_MISSING = 3
(VERSION,) = NEW


def test_commands_print_what_they_print_for_rocketmq(tmp_path: Path) -> None:
    program = java_tool(VERSION)
    ours, theirs = (controller_transcript(make, program, tmp_path) for make in (OURS, ROCKETMQ_5))
    odd = [
        line
        for mine, other in zip(_by_code(ours.answers), _by_code(theirs.answers), strict=True)
        if mine.step.command != "getControllerConfig"
        for line in differences(mine, other, (ours, theirs))
    ]
    assert not odd, "\n".join(odd)
    for answer in theirs.answers:
        assert ("Exception: " in answer.text) == answer.step.is_refused, answer


def _by_code(answers: list[Answer]) -> list[Answer]:
    """Of a refusal the code has to be the same. Our texts say more."""
    return [replace(one, text=re.sub(r"(CODE: \d+)  DESC: .*", r"\1", one.text)) for one in answers]


def controller_transcript(make: str, program: AdminProgram, directory: Path) -> Transcript:
    """What a tool prints for a controller with a master and its slave, all of one make."""
    try:
        makes = {make: commands_of(make, directory / f"home-{make}")}
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)
    with (
        Controller(make, makes[make], directory / f"controller-{make}").running() as controller,
        group_in(directory / make, makes, make) as group,
    ):
        master, slave = (group.controlled(number, controller.address) for number in (1, 2))
        master.start(makes[make])
        wait_until(lambda: controller.members(BROKER_NAME) == {1}, seconds=ELECTED_SECONDS_MAX)
        slave.start(makes[make], until_known=False)
        wait_until(lambda: controller.members(BROKER_NAME) == {1, 2}, seconds=ELECTED_SECONDS_MAX)
        asyncio.run(prepare(group.name_server.address, master.address))
        wait_for_equal_stores(master, slave)
        values = {
            "name_server": group.name_server.address,
            "controller": controller.address,
            "broker": master.address,
            "slave": slave.address,
            "cluster": CLUSTER_NAME,
            "name": BROKER_NAME,
            "directory": str(directory / make),
        }
        return run_steps(CONTROLLER_SCRIPT, program, VERSION, directory / f"{make}-tool", values)
