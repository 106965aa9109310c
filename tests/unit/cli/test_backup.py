"""``cometmq backup``: what it prints, and how it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.unit.store.conftest import StoreLab

from cometmq.cli.backup.long_work import line
from cometmq.cli.backup.options import time_ms
from cometmq.cli.main import main
from cometmq.store.log.new_messages import NewMessage


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["backup", *arguments])


@pytest.fixture
def conf(tmp_path: Path) -> Iterator[str]:
    """The broker.conf of a store with messages."""
    lab = StoreLab(tmp_path / "store")
    store = lab.open()
    for number in range(30):
        body = b"%d" % number + b"x" * 300
        store.put(NewMessage(topic="T", queue_id=0, body=body, properties=b""))
    path = tmp_path / "broker.conf"
    path.write_text(
        f"storePathRootDir={lab.root}\nmappedFileSizeCommitLog=4096\nmappedFileSizeConsumeQueue=200\n"
        "maxHashSlotNum=50\nmaxIndexNum=100\n"
    )
    yield str(path)
    lab.close()


def test_create_list_verify_restore_prune(conf: str, tmp_path: Path) -> None:
    backups = str(tmp_path / "backups")
    first, second = run("create", backups, "-c", conf), run("create", backups, "-c", conf)
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert "12.1 kB of log, 12.1 kB of it new, 0 tables" in first.stdout
    assert "12.1 kB of log, 0 B of it new" in second.stdout
    assert (tmp_path / "backups").stat().st_mode & 0o077 == 0
    listed = run("list", backups)
    assert len(listed.stdout.splitlines()) == 3
    names = [one["name"] for one in json.loads(run("list", backups, "--json").stdout)]
    assert run("verify", backups, names[0]).stdout == f"{names[0]} is whole: 30 records, 0 tables\n"
    restored = run("restore", backups, "-c", conf, "--store", str(tmp_path / "again"))
    assert restored.exit_code == 0
    assert f"restored {tmp_path}/again from {names[1]}" in restored.stdout
    assert run("prune", backups, "--keep", "1").stdout == f"removed {names[0]}\n"
    assert run("verify", backups).exit_code == 0


def test_damage_is_told_with_its_place(conf: str, tmp_path: Path) -> None:
    backups = str(tmp_path / "backups")
    run("create", backups, "-c", conf)
    log = tmp_path / "backups" / "log" / f"{4096:020d}"
    log.write_bytes(log.read_bytes().replace(b"x", b"y", 1))
    verified = run("verify", backups)
    assert verified.exit_code == 1
    assert f"{log}: damaged between bytes 0 and 4096 (offsets 4096 to 8192)" in verified.stderr
    restored = run("restore", backups, "-c", conf, "--store", str(tmp_path / "again"))
    assert restored.exit_code == 1
    assert "--accept-damage" in restored.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("create", "{backups}"), "expected -c broker.conf or --store DIR, got neither"),
        (("create", "{backups}", "--store", "/nowhere"), "expected the directory of a store"),
        (("list", "{backups}"), "expected a directory of backups, but there is no"),
        (("verify", "{backups}"), "expected a directory of backups, but there is no"),
        (
            ("restore", "{backups}", "-c", "{conf}", "--to-time", "tomorrow"),
            "expected a time such as 2026-11-18T14:30:00+01:00",
        ),
        (
            ("restore", "{backups}", "NAME", "-c", "{conf}", "--to-time", "1"),
            "give a NAME or --to-time",
        ),
    ],
)
def test_mistakes(arguments: tuple[str, ...], told: str, conf: str, tmp_path: Path) -> None:
    backups = str(tmp_path / "backups")
    result = run(*(one.format(backups=backups, conf=conf) for one in arguments))
    assert result.exit_code in (1, 2)
    assert told in result.stderr


def test_times() -> None:
    assert time_ms("1700000000123") == 1_700_000_000_123
    assert time_ms("2023-11-14T22:13:20.123Z") == 1_700_000_000_123
    assert time_ms("2023-11-14T23:13:20.123+01:00") == 1_700_000_000_123


def test_progress_in_a_line() -> None:
    assert line("copied", 1_234_000_000, 4_000_000_000) == "copied  30 %  1.2 GB of 4.0 GB"
    assert line("rebuilding queues and index", 0, 0) == "rebuilding queues and index"
