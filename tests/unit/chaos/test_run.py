"""The command: which trials it runs, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.chaos import run
from tests.chaos.judge.outcome import Outcome
from tests.chaos.plan.faults import Fault
from tests.chaos.plan.modes import MODES
from tests.chaos.plan.profiles import Trial, seconds_for
from tests.chaos.world import etcd_host


class Command:
    """Runs it with trials that only set what is lost."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, report: Path) -> None:
        self.lost = 0
        self.trials: list[Trial] = []
        self._monkeypatch = monkeypatch
        self._report = report
        monkeypatch.setattr(run, "_run", self._run)
        monkeypatch.setattr(run, "_impossible", dict)
        monkeypatch.setattr(run, "compiler", lambda: None)

    async def _run(self, trial: Trial, outcome: Outcome, *_: Any) -> None:
        self.trials.append(trial)
        outcome.counts, outcome.promised = {"lost": self.lost}, ["lost"]

    def __call__(self, *arguments: str) -> None:
        argv = ["run", *arguments, "--network", "proxies", "--report", str(self._report)]
        self._monkeypatch.setattr("sys.argv", argv)
        run.main()


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return tmp_path / "chaos.html"


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, report: Path) -> Command:
    return Command(monkeypatch, report)


def test_a_broken_promise_is_a_failed_run(command: Command) -> None:
    command("--profile", "ci", "--seed", "1")
    command.lost = 1
    with pytest.raises(SystemExit) as raised:
        command("--profile", "ci", "--seed", "1")
    assert raised.value.code == 1


@pytest.mark.parametrize(
    ("mode", "server", "network", "why"),
    [
        ("sync-master", "rocketmq-4.9.7", "proxies", ""),
        ("controller", "cometmq", "namespaces", ""),
        ("controller", "cometmq", "proxies", "need root"),
        ("controller", "rocketmq-4.9.7", "namespaces", "no controllers"),
        ("controllers-etcd", "rocketmq-5.5.0", "namespaces", ""),
    ],
)
def test_a_mode_that_cannot_run_here_is_left_out_and_says_why(
    mode: str, server: str, network: str, why: str
) -> None:
    told = run.why_not(MODES[mode], server, network)
    assert why in told
    assert bool(told) is bool(why)


def test_without_etcd_one_controller_has_its_file(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "why_not", lambda *_: "")
    monkeypatch.setattr(etcd_host, "is_installed", lambda: False)
    command("--mode", "controllers-etcd", "--faults", "master-kill,etcd-kill")
    [trial] = command.trials
    assert (trial.mode.name, trial.faults) == ("controller", (Fault.MASTER_KILL,))
    assert "controllers-etcd (etcd is not installed)" in capsys.readouterr().out


def test_a_number_of_faults_bounds_every_trial(command: Command) -> None:
    command("--mode", "sync-flush", "--faults", "kill", "--count", "7")
    command("--mode", "sync-flush", "--faults", "kill", "--count", "7", "--seconds", "9")
    command("--profile", "modes", "--count", "7")
    assert {trial.count for trial in command.trials} == {7}
    assert [trial.seconds for trial in command.trials[:3]] == [seconds_for(7), 9, seconds_for(7)]


def test_the_report_has_the_command_that_repeats_it(command: Command, report: Path) -> None:
    command("--mode", "sync-flush", "--faults", "kill", "--seed", "8")
    document = json.loads(report.with_suffix(".json").read_text())
    assert document["command"] == (
        "python -m tests.chaos.run --mode sync-flush --faults kill --network proxies --seed 8"
    )
