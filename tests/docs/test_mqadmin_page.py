"""docs/reference/mqadmin.md names what there is: its verdicts come from runs, the rest from the commands."""

from __future__ import annotations

import re

from tools.mqadmin_page import PAGE, render

from cometmq.cli.mqadmin.refused import REFUSED
from cometmq.cli.mqadmin.registry import COMMANDS

_ROW = re.compile(r"^\| `(\w+)` \| (.*) \|$", re.MULTILINE)


def test_every_command_has_its_row_and_no_other() -> None:
    found = {name: cells.split(" | ") for name, cells in _ROW.findall(PAGE.read_text())}
    assert set(found) == {command.name for command in COMMANDS} | set(REFUSED)
    for command in COMMANDS:
        assert found[command.name][0] == command.summary
    for name, reason in REFUSED.items():
        assert found[name] == [reason]


def test_what_differs_has_a_reason() -> None:
    for name, cells in _ROW.findall(PAGE.read_text()):
        if "differs" in cells.split(" | ")[1:4]:
            assert cells.split(" | ")[-1].strip(), name


def test_verdicts_are_those_of_the_runs() -> None:
    own = {"cometmq": {"topicList": "same"}, "rocketmq-5.5.0": {"topicList": "differs"}}
    page = render(own, {"5.5.0": {"topicList": "not yet"}})
    assert "| `topicList` | List all topics. | same | differs | not yet |" in page
    assert "| `createUser` | Create a user. | other tests | other tests | – |" in page
