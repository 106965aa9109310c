"""Our mqadmin and RocketMQ's 5.5.0, at our cluster and at RocketMQ's, prepared alike: what they print is compared.

The verdicts go to ``results/own/mqadmin.json`` below the cache, for ``docs/reference/mqadmin.md``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.cli.mqadmin.registry import COMMANDS

from .mqadmin_cluster import AdminProgram, Transcript, run_script
from .mqadmin_script import NEW, SCRIPT
from .own_compare import check, lines_of_one_tool
from .own_tool import OwnTool
from .systems import OURS, ROCKETMQ_5, commands_of
from .test_mqadmin_controller import controller_transcript
from .test_mqadmin_replication import group_transcript, java_tool

ALONE, GROUP, CONTROLLER = "alone", "group", "controller"
(VERSION,) = NEW

# Two clusters and two runs of the script.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@pytest.mark.parametrize("make", [OURS, ROCKETMQ_5])
@pytest.mark.parametrize("scene", [ALONE, GROUP, CONTROLLER])
def test_it_prints_what_rocketmqs_tool_prints(
    scene: str, make: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    java = java_tool(VERSION)
    mine, other = (
        _transcript(scene, make, program, tmp_path_factory.mktemp("own-mqadmin"))
        for program in (OwnTool(java), java)
    )
    check(make, scene, lines_of_one_tool(mine, other))


def _transcript(scene: str, make: str, program: AdminProgram, directory: Path) -> Transcript:
    if scene == GROUP:
        return group_transcript(make, program, VERSION, directory)
    if scene == CONTROLLER:
        return controller_transcript(make, program, directory)
    servers = commands_of(make, directory / "servers")
    return run_script(servers, program, VERSION, directory / make, {})


def test_the_script_has_every_subcommand_that_needs_no_other_cluster() -> None:
    tried = {step.command for step in SCRIPT}
    elsewhere = (".mqadmin.ha", ".mqadmin.accounts")
    left = {
        command.name
        for command in COMMANDS
        if command.name not in tried
        and not any(part in command.run.__module__ for part in elsewhere)
    }
    assert left == {
        # Not in RocketMQ's tool.
        *("listDeadLetters", "resendDeadLetters", "exportDefinitions", "importDefinitions"),
        "clusterRT",  # RocketMQ's runs until it is stopped
    }
