"""The commands, and what they print. ``cometmq.store.backup`` does the work."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from cometmq.cli.backup.long_work import LongWork, size_text
from cometmq.cli.backup.options import quiet_option, store_config, store_options, time_ms
from cometmq.cli.client_command import FAILED, exit_codes

if TYPE_CHECKING:
    from cometmq.store.backup.backups import Backups
    from cometmq.store.backup.manifest import Manifest
    from cometmq.store.backup.restore import Restored

PROGRAM: Final = "cometmq backup"
PRIVATE: Final = 0o700
PAUSE_SECONDS: Final = 0.1


@click.group(short_help="Back up and restore the store of a broker.")
def backup() -> None:
    """Back up a broker's store while the broker runs; check backups; restore them.

    A directory holds the backups of one store. They share the log, so a second backup copies only what is new.

    \b
    Examples:
      cometmq backup create /backups/broker-a -c /etc/cometmq/broker.conf
      cometmq backup list /backups/broker-a
      cometmq backup verify /backups/broker-a
      cometmq backup restore /backups/broker-a -c /etc/cometmq/broker.conf --to-time 2026-11-18T14:30:00
    """


@backup.command()
@click.argument("directory")
@store_options
@quiet_option
def create(directory: str, config_file: str | None, store: str | None, is_quiet: bool) -> None:
    """Back up a store into DIRECTORY, beside its broker or without it.

    What was acknowledged before the command began is in the backup, with topics, groups, consumer offsets, filters,
    and accounts if they are below the store's directory. Back up onto another disk: on the same one, btrfs and XFS
    share the blocks, which takes no time and no space, but protects from mistakes only, not from a broken disk.

    \b
    Exit code: 0 done; 1 failed, or done but the store has damaged records; 2 a wrong option.
    """
    from cometmq.base.clock import SystemClock
    from cometmq.store.backup.create import create as take
    from cometmq.store.backup.source import Source

    with exit_codes(PROGRAM):
        config = store_config(config_file, store)
        backups = _backups(directory)
        work = LongWork(is_quiet=is_quiet)
        with closing(Source(config.root, config.log_path, backups.files)) as source:
            Path(directory).mkdir(PRIVATE, parents=True, exist_ok=True)
            try:
                manifest = take(
                    source,
                    backups,
                    SystemClock(),
                    pause=lambda: time.sleep(PAUSE_SECONDS),
                    tell=work.tell,
                )
            finally:
                work.end()
    click.echo(
        f"{manifest.name}  {size_text(manifest.log_end - manifest.log_start)} of log, "
        f"{size_text(manifest.copied_bytes)} of it new, {len(manifest.tables)} tables"
    )
    for place in manifest.damaged:
        click.echo(f"damaged record in the store at offset {place} of its log", err=True)
    if manifest.damaged:
        click.echo(
            "the backup is complete but for these; a replica may have them",
            err=True,
        )
        raise SystemExit(FAILED)


@backup.command("list")
@click.argument("directory")
@click.option("--json", "is_json", is_flag=True, help="Write a JSON array.")
def list_backups(directory: str, is_json: bool) -> None:
    """List the backups of DIRECTORY, oldest first.

    \b
    Exit code: 0 listed; 1 failed; 2 no such directory.
    """
    with exit_codes(PROGRAM):
        backups = _backups(directory)
        backups.check_exists()
        known = backups.all()
    if is_json:
        click.echo(json.dumps([_row(one) for one in known], indent=2))
        return
    click.echo(f"{'NAME':22} {'LAST MESSAGE':25} {'LOG':>10} {'NEW':>10}  DAMAGED")
    for one in known:
        row = _row(one)
        log, new = size_text(one.log_end - one.log_start), size_text(one.copied_bytes)
        click.echo(
            f"{one.name:22} {row['last_message'] or '-':25} {log:>10} {new:>10}  {len(one.damaged)}"
        )


@backup.command(short_help="Read every byte of a backup and compare checksums.")
@click.argument("directory")
@click.argument("name", required=False)
@quiet_option
def verify(directory: str, name: str | None, is_quiet: bool) -> None:
    """Read every byte of a backup, the newest of DIRECTORY by default, and compare checksums.

    \b
    Exit code: 0 whole; 1 damaged, and where; 2 no such backup.
    """
    from cometmq.store.backup.verify import verify as check

    with exit_codes(PROGRAM):
        backups = _backups(directory)
        manifest = backups.find(name)
        work = LongWork(is_quiet=is_quiet)
        try:
            verdict = check(backups, manifest, work.tell)
        finally:
            work.end()
    for fault in verdict.faults:
        click.echo(fault, err=True)
    if verdict.faults:
        raise SystemExit(FAILED)
    click.echo(
        f"{manifest.name} is whole: {verdict.records:,} records, {len(manifest.tables)} tables"
    )


@backup.command(short_help="Make a store of a backup.")
@click.argument("directory")
@click.argument("name", required=False)
@store_options
@click.option(
    "--to-time",
    metavar="TIME",
    help="Leave out what was stored later: 2026-11-18T14:30:00+01:00, local time without a zone, or milliseconds since "
    "1970. Chooses the backup by itself.",
)
@click.option(
    "--accept-damage",
    is_flag=True,
    help="Restore what is left of a damaged backup. Messages that are not sound are never delivered.",
)
@quiet_option
def restore(
    directory: str,
    name: str | None,
    config_file: str | None,
    store: str | None,
    to_time: str | None,
    accept_damage: bool,
    is_quiet: bool,
) -> None:
    """Make a store of a backup, the newest of DIRECTORY by default, where there is none yet.

    Give the broker.conf of the broker that will use it. Queues and index are made from the log. Groups continue where
    they were at the backup, or with --to-time at the backup before that time; none is ahead of its queue.
    If it is killed, the broker refuses to start on what there is, and the same command begins anew.

    \b
    Exit code: 0 done; 1 failed; 2 a wrong option, or there is a store already.
    """
    from cometmq.base.clock import SystemClock
    from cometmq.store.backup.restore import restore as bring_back

    with exit_codes(PROGRAM):
        config = store_config(config_file, store)
        at_ms = None if to_time is None else time_ms(to_time)
        if name is not None and at_ms is not None:
            raise click.UsageError("give a NAME or --to-time: a time chooses the backup by itself")
        work = LongWork(is_quiet=is_quiet)
        try:
            restored = bring_back(
                _backups(directory),
                config,
                SystemClock(),
                name=name,
                at_ms=at_ms,
                accept_damage=accept_damage,
                tell=work.tell,
            )
        finally:
            work.end()
    click.echo(_told(restored, config.root, is_to_time=at_ms is not None))


@backup.command(short_help="Remove all but the newest backups.")
@click.argument("directory")
@click.option(
    "--keep",
    required=True,
    type=click.IntRange(min=1),
    help="How many of the newest backups stay.",
)
def prune(directory: str, keep: int) -> None:
    """Remove all but the newest backups of DIRECTORY, and the part of the log that only they needed.

    \b
    Exit code: 0 done; 1 failed; 2 no such directory.

    \b
    Example:
      cometmq backup prune /backups/broker-a --keep 7
    """
    with exit_codes(PROGRAM):
        backups = _backups(directory)
        backups.check_exists()
        with backups.locked():
            gone = backups.all()[:-keep]
            for manifest in gone:
                backups.remove(manifest.name)
                click.echo(f"removed {manifest.name}")
            backups.remove_unused_log()


def _backups(directory: str) -> Backups:
    try:
        from cometmq.base.disk import SystemFiles
    except ImportError as error:
        raise click.ClickException(str(error)) from None
    from cometmq.store.backup.backups import Backups

    return Backups(directory, SystemFiles())


def _row(manifest: Manifest) -> dict[str, object]:
    from cometmq.store.backup.manifest import time_text

    last_ms = manifest.last_stored_ms
    return {
        "name": manifest.name,
        "taken": time_text(manifest.taken_ms),
        "last_message": time_text(last_ms) if last_ms else "",
        "log_start": manifest.log_start,
        "log_end": manifest.log_end,
        "copied_bytes": manifest.copied_bytes,
        "tables": [table.name for table in manifest.tables],
        "damaged": manifest.damaged,
    }


def _told(restored: Restored, root: str, *, is_to_time: bool) -> str:
    from cometmq.store.backup.manifest import time_text

    log_of, tables_of = restored.chosen
    last = time_text(restored.last_stored_ms) if restored.last_stored_ms else "none"
    lines = [
        f"restored {root} from {log_of.name}",
        f"  last message    {last}, the log ends at offset {restored.log_end}",
        f"  topics          {restored.topics}",
        f"  positions       of {time_text(tables_of.taken_ms)}"
        + (
            f", {restored.set_back} set back to the end of their queue" if restored.set_back else ""
        ),
    ]
    if is_to_time and not restored.chosen.has_older_tables:
        lines.append(
            "  WARNING         no backup is older than that time: groups continue where they were later. Reset "
            "those that are to get messages again"
        )
    lines += [f"  DAMAGED         {fault}" for fault in restored.accepted]
    lines.append("  next            empty the stores of its slaves, then start the broker")
    return "\n".join(lines)
