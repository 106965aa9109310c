"""Definitions of a cluster as a file that creates them again. RocketMQ's tool has no import."""

from __future__ import annotations

from typing import Final

from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.export.files import read_text, save_text
from cometmq.cli.mqadmin.options import BROKER, CLUSTER, flag, needed


async def export_definitions(call: Call) -> None:
    definitions = await call.admin.definitions.read(
        call.target(is_needed=False), with_accounts="a" in call.args
    )
    path = save_text(call.args.needed("f"), definitions.text())
    call.out.line(f"export {path} success")
    call.out.value(
        {"path": path, "topics": len(definitions.topics), "groups": len(definitions.groups)}
    )


async def import_definitions(call: Call) -> None:
    from cometmq.admin import Definitions

    definitions = Definitions.parse(read_text(call.args.needed("f")))
    target = call.target(is_needed=False)
    if "p" in call.args:
        planned = await call.admin.definitions.plan(definitions, target)
        for change in planned:
            call.out.line(str(change))
        call.out.line(f"{len(planned)} changes; nothing was done")
        call.out.failures(planned.failed)
        call.out.value(planned.rows)
        return
    result = await call.admin.definitions.write(definitions, target)
    for change in result.done:
        call.out.line(f"done: {change}")
    for change in result.left:
        call.out.line(f"not done: {change}")
    call.out.failures(result.failed)
    call.out.value(result)


COMMANDS: Final = (
    Command(
        name="exportDefinitions",
        summary="Save topics, groups and accounts in a file that importDefinitions reads.",
        run=export_definitions,
        options=(
            CLUSTER,
            BROKER,
            needed("f", "filename", "the file"),
            flag("a", "accounts", "users and rules, too; the file then has their passwords"),
        ),
        examples=("exportDefinitions -c DefaultCluster -f cluster.json",),
    ),
    Command(
        name="importDefinitions",
        summary="Create and change what a file of definitions says; nothing is deleted.",
        run=import_definitions,
        options=(
            CLUSTER,
            BROKER,
            needed("f", "filename", "a file of exportDefinitions, or a broker's topics.json"),
            flag("p", "plan", "only say what would be done"),
        ),
        examples=(
            "importDefinitions -c DefaultCluster -f cluster.json -p",
            "importDefinitions -c DefaultCluster -f cluster.json",
        ),
    ),
)
