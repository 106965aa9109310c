"""``cometmq service``: the units, judged by systemd's own tools where they are, and what the commands do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cometmq.base.errors import ConfigError
from cometmq.cli.main import main
from cometmq.cli.service import systemd
from cometmq.cli.service.systemd import SystemdFailed, read_state
from cometmq.cli.service.unit import HEADER, Kind, Service, unit_text, writable_directories

EXPOSURE_MAX = 2.0
"""Of systemd's own mark for what a service could do to its machine: 10 without any hardening."""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["service", *arguments])


def a_service(kind: Kind = Kind.BROKER, **fields: object) -> Service:
    values: dict[str, object] = {
        "kind": kind,
        "name": f"cometmq-{kind.value}",
        "program": "/opt/cometmq/bin/mqbroker",
        "config_file": "/etc/cometmq/broker.conf",
        "user": "cometmq",
        "data": "/var/lib/cometmq",
        **fields,
    }
    return Service(**values)  # type: ignore[arg-type]


def settings(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def analyze(*arguments: str) -> str:
    """Raises AssertionError with what systemd-analyze says against it."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here: install systemd to have units checked")
    done = subprocess.run(
        ["systemd-analyze", *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr or done.stdout
    return done.stdout


@pytest.fixture
def conf(tmp_path: Path) -> str:
    path = tmp_path / "etc" / "broker.conf"
    path.parent.mkdir()
    path.write_text(f"storePathRootDir={tmp_path}/data/store\n")
    return str(path)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("directory", ["var", "my data, 100 %"])
def test_systemd_accepts_the_units(kind: Kind, directory: str, tmp_path: Path) -> None:
    data = tmp_path / directory
    data.mkdir()
    unit = tmp_path / f"cometmq-{kind.value}.service"
    told = run(
        *("install", kind.value, "-c", str(tmp_path / "none.conf"), "--dry-run"),
        *("--data", str(data)),
    )
    assert told.exit_code == 2, "the configuration is read"
    (tmp_path / "none.conf").touch()
    told = run(
        *("install", kind.value, "-c", str(tmp_path / "none.conf"), "--dry-run"),
        *("--data", str(data)),
    )
    assert told.exit_code == 0, told.output
    unit.write_text(told.stdout)
    analyze("verify", str(unit))


def test_the_broker_can_do_little_to_its_machine(tmp_path: Path) -> None:
    unit = tmp_path / "cometmq-broker.service"
    unit.write_text(unit_text(a_service(program=shutil.which("true") or "/bin/true")))
    report = analyze("security", "--offline=true", "--no-pager", str(unit))
    found = re.search(r"Overall exposure level for .*: ([\d.]+)", report)
    assert found is not None, report
    assert float(found[1]) < EXPOSURE_MAX, report


def test_what_a_unit_says() -> None:
    text = unit_text(a_service(writable=("/etc/cometmq", "/mnt/my logs")))
    assert text.startswith(HEADER)
    said = settings(text)
    assert said["ExecStart"] == "/opt/cometmq/bin/mqbroker -c /etc/cometmq/broker.conf"
    assert said["ReadWritePaths"] == "/var/lib/cometmq /etc/cometmq /mnt/my\\x20logs"
    assert (said["Type"], said["WatchdogSec"]) == ("notify", "60")
    assert (said["NoNewPrivileges"], said["ProtectSystem"]) == ("yes", "strict")
    assert (said["LimitNOFILE"], said["LimitMEMLOCK"]) == ("1048576", "infinity")
    assert said["ProtectHome"] == "yes"
    home = settings(unit_text(a_service(program="/home/ada/venv/bin/mqbroker")))
    assert home["ProtectHome"] == "read-only"


def test_where_a_server_writes() -> None:
    values = {
        "storePathRootDir": "/data/a",
        "storePathCommitLog": "/data/a/log",
        "auditLogPath": "/var/log/cometmq/audit.log",
        "accountKeyPath": "/var/lib/cometmq/accounts.key",
        "kvConfigPath": "",
    }
    found = writable_directories(Kind.BROKER, values, "/etc/cometmq/b.conf", "/var/lib/cometmq")
    assert found == ("/data/a", "/etc/cometmq", "/var/log/cometmq")
    with pytest.raises(ConfigError, match=r"storePathRootDir=\./store: expected an absolute path"):
        writable_directories(Kind.BROKER, {"storePathRootDir": "./store"}, "/etc/b.conf", "/var")


def test_a_dry_run_changes_nothing(conf: str, tmp_path: Path) -> None:
    told = run(
        *(
            "install",
            "broker",
            "-c",
            conf,
            "--dry-run",
            "--unit-directory",
            str(tmp_path / "units"),
        ),
        *("--name", "broker-a"),
    )
    assert told.exit_code == 0
    assert f"would write     {tmp_path}/units/broker-a.service" in told.stderr
    assert "useradd --system" in told.stderr
    assert not (tmp_path / "units").exists()
    assert not (tmp_path / "data").exists()


def test_a_unit_runs_what_a_link_leads_to(conf: str, tmp_path: Path) -> None:
    link = tmp_path / "current"
    link.symlink_to(Path(sys.executable).parent.parent)
    told = subprocess.run(
        [str(link / "bin" / "cometmq"), "service", "install", "broker", "-c", conf, "--dry-run"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"ExecStart={link}/bin/mqbroker -c {conf}\n" in told.stdout


class FakeSystemctl:
    """Remembers what it was asked; answers for units that are active."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.active = "active"

    def __call__(self, *arguments: str) -> str:
        self.calls.append(arguments)
        if arguments[0] == "show":
            return f"ActiveState={self.active}\nSubState=running\nMainPID=17\nNRestarts=2\n"
        return ""


@pytest.fixture
def systemctl(monkeypatch: pytest.MonkeyPatch) -> FakeSystemctl:
    fake = FakeSystemctl()
    monkeypatch.setattr(systemd, "systemctl", fake)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda path, user, group: None)
    return fake


