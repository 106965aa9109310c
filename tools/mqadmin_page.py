#!/usr/bin/env python3
"""Renders docs/reference/mqadmin.md: the subcommands, and what the last comparison with RocketMQ's tool found.

``make mqadmin`` leaves verdicts below ``results/`` in the cache of the interop tests: ``mqadmin.json`` about RocketMQ's
tool at our cluster, ``own/mqadmin.json`` about our tool at ours and at RocketMQ's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.interop.mqadmin_verdicts import (
    DIFFERS,
    MISSING,
    OWN_COMMANDS,
    OWN_REASONS,
    REASONS,
    UNTRIED,
)
from tools.compatibility import results_directory

from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.options import OWN
from cometmq.cli.mqadmin.refused import REFUSED
from cometmq.cli.mqadmin.registry import COMMANDS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "mqadmin.md"
OURS, THEIRS, THEIRS_4 = "cometmq", "rocketmq-5.5.0", "rocketmq-4.9.7"
NEWEST = "5.5.0"

HEAD = """\
# mqadmin

Written by `make mqadmin`. Do not edit: change the commands under `src/cometmq/cli/mqadmin/` or the tests under
`tests/interop/`, and render this page again.

[What one does with it](../howto/operations.md). `mqadmin help NAME` shows the options of a command, with examples. They
are those of RocketMQ 4.9.8 and 5.5.0; where the two differ, ours follows 5.5.0 ([why](../decisions/0041-mqadmin.md)).
"""

TABLE = """\
## Commands, compared

RocketMQ's tool 5.5.0 and ours ran the same script at clusters that were prepared alike.

- *same*: both printed the same, after removing addresses, ids, times and rates; or both refused.
- *differs*: not so, for the reason given.
- *other tests*: the tests of this repository run it, but the script does not.

The last column is RocketMQ's tool at our servers, compared with RocketMQ's tool at its own ([4.9.8,
too](../compatibility.md)).
"""


def merged(scenes: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Subcommand to verdict over several runs: it differs if it does so in one."""
    found: dict[str, str] = {}
    for verdicts in scenes.values():
        for name, verdict in verdicts.items():
            found[name] = DIFFERS if DIFFERS in (verdict, found.get(name)) else verdict
    return found


def render(own: Mapping[str, Mapping[str, str]], java: Mapping[str, Mapping[str, str]]) -> str:
    """The whole page.

    Args:
        own: make of the cluster to subcommand to verdict, of our tool.
        java: version to subcommand to verdict, of RocketMQ's tool at our cluster.
    """
    lines = [HEAD, "## Options that RocketMQ's tool does not have\n"]
    lines += [f"- `--{option.name}`: {option.help}" for option in OWN]
    lines += ["", TABLE]
    lines += [
        "| command | what it does | ours at ours | ours at RocketMQ's | RocketMQ's at ours | because |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_row(command, own, java) for command in COMMANDS]
    lines += [
        "",
        "## Commands that are not here\n",
        "| command | why, and what to use |",
        "| --- | --- |",
    ]
    lines += [f"| `{name}` | {reason} |" for name, reason in sorted(REFUSED.items())]
    return "\n".join(lines) + "\n"


def _row(
    command: Command, own: Mapping[str, Mapping[str, str]], java: Mapping[str, Mapping[str, str]]
) -> str:
    name = command.name
    at_ours = _own(name, own.get(OURS, {}))
    at_theirs = _own(name, {**own.get(THEIRS_4, {}), **own.get(THEIRS, {})})
    theirs = java.get(NEWEST, {}).get(name) or java.get("4.9.8", {}).get(name) or "–"
    reasons = [
        text
        for verdict, (_, text) in (
            (DIFFERS if DIFFERS in (at_ours, at_theirs) else "", OWN_REASONS.get(name, ((), ""))),
            (theirs if theirs == DIFFERS else "", REASONS.get(name, ((), ""))),
        )
        if verdict and text
    ]
    if name in OWN_COMMANDS:
        reasons = ["RocketMQ's tool does not have it"]
        theirs = "–"
    elif name in UNTRIED:
        reasons.append(UNTRIED[name])
    elif theirs == "not yet":
        reasons.append(f"our servers lack {MISSING[name][1]}" if name in MISSING else "")
    cells = (f"`{name}`", command.summary, at_ours, at_theirs, theirs, "; ".join(reasons))
    return "| " + " | ".join(cells) + " |"


def _own(name: str, found: Mapping[str, str]) -> str:
    return found.get(name, "other tests")


def load() -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    """What the last runs left. Raises FileNotFoundError."""
    results = results_directory()
    told = json.loads((results / "own" / "mqadmin.json").read_text(encoding="utf-8"))
    own = {make: merged(scenes) for make, scenes in told.items()}
    java = json.loads((results / "mqadmin.json").read_text(encoding="utf-8"))["verdicts"]
    return own, java


def main() -> int:
    try:
        own, java = load()
    except FileNotFoundError as error:
        print(f"no results: {error.filename}; run `make mqadmin` first", file=sys.stderr)
        return 1
    PAGE.write_text(render(own, java), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
