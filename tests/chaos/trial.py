"""One trial: start a cluster, load it, hurt it, let everything that was acknowledged come out, judge."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.chaos.judge.checkers import PROBES, lost
from tests.chaos.judge.history import History
from tests.chaos.judge.log_compare import difference, end_of, reigns_in
from tests.chaos.judge.outcome import Outcome, conclude
from tests.chaos.load.audit import stored_ids
from tests.chaos.load.context import Context, Workload
from tests.chaos.load.offsets import OFFSETS, Offsets
from tests.chaos.load.pop import POP, Popped
from tests.chaos.load.probes import Probes
from tests.chaos.load.workloads import PUSHED
from tests.chaos.plan.faults import Fault
from tests.chaos.plan.profiles import Trial
from tests.chaos.plan.schedule import group_names, plan
from tests.chaos.world.cluster import CATCH_UP_SECONDS_MAX, Cluster
from tests.chaos.world.inflict import Inflictor
from tests.chaos.world.network import Network
from tests.chaos.world.processes import ServerFailed
from tests.chaos.world.watch import Watch
from tests.interop.servers import ServerCommands

DRAIN_SECONDS_MAX: Final = 90.0
QUIET_SECONDS: Final = 15.0
"""When nothing came for so long, what is missing will not come: retries, revivals and checks are sooner."""
END_SECONDS: Final = 3.0
"""The workloads go on for so long after the last of a number of faults."""
LOOK_SECONDS: Final = 0.5
TELL_SECONDS: Final = 5.0


class Run:
    """Args:
    keep: where to copy the files of a trial that breaks a promise.
    tell: shows a line of progress.
    """

    def __init__(
        self,
        trial: Trial,
        outcome: Outcome,
        *,
        commands: ServerCommands,
        network: Network,
        directory: Path,
        library: Path | None,
        rate: float,
        keep: Path | None,
        tell: Callable[[str], None],
    ) -> None:
        self._trial = trial
        # Where masters are elected it matters who takes messages when.
        probed = (PROBES,) if trial.mode.controllers else ()
        self._topics = [*trial.workloads, *probed]
        self._outcome = outcome
        self._history = History()
        self._began = 0.0
        self._rate = rate
        self._keep = keep
        self._directory = directory
        self._tell_line = tell
        self._cluster = Cluster(
            trial.mode,
            commands,
            network,
            directory,
            library=library,
            with_disks=Fault.FULL_DISK in trial.faults,
            note_role=self._note_role,
            watch=Watch(self._history, self._now, self._note_role),
        )
        self._inflictor = Inflictor(self._cluster, self._history, self._now, self._tell)

    async def run(self) -> None:
        """Fills the outcome. What goes wrong on the way is in there, too; nothing is left running."""
        outcome = self._outcome
        try:
            async with AsyncExitStack() as stack:
                stack.push_async_callback(self._cluster.stop)
                stack.push_async_callback(self._keep_what_broke)
                await self._cluster.start()
                await self._load_and_hurt()
                await self._compare_replicas()
                self._conclude()
        except (ServerFailed, TimeoutError, RuntimeError) as error:
            self._conclude()
            outcome.error = f"{type(error).__name__}: {error}"

    def _conclude(self) -> None:
        kinds = {each.kind for each in self._inflictor.inflicted}
        self._outcome.inflicted = [asdict(each) for each in self._inflictor.inflicted]
        conclude(self._outcome, self._history, self._trial.mode, kinds)

    async def _keep_what_broke(self) -> None:
        """Before the disks go."""
        is_good = self._outcome.is_good and self._outcome.counts
        if self._keep is not None and not is_good:
            target = self._keep / self._directory.name
            await asyncio.to_thread(
                shutil.copytree, self._directory, target, dirs_exist_ok=True, symlinks=True
            )

    async def _load_and_hurt(self) -> None:
        trial, cluster = self._trial, self._cluster
        for topic in self._topics:
            await cluster.create_topic(topic)
        for group in group_names(trial.mode):
            for slave in await cluster.behind(group):
                self._outcome.notes.append(
                    f"{slave} did not get the topics of its master before the run"
                )
        self._began = time.monotonic()
        planned = plan(
            self._outcome.seed,
            trial.seconds,
            trial.mode,
            trial.faults,
            pause_seconds=trial.pause_seconds,
            count=trial.count,
        )
        context = Context(
            name_servers=cluster.network.name_server,
            history=self._history,
            pause_seconds=len(trial.workloads) * 4 / self._rate,
            seed=self._outcome.seed,
            now=self._now,
            masters=lambda: {master.group: master.address for master in cluster.masters()},
            brokers=lambda: {
                group: [broker.address for broker in cluster.group(group)]
                for group in group_names(trial.mode)
            },
        )
        workloads = [make(name, context) for name in self._topics]
        async with AsyncExitStack() as stack:
            for workload in workloads:
                await workload.start()
                stack.push_async_callback(workload.close)
            telling = asyncio.create_task(self._tell_now_and_then())
            stack.callback(telling.cancel)
            await self._inflictor.run(planned, trial.seconds)
            if len(self._inflictor.inflicted) < trial.count:
                self._outcome.notes.append(
                    f"no more faults than {len(self._inflictor.inflicted)} in {trial.seconds:g} s"
                )
            end = self._now() + END_SECONDS if trial.count else trial.seconds
            await asyncio.sleep(max(0.0, end - self._now()))
            for workload in workloads:
                await workload.stop_sending()
            self._outcome.seconds = round(self._now(), 1)
            self._tell("all is well again; waiting for what is still under way")
            await self._drain()
            self._history.stored = await stored_ids(cluster.network.name_server, self._topics)

    async def _drain(self) -> None:
        history = self._history
        deadline = time.monotonic() + DRAIN_SECONDS_MAX
        count, changed = -1, time.monotonic()
        while time.monotonic() < deadline and lost(history):
            if len(history.deliveries) != count:
                count, changed = len(history.deliveries), time.monotonic()
            elif time.monotonic() - changed > QUIET_SECONDS:
                break
            await asyncio.sleep(LOOK_SECONDS)

    async def _compare_replicas(self) -> None:
        """Slaves get the time to catch up; then all are stopped, and the files are compared byte for byte."""
        cluster = self._cluster
        pairs = [
            (cluster.master(group), slave)
            for group in group_names(self._trial.mode)
            for slave in cluster.slaves(group)
        ]
        masters = cluster.masters()
        deadline = time.monotonic() + CATCH_UP_SECONDS_MAX

        def behind() -> list[str]:
            return [
                f"{slave.name} has {end_of(slave.store / 'commitlog')} of {master.name}'s "
                f"{end_of(master.store / 'commitlog')} bytes"
                for master, slave in pairs
                if end_of(slave.store / "commitlog") < end_of(master.store / "commitlog")
            ]

        while pairs and behind() and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_SECONDS)
        # Nobody is to be elected while the brokers stop one after the other.
        await cluster.controllers.kill()
        for broker in cluster.brokers.values():
            await broker.process.stop()
        if self._trial.mode.controllers:
            for master in masters:
                reigns = reigns_in(master.store / "epochFileCheckpoint")
                if not reigns:
                    # Nothing could be said of who acknowledged in which epoch.
                    raise RuntimeError(f"{master.name} has no epochs beside its log")
                self._history.reigns[master.group] = reigns
        self._history.diverged += [f"{each}, and does not catch up" for each in behind()]
        for master, slave in pairs:
            found = difference(master.store / "commitlog", slave.store / "commitlog")
            if found:
                self._history.diverged.append(found)

    def _now(self) -> float:
        return time.monotonic() - self._began if self._began else 0.0

    def _note_role(self, host: str, role: str) -> None:
        self._outcome.roles.append((round(self._now(), 2), host, role))

    async def _tell_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(TELL_SECONDS)
            self._tell("")

    def _tell(self, what: str) -> None:
        history = self._history
        self._tell_line(
            f"{self._now():6.1f} s  {len(history.sends):7} sent  {len(history.deliveries):7} delivered"
            f"  {what}"
        )


def make(name: str, context: Context) -> Workload:
    if name == POP:
        return Popped(context)
    if name == OFFSETS:
        return Offsets(context)
    if name == PROBES:
        return Probes(context)
    return PUSHED[name](context, name)
