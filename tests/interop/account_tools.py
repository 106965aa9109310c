"""RocketMQ's mqadmin, with the account of an operator, at our broker and at RocketMQ's: what it prints is compared."""

from __future__ import annotations

from pathlib import Path

from .account_servers import CLUSTER_NAME, OPERATOR, Guarded, GuardedBroker
from .java import fetch_jars
from .mqadmin_cluster import AdminProgram, Transcript, run_steps
from .mqadmin_compare import differences
from .mqadmin_script import Step
from .own_compare import lines_of_one_tool
from .own_tool import OwnTool
from .servers import HERE
from .single_java import SingleJava
from .systems import OURS

TOOLS = f"accessKey: {OPERATOR.name}\nsecretKey: {OPERATOR.secret}\n"


def odd_lines(
    script: tuple[Step, ...], version: str, guarded: Guarded, directory: Path
) -> dict[str, list[str]]:
    """Command line to the lines that only one of the two got, ours with a minus. Raises MissingComponent.

    A command that RocketMQ refuses though it should not, or the other way round, is odd, too.
    """
    program = SingleJava("AdminCommands", fetch_jars(HERE / "pom.xml", version))
    ours, theirs = guarded.values()
    assert ours.make == OURS, guarded
    mine, other = (
        tool_transcript(script, program, version, here, there, directory)
        for here, there in ((ours, theirs), (theirs, ours))
    )
    odd = {}
    for one, two in zip(mine.answers, other.answers, strict=True):
        lines = differences(one, two, (mine, other))
        if ("Exception: " in two.text) != two.step.is_refused:
            lines.append(f"! {two.text}")
        if lines:
            odd[one.step.line] = lines
    return odd


def own_differences(
    script: tuple[Step, ...], version: str, guarded: Guarded, directory: Path
) -> dict[str, dict[str, list[str]]]:
    """Make of the broker to command to the lines that only one of our mqadmin and RocketMQ's prints."""
    java = SingleJava("AdminCommands", fetch_jars(HERE / "pom.xml", version))
    ours, theirs = guarded.values()
    found = {}
    for here, there in ((ours, theirs), (theirs, ours)):
        mine, other = (
            tool_transcript(script, program, version, here, there, directory / name, user=name)
            for name, program in (("own", OwnTool(java)), ("java", java))
        )
        found[here.make] = lines_of_one_tool(mine, other)
    return found


def tool_transcript(
    script: tuple[Step, ...],
    program: AdminProgram,
    version: str,
    here: GuardedBroker,
    there: GuardedBroker,
    directory: Path,
    *,
    user: str = "user",
) -> Transcript:
    """What a tool with an operator's account prints. ``user`` begins the name of the user that it makes."""
    values = {
        "name_server": here.name_server.address,
        "broker": here.address,
        "other": there.address,
        "cluster": CLUSTER_NAME,
        "user": f"{user}-of-{here.make}",
        "file": str(here.home / "conf" / "acl" / "more.yml"),
        "home": str(here.home),
    }
    home = directory / f"tool-{here.make}"
    return run_steps(script, program, version, home, values, tools=TOOLS)
