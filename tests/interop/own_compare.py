"""What our mqadmin and RocketMQ's print for one cluster: compared, and kept for docs/reference/mqadmin.md."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Mapping
from dataclasses import replace

from .java import cache_root
from .mqadmin_cluster import Answer, Transcript
from .mqadmin_compare import differences
from .mqadmin_script import COMMAND_LIST, START_CLIENTS
from .mqadmin_verdicts import DIFFERS, MISSING, OWN_REASONS, SAME
from .record import RESULTS, read, write

JSON_COMMANDS = {"topicRoute", "allocateMQ"}
"""They print JSON, RocketMQ's not of the standard: numbers as names have no quotes."""

Lines = Mapping[str, list[str]]
"""Subcommand to the lines that only one of the tools printed, ours with a minus."""


def without_reason(make: str, lines: Lines) -> dict[str, list[str]]:
    """What differs at a cluster and is not known to."""
    return {
        name: odd
        for name, odd in lines.items()
        if odd and make not in OWN_REASONS.get(name, ((), ""))[0]
    }


def check(make: str, scene: str, lines: Lines) -> None:
    """Keeps the verdicts; raises AssertionError for what differs without a reason."""
    keep(make, scene, lines)
    odd = without_reason(make, lines)
    assert not odd, "\n".join(f"{name} {line}" for name, lines in odd.items() for line in lines)


def keep(make: str, scene: str, lines: Lines) -> None:
    """Below ``results/own``: by make of the cluster and by scene, the verdict on each subcommand."""
    file = cache_root() / RESULTS / "own" / "mqadmin.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        # Each scene may run in a worker of its own.
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = read(file)
        kept.setdefault(make, {})[scene] = {
            name: DIFFERS if odd else SAME for name, odd in lines.items()
        }
        write(file, kept)


def lines_of_one_tool(mine: Transcript, other: Transcript) -> dict[str, list[str]]:
    """By subcommand. What ours does not have is left out."""
    lines: dict[str, list[str]] = {}
    for ours, theirs in zip(mine.answers, other.answers, strict=True):
        command = ours.step.command
        if command in (START_CLIENTS, COMMAND_LIST) or command in MISSING:
            continue
        odd = lines.setdefault(command, [])
        if _is_refused(ours) != _is_refused(theirs):
            odd += [f"- {ours.step.line}: {ours.text}", f"+ {theirs.text}"]
        elif not _is_refused(ours):
            odd += differences(_plain(ours), _plain(theirs), (mine, other))
    return lines


def _is_refused(answer: Answer) -> bool:
    """By either tool. Of a refusal the words differ: ours have no stack trace, and say what to do."""
    return "Exception: " in answer.text or bool(re.search(r"^mqadmin\b", answer.text, re.MULTILINE))


def _plain(answer: Answer) -> Answer:
    """Without what is no difference: the order of a hash table, JSON's blanks, the ports of this cluster."""
    text = answer.text
    if answer.step.command in JSON_COMMANDS and " -l" not in answer.step.line:
        text = re.sub(r'[\s"]+', "", text).replace(",", ",\n").replace("{", "{\n")
        return replace(answer, text=re.sub(r"[\[\]{}]", "", text))
    if answer.step.command == "clusterAclConfigVersion":
        # Both tools change the same files, one after the other.
        text = re.sub(r"(\.yml\s+)\d+", r"\1N", text)
    if answer.step.command.endswith("Config"):
        text = re.sub(r"([pP]ort\s*=\s*)\d+", r"\1PORT", text)
        text = re.sub(r"/\S*/own-mqadmin\d+", "DIRECTORY", text)
    return replace(answer, text=re.sub(r"\{([^{}]*)\}", _in_order, text))


def _in_order(table: re.Match[str]) -> str:
    return "{" + ", ".join(sorted(table[1].split(", "))) + "}"
