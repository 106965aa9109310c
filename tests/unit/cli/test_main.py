"""The ``cometmq`` command itself."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from cometmq.broker.__main__ import main as broker_main
from cometmq.cli.main import main
from cometmq.cli.shutdown import main as shutdown_main
from cometmq.controller.__main__ import main as controller_main
from cometmq.namesrv.__main__ import main as namesrv_main

# Modules of the standard library are there already: they are for Linux, too.
ELSEWHERE = """
import asyncio, ssl, subprocess, sys
from cometmq.cli.main import main
sys.platform = sys.argv.pop(1)
main()
"""


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_up_says_in_one_line_that_servers_need_linux(platform: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, platform, "up"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: the servers of CometMQ need Linux; its client works everywhere\n"
    )


def commands_below(name: str, command: click.Command, examples: str) -> Iterator[Help]:
    text = CliRunner().invoke(command, ["--help"]).output
    examples += text.partition("  Example")[2].partition("Options:")[0]
    if isinstance(command, click.Group):
        for word, one in command.commands.items():
            yield from commands_below(f"{name} {word}", one, examples)
    else:
        yield name, text, examples


Help = tuple[str, str, str]
"""Name of a command, its help, and the examples in it and in the help of its group."""
PROGRAMS: dict[str, click.Command] = {
    "cometmq": main,
    "mqnamesrv": namesrv_main,
    "mqbroker": broker_main,
    "mqcontroller": controller_main,
    "mqshutdown": shutdown_main,
}
HELP = [
    help
    for name, command in PROGRAMS.items()
    for help in commands_below(name, command, examples="")
]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--log-level", "loud"], "'loud' is not one of"),
        (["--namesrv-port", "99999"], "99999 is not in the range 0<=x<=65535"),
        (["--broker-port", "-1"], "-1 is not in the range 0<=x<=65535"),
        (["--brokers", "0"], "0 is not in the range 1<=x<=16"),
        (["--brokers", "17"], "17 is not in the range 1<=x<=16"),
        (["--brokers", "2", "--replicas", "2"], "--brokers goes with neither --replicas nor --con"),
        (["--brokers", "2", "--controller"], "--brokers goes with neither --replicas nor --con"),
    ],
)
def test_a_wrong_option_of_up_is_named(options: list[str], complaint: str) -> None:
    result = CliRunner().invoke(main, ["up", *options])
    assert result.exit_code == 2
    assert complaint in result.output


@pytest.mark.parametrize(("name", "text", "examples"), HELP, ids=[name for name, _, _ in HELP])
def test_help_has_examples_and_exit_codes(name: str, text: str, examples: str) -> None:
    assert re.search(r"^  Exit code: 0 ", text, re.MULTILINE)
    assert re.search(rf"^    .*\b{name}\b", examples, re.MULTILINE)
    assert "--log-level" not in text or "What to log" in text


def test_the_list_of_commands_says_what_each_does_in_whole_words() -> None:
    groups = [main, *(one for one in main.commands.values() if isinstance(one, click.Group))]
    for group in groups:
        listed = CliRunner().invoke(group, ["--help"]).output.partition("Commands:")[2]
        assert len(listed.split()) > 20
        assert "..." not in listed
