"""Real servers, real faults, and what survives them.

    python -m tests.chaos.run                                   the ten-minute profile
    python -m tests.chaos.run --profile ci                      two minutes
    python -m tests.chaos.run --mode sync-flush --faults kill,power-loss --seconds 60
    python -m tests.chaos.run --mode async-flush --seed 7       the same faults again
    python -m tests.chaos.run --mode sync-master --faults disk-lost --count 10      until ten disks are lost
    python -m tests.chaos.run --server rocketmq-5.5.0 --server cometmq     side by side

``make chaos`` runs it with CHAOS_FLAGS. The exit code is 0 only if every count that is promised to be 0 is 0.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from tests.chaos.judge.outcome import Outcome
from tests.chaos.plan.faults import NEEDS_COMPILER, NEEDS_ETCD, NEEDS_ROOT, WHAT_HAPPENS, Fault
from tests.chaos.plan.modes import MODES, Mode
from tests.chaos.plan.profiles import (
    FAULT_SETS,
    PROFILES,
    WORKLOADS,
    Trial,
    faults_named,
    seconds_for,
    trials_of,
    without_etcd,
    workloads_named,
)
from tests.chaos.show import report, summary
from tests.chaos.trial import Run
from tests.chaos.world import etcd_host, namespaces
from tests.chaos.world.machine import compile_library, compiler, has_tmpfs
from tests.chaos.world.network import Network
from tests.chaos.world.proxies import Proxies
from tests.interop.systems import OURS, ROCKETMQ_4, ROCKETMQ_5, commands_of

ROOT: Final = Path(__file__).parents[2]
NAMESPACES, PROXIES = "namespaces", "proxies"
EXIT_BROKEN: Final = 1


def main() -> None:
    wish = _parser().parse_args()
    if wish.list:
        _list()
        return
    try:
        trials = _trials(wish)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    network = wish.network or (NAMESPACES if namespaces.is_possible() else PROXIES)
    impossible = _impossible()
    seed = wish.seed if wish.seed is not None else random.randrange(1_000_000)
    servers = wish.server or [OURS]
    command = command_again(sys.argv[1:], seed)
    print(f"seed {seed}, network by {network}: repeat it with\n  {command}", flush=True)
    for fault, why in impossible.items():
        print(f"left out here: {fault} ({why})", flush=True)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="chaos-") as scratch:
        library = compile_library(Path(scratch)) if compiler() else None
        for number, planned in enumerate(trials, 1):
            for server in servers:
                print(f"[{number}/{len(trials)}] {server}, {planned.name}", flush=True)
                trial = _possible(planned, server, network, impossible)
                if trial is None:
                    continue
                outcome = Outcome(
                    server, trial.mode.name, seed + number - 1, network, list(trial.faults), 0.0
                )
                outcomes.append(outcome)
                directory = Path(scratch) / f"{number}-{server}"
                directory.mkdir()
                asyncio.run(_run(trial, outcome, directory, library, wish))
                print("\n".join(summary.lines([outcome])), flush=True)
                shutil.rmtree(directory, ignore_errors=True)
                report.write(outcomes, Path(wish.report), command)
    print("\n".join(["", *summary.lines(outcomes), f"report: {wish.report}"]))
    if not all(outcome.is_good for outcome in outcomes if outcome.server == OURS):
        raise SystemExit(EXIT_BROKEN)


async def _run(
    trial: Trial, outcome: Outcome, directory: Path, library: Path | None, wish: argparse.Namespace
) -> None:
    commands = commands_of(outcome.server, directory / "home")
    # What clients complain about while their brokers are gone is no news.
    logging.basicConfig(filename=directory / "clients.log", level=logging.WARNING, force=True)
    network: Network = (
        namespaces.Namespaces(outcome.seed)
        if outcome.network == NAMESPACES
        else Proxies(outcome.seed)
    )
    run = Run(
        trial,
        outcome,
        commands=commands,
        network=network,
        directory=directory,
        library=library,
        rate=wish.rate,
        keep=Path(wish.keep) if wish.keep else None,
        tell=lambda line: print(line, flush=True),
    )
    await run.run()


def _trials(wish: argparse.Namespace) -> list[Trial]:
    """Raises ValueError for a name that there is not."""
    profile = PROFILES[wish.profile]
    workloads = workloads_named(wish.workloads) if wish.workloads else WORKLOADS
    if wish.mode is None and wish.faults is None:
        trials = trials_of(profile)
    else:
        chosen = faults_named(wish.faults) if wish.faults else None
        trials = []
        for name in wish.mode.split(",") if wish.mode else MODES:
            if name not in MODES:
                raise ValueError(f"no mode {name!r}; expected some of {', '.join(MODES)}")
            mode = MODES[name]
            faults = chosen or tuple(sorted(mode.survives))
            trials.append(Trial(mode, faults, workloads, 60.0, profile.pause_seconds))
    return [
        replace(
            trial,
            faults=tuple(fault for fault in trial.faults if trial.mode.fits(fault)),
            workloads=workloads,
            seconds=wish.seconds or (seconds_for(wish.count) if wish.count else trial.seconds),
            pause_seconds=wish.pause or trial.pause_seconds,
            count=wish.count or trial.count,
        )
        for trial in trials
    ]


def command_again(arguments: list[str], seed: int) -> str:
    """The command that inflicts the same faults, wherever its report goes."""
    elsewhere = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--seed", "--report", "--keep"):
        elsewhere.add_argument(option)
    _, rest = elsewhere.parse_known_args(arguments)
    return shlex.join(["python", "-m", "tests.chaos.run", *rest, "--seed", str(seed)])


def _impossible() -> dict[Fault, str]:
    """Faults that this machine cannot have, and why."""
    why: dict[Fault, str] = {}
    if compiler() is None:
        why |= dict.fromkeys(NEEDS_COMPILER, "no C compiler (cc)")
    if not has_tmpfs():
        why |= dict.fromkeys(NEEDS_ROOT, "mounting a small file system needs root")
    return why


def _possible(
    trial: Trial, server: str, network: str, impossible: Mapping[Fault, str]
) -> Trial | None:
    """What of a trial can be run here; says what is left out."""
    why = why_not(trial.mode, server, network)
    if why:
        print(f"left out here: {trial.mode.name} ({why})", flush=True)
        return None
    if trial.mode.etcd and server == OURS and not etcd_host.is_installed():
        print(f"left out here: {trial.mode.name} (etcd is not installed)", flush=True)
        trial = without_etcd(trial)
        print(f"instead: {trial.name}", flush=True)
    unfit = impossible.keys() | (set() if server == OURS else NEEDS_ETCD)
    return replace(trial, faults=tuple(fault for fault in trial.faults if fault not in unfit))


def why_not(mode: Mode, server: str, network: str) -> str:
    """Why a mode cannot run here; empty if it can."""
    if not mode.controllers:
        return ""
    if server == ROCKETMQ_4:
        return "it has no controllers"
    if network != NAMESPACES:
        return "hosts that call each other both ways need network namespaces, which need root"
    return ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--profile", choices=sorted(PROFILES), default="ten")
    parser.add_argument("--mode", help="one or more modes, separated by commas")
    parser.add_argument("--faults", help="faults or sets of them, separated by commas")
    parser.add_argument("--workloads", help="workloads, separated by commas")
    parser.add_argument(
        "--seconds", type=float, help="of each trial, without what starts and ends it"
    )
    parser.add_argument(
        "--count",
        type=int,
        help="of faults in each trial, which then ends; --seconds is the most that it takes",
    )
    parser.add_argument("--pause", type=float, help="seconds that a paused broker is away")
    parser.add_argument(
        "--rate", type=float, default=150.0, help="sends a second of all workloads together"
    )
    parser.add_argument("--seed", type=int)
    parser.add_argument("--network", choices=(NAMESPACES, PROXIES))
    parser.add_argument("--server", action="append", choices=(OURS, ROCKETMQ_4, ROCKETMQ_5))
    parser.add_argument("--report", default=str(ROOT / "build" / "chaos.html"))
    parser.add_argument("--keep", help="a directory for the files of trials that broke a promise")
    parser.add_argument("--list", action="store_true", help="show modes, faults and profiles")
    return parser


def _list() -> None:
    def show(title: str, rows: Iterable[tuple[str, str]]) -> None:
        print(title)
        for name, what in rows:
            print(f"  {name:<30}{what}")

    show("modes", ((mode.name, mode.what) for mode in MODES.values()))
    show("faults", WHAT_HAPPENS.items())
    show("sets of faults", ((name, ", ".join(faults)) for name, faults in FAULT_SETS.items()))
    show("workloads", ((name, "") for name in WORKLOADS))
    show("profiles", ((name, profile.what) for name, profile in PROFILES.items()))


if __name__ == "__main__":
    main()
