"""All subcommands, section by section."""

from __future__ import annotations

from typing import Final

from cometmq.cli.mqadmin.accounts import acls, plain_accounts, users
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.export import export_metadata, export_report, transfer
from cometmq.cli.mqadmin.groups import group_changes, members, positions, progress
from cometmq.cli.mqadmin.ha import controllers, replication
from cometmq.cli.mqadmin.messages import dead_letters, lookup, scan, sending, traces
from cometmq.cli.mqadmin.servers import clusters, settings, upkeep
from cometmq.cli.mqadmin.topics import topic_changes, topic_figures, topic_views

COMMANDS: Final[tuple[Command, ...]] = (
    *topic_changes.COMMANDS,
    *topic_views.COMMANDS,
    *topic_figures.COMMANDS,
    *group_changes.COMMANDS,
    *progress.COMMANDS,
    *members.COMMANDS,
    *positions.COMMANDS,
    *lookup.COMMANDS,
    *traces.COMMANDS,
    *scan.COMMANDS,
    *sending.COMMANDS,
    *dead_letters.COMMANDS,
    *clusters.COMMANDS,
    *settings.COMMANDS,
    *upkeep.COMMANDS,
    *export_metadata.COMMANDS,
    *export_report.COMMANDS,
    *transfer.COMMANDS,
    *replication.COMMANDS,
    *controllers.COMMANDS,
    *users.COMMANDS,
    *acls.COMMANDS,
    *plain_accounts.COMMANDS,
)

_BY_NAME: Final = {command.name: command for command in COMMANDS}


def find(name: str) -> Command | None:
    return _BY_NAME.get(name)
