"""RocketMQ's own mqadmin against a master and its slave, ours and RocketMQ's: what it prints is compared."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.eventually import wait_until

from .java import MissingComponent, fetch_jars
from .mqadmin_cluster import CLUSTER_NAME, AdminProgram, Transcript, prepare, run_steps
from .mqadmin_compare import differences
from .mqadmin_script import BOTH, GROUP_SCRIPT
from .replication_group import (
    BROKER_NAME,
    FOLLOW_SECONDS_MAX,
    MASTER,
    SLAVE,
    group_in,
    has_followers,
    wait_for_equal_stores,
)
from .servers import HERE
from .single_java import SingleJava
from .systems import OURS, ROCKETMQ_4, ROCKETMQ_5, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

EXIT_CODE_MISSING = 3
RIVALS = {BOTH[0]: ROCKETMQ_4, BOTH[1]: ROCKETMQ_5}


@pytest.mark.parametrize("version", BOTH)
def test_commands_print_what_they_print_for_rocketmq(version: str, tmp_path: Path) -> None:
    program = java_tool(version)
    ours, theirs = (
        group_transcript(make, program, version, tmp_path) for make in (OURS, RIVALS[version])
    )
    found = {
        mine.step.line: differences(mine, other, (ours, theirs))
        for mine, other in zip(ours.answers, theirs.answers, strict=True)
    }
    for line, lines in found.items():
        if line.startswith("brokerStatus"):
            # Ours tells the figures of both series under the names of both.
            found[line] = [each for each in lines if each.startswith("+")]
    assert {line: lines for line, lines in found.items() if lines} == {}
    for answer in theirs.answers:
        assert ("Exception: " in answer.text) == answer.step.is_refused, answer
        if answer.step.line == "haStatus -b {broker}":
            assert "#InSyncSlaveNum\t1" in answer.text, "otherwise two masters alone were compared"


def java_tool(version: str) -> SingleJava:
    try:
        return SingleJava("AdminCommands", fetch_jars(HERE / "pom.xml", version))
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)


def group_transcript(make: str, program: AdminProgram, version: str, directory: Path) -> Transcript:
    """What a tool prints for a master and its slave of one make."""
    try:
        makes = {make: commands_of(make, directory / f"home-{make}")}
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)
    with group_in(directory / make, makes, make) as group:
        master = group.start(group.broker(0, MASTER), make)
        slave = group.start(group.broker(1, SLAVE), make)
        asyncio.run(prepare(group.name_server.address, master.address))
        wait_for_equal_stores(master, slave)
        if make != ROCKETMQ_4:
            wait_until(lambda: has_followers(master), "the slave follows", FOLLOW_SECONDS_MAX)
        values = {
            "name_server": group.name_server.address,
            "broker": master.address,
            "slave": slave.address,
            "cluster": CLUSTER_NAME,
            "name": BROKER_NAME,
            "directory": str(directory / make),
        }
        return run_steps(GROUP_SCRIPT, program, version, directory / f"{make}-tool", values)
