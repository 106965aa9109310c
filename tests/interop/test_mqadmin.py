"""RocketMQ's own mqadmin against our cluster and against RocketMQ's, prepared alike: what it prints is compared.

The verdicts go to ``results/mqadmin.json`` below the cache, for ``docs/compatibility.md``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest

from .java import MissingComponent, cache_root, fetch_jars
from .mqadmin_cluster import Transcript, run_script
from .mqadmin_compare import differences
from .mqadmin_script import (
    ACCOUNT_COMMANDS,
    BOTH,
    COMMAND_LIST,
    CONTROLLER_COMMANDS,
    NEW,
    START_CLIENTS,
)
from .mqadmin_verdicts import DIFFERS, MISSING, NOT_TRIED, NOT_YET, SAME, expected, section
from .record import RESULTS, read, write
from .servers import HERE
from .single_java import SingleJava
from .systems import OURS, ROCKETMQ_4, ROCKETMQ_5, commands_of

EXIT_CODE_MISSING = 3
RIVALS = {BOTH[0]: ROCKETMQ_4, BOTH[1]: ROCKETMQ_5}
LIKE_4 = {"storedProperties": "4.9", "useServerSideResetOffset": "false"}
"""Ours is like 5.x in these, unless told otherwise."""

# The first test of a version waits for two clusters and two runs of the script.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Comparison:
    """What two clusters gave: ``lines`` of each command that differ, ``listed`` by the tool, ``theirs`` in full."""

    lines: dict[str, list[str]]
    listed: set[str]
    theirs: Transcript


@pytest.fixture(scope="module", params=BOTH)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def comparison(version: str, tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    directory = tmp_path_factory.mktemp(f"mqadmin-{version}")
    try:
        program = SingleJava("AdminCommands", fetch_jars(HERE / "pom.xml", version))
        ours, theirs = (
            run_script(
                commands_of(make, directory / f"home-{make}"),
                program,
                version,
                directory / make,
                LIKE_4 if make == OURS and RIVALS[version] == ROCKETMQ_4 else {},
            )
            for make in (OURS, RIVALS[version])
        )
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)
    return Comparison(_differences(ours, theirs), _listed(ours), theirs)


def test_every_command_is_accounted_for(comparison: Comparison, version: str) -> None:
    absent = {name for name, (versions, _) in MISSING.items() if version in versions}
    untried = {name for name in comparison.listed if expected(name, version) == NOT_TRIED}
    elsewhere = ACCOUNT_COMMANDS[version] | (CONTROLLER_COMMANDS if version in NEW else set())
    assert comparison.listed == set(comparison.lines) | absent | untried | elsewhere


def test_rocketmq_refuses_what_it_should_and_nothing_else(
    comparison: Comparison, version: str
) -> None:
    """Otherwise two errors would pass for two equal answers."""
    odd = [
        f"{answer.step.line}\n{answer.text}"
        for answer in comparison.theirs.answers
        if expected(answer.step.command, version) != NOT_YET
        and ("Exception: " in answer.text) != answer.step.is_refused
    ]
    assert odd == []


def test_commands_print_what_they_print_for_rocketmq(comparison: Comparison, version: str) -> None:
    found = {name: _verdict(name, version, comparison) for name in sorted(comparison.listed)}
    if os.environ.get("COMETMQ_INTEROP_SERVERS", "cometmq") == "cometmq":
        file = cache_root() / RESULTS / "mqadmin.json"
        verdicts = read(file).get("verdicts", {}) | {version: found}
        write(file, {"verdicts": verdicts, **section(verdicts)})
    surprises = {
        name: comparison.lines.get(name)
        for name, verdict in found.items()
        if verdict != expected(name, version)
    }
    assert surprises == {}


def _verdict(command: str, version: str, comparison: Comparison) -> str:
    said = expected(command, version)
    if command not in comparison.lines:
        return said
    if not comparison.lines[command]:
        return SAME
    return NOT_YET if said == NOT_YET else DIFFERS


def _differences(ours: Transcript, theirs: Transcript) -> dict[str, list[str]]:
    lines: dict[str, list[str]] = {}
    for mine, other in zip(ours.answers, theirs.answers, strict=True):
        if mine.step.command == START_CLIENTS:
            assert mine.text.strip() == other.text.strip() == ""
        if mine.step.command in (START_CLIENTS, COMMAND_LIST):
            continue
        lines.setdefault(mine.step.command, []).extend(differences(mine, other, (ours, theirs)))
    return lines


def _listed(transcript: Transcript) -> set[str]:
    """The commands that the tool lists itself, each with a line of help."""
    (answer,) = (each for each in transcript.answers if each.step.command == COMMAND_LIST)
    return {line.split()[0] for line in answer.text.splitlines() if line.startswith("   ")}
