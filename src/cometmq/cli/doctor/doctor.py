"""``cometmq doctor``: options, and what is printed."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from typing import TYPE_CHECKING

import click

from cometmq.cli.client_command import (
    FAILED,
    client_config,
    connection_options,
    exit_codes,
)

if TYPE_CHECKING:
    from cometmq.cli.doctor.finding import Finding


@click.command(short_help="Check a running cluster for what is open, expired or does not fit.")
@connection_options
@click.option(
    "--host",
    "store",
    metavar="DIR",
    help="Look at this machine instead, for a broker with its store in DIR.",
)
@click.option("--json", "is_json", is_flag=True, help="Write one JSON object.")
def doctor(
    *, name_servers: str | None, config_file: str | None, store: str | None, is_json: bool
) -> None:
    """Check a running cluster: open access, expired certificates, wrong addresses, settings that do not fit together.

    It asks the name servers for the brokers, and each server, controllers included, for its settings: once with the
    account and TLS of -c, and once without. It changes nothing, and says what to do about each finding.

    Run it where clients run, because it tries the addresses that clients are told. The account of a super user sees
    most. What could not be checked is listed.

    With --host no server is asked, but the machine is looked at: file system, disk, memory, limits, clock.

    \b
    Exit code: 0 nothing to do; 1 something to do, or something could not be checked; 2 a wrong option.

    \b
    Examples:
      cometmq doctor
      cometmq doctor -c ./secure/tools.conf --json
      cometmq doctor --host /var/lib/cometmq/store
    """
    if store is not None:
        _doctor_of_host(store, is_json=is_json)
        return
    with exit_codes("cometmq doctor"):
        from cometmq.cli.doctor.diagnosis import diagnose, is_healthy
        from cometmq.cli.doctor.gather import gather

        config = client_config(name_servers, config_file)
        facts = asyncio.run(gather(config, time.time_ns() // 1_000_000))
        findings = diagnose(facts)
        healthy = is_healthy(findings)
        servers = [{"kind": one.kind, "address": one.address} for one in facts.servers]
        looked = ", ".join(server.title for server in facts.servers)
        click.echo(_json(findings, {"servers": servers}) if is_json else _text(findings, looked))
    if not healthy:
        raise SystemExit(FAILED)


def _doctor_of_host(store: str, *, is_json: bool) -> None:
    with exit_codes("cometmq doctor"):
        from cometmq.cli.doctor.diagnosis import diagnose_host, is_healthy
        from cometmq.cli.doctor.host.host_gather import gather_host

        disk = (facts := gather_host(store)).disk
        findings = diagnose_host(facts)
        looked = f"this machine, {disk.file_system} on {disk.mount_point}"
        click.echo(_json(findings, {"store": store}) if is_json else _text(findings, looked))
    if not is_healthy(findings):
        raise SystemExit(FAILED)


def _text(findings: list[Finding], looked: str) -> str:
    lines = []
    for finding in findings:
        lines += [
            f"{finding.level.upper():8} {finding.subject}: {finding.text}",
            f"         {finding.remedy}",
        ]
    lines.append(f"looked at {looked}")
    to_do = sum(finding.level != "note" for finding in findings)
    lines.append("nothing to do" if to_do == 0 else f"to do: {to_do}")
    return "\n".join(map(_printable, lines))


def _printable(line: str) -> str:
    """Names and addresses are chosen by others: nothing of them may drive the terminal."""
    return line if line.isprintable() else line.encode("unicode_escape").decode()


def _json(findings: list[Finding], looked: dict[str, object]) -> str:
    """Settings stay here: they are long, and names of paths and hosts are nobody else's business."""
    from cometmq.cli.doctor.diagnosis import is_healthy

    document = {
        "healthy": is_healthy(findings),
        "findings": [dataclasses.asdict(finding) for finding in findings],
        **looked,
    }
    return json.dumps(document, indent=2)