def test_install_status_uninstall(conf: str, tmp_path: Path, systemctl: FakeSystemctl) -> None:
    units = tmp_path / "units"
    units.mkdir()
    (units / "other.service").write_text("[Service]\n")
    where = ("--unit-directory", str(units))
    options = ("-c", conf, "--user", "root", "--data", str(tmp_path / "home"), *where)
    installed = run("install", "broker", *options)
    assert installed.exit_code == 0, installed.output
    assert f"written  {units}/cometmq-broker.service" in installed.stdout
    assert "systemctl enable --now cometmq-broker" in installed.stdout
    assert (tmp_path / "data" / "store").is_dir()
    assert systemctl.calls == [("daemon-reload",)]
    assert "restart cometmq-broker" in run("install", "broker", *options).stdout

    shown = run("status", *where)
    assert shown.exit_code == 0
    assert "cometmq-broker           active (running)             17        2" in shown.stdout
    systemctl.active = "failed"
    assert run("status", *where).exit_code == 1

    refused = run("uninstall", "other", *where)
    assert refused.exit_code == 2
    assert "got other; there are: cometmq-broker" in refused.stderr
    kept = CliRunner().invoke(main, ["service", "uninstall", "cometmq-broker", *where], input="n\n")
    assert kept.exit_code == 1
    assert (units / "cometmq-broker.service").exists()
    gone = run("uninstall", "cometmq-broker.service", *where, "--yes")
    assert gone.exit_code == 0
    assert ("disable", "--now", "cometmq-broker.service") in systemctl.calls
    assert not (units / "cometmq-broker.service").exists()
    assert (tmp_path / "data" / "store").is_dir()
    assert run("status", *where).exit_code == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--user", "nobody-of-that-name"), "there is no user nobody-of-that-name: create it"),
        (("--name", "../evil"), "--name '../evil': expected letters"),
        (("--data", "here"), "--data here: expected an absolute path"),
    ],
)
def test_mistakes(
    options: tuple[str, ...], told: str, conf: str, tmp_path: Path, systemctl: FakeSystemctl
) -> None:
    where = ("--unit-directory", str(tmp_path))
    result = run("install", "broker", "-c", conf, *options, *where)
    assert result.exit_code == 2
    assert told in result.stderr
    assert not list(tmp_path.glob("*.service"))


def test_a_unit_of_somebody_else_stays(conf: str, tmp_path: Path, systemctl: FakeSystemctl) -> None:
    (tmp_path / "cometmq-broker.service").write_text("[Service]\n")
    options = ("--user", "root", "--data", str(tmp_path / "d"), "--unit-directory", str(tmp_path))
    result = run("install", "broker", "-c", conf, *options)
    assert result.exit_code == 2
    assert "was not written by `cometmq service install`" in result.stderr


def test_installing_needs_root(conf: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root" in run("install", "broker", "-c", conf).stderr


def test_no_systemctl_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SystemdFailed, match="systemctl daemon-reload"):
        systemd.systemctl("daemon-reload")


def test_a_unit_that_systemd_does_not_know() -> None:
    state = read_state("x", "ActiveState=inactive\nSubState=dead\nMainPID=0\nNRestarts=[not set]\n")
    assert not state.is_active
