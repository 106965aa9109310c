"""The whole attack: mutated frames at both servers, half frames, floods and slow writers, a healthy client beside them.

python -m tests.hostile.run [--frames 2000000] [--seed N]

``make fuzz`` runs it. Prints the seed first and what was seen at the end; exit code 1 when a bound is broken.
A failed run is repeated with its seed; a part of it with ``tests.hostile.attack``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.hostile.healthy import Healthy
from tests.hostile.servers import Server, servers

ROOT: Final = Path(__file__).parents[2]
MEMORY_BYTES_MAX: Final = 60 << 20
"""More than at the start, after all peers have gone."""
PEAK_BYTES_MAX: Final = 512 << 20
"""More than at the start, at any time: twice what may wait to be complete."""
LOOK_SECONDS: Final = 0.1
LOG_BYTES_MAX: Final = 1 << 20
P99_MILLIS_MAX: Final = 50.0
SETTLE_SECONDS: Final = 30.0


@dataclass
class Report:
    frames: int = 0
    faults: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)


def attack(seed: int, frames: int, directory: Path, *, scale: int, judges_time: bool) -> Report:
    """Args: scale: how big the crowds of half frames, floods and slow writers are."""
    with servers(directory) as (name_server, broker):
        return asyncio.run(_attack(seed, frames, name_server, broker, scale, judges_time))


async def _attack(
    seed: int, frames: int, name_server: Server, broker: Server, scale: int, judges_time: bool
) -> Report:
    report = Report()
    healthy = Healthy(name_server.port, broker.port)
    await healthy.start()
    targets = (name_server, broker)
    memory_before = {target.name: target.memory_bytes for target in targets}
    peers_before = {target.name: target.peer_count for target in targets}
    peaks = dict(memory_before)
    at_work = asyncio.create_task(healthy.run())
    looking = asyncio.create_task(_look(targets, peaks))
    started = asyncio.get_running_loop().time()
    try:
        sent = await asyncio.gather(
            *(
                _mutated_frames(target, seed + number, frames // 2)
                for number, target in enumerate(targets)
            )
        )
        report.frames = sum(sent)
        seconds = asyncio.get_running_loop().time() - started
        report.figures["frames a second"] = report.frames / seconds
        report.figures["p99_ms under mutated frames"] = healthy.p99_millis
        await _process("tests.hostile.crowds", *map(str, (name_server.port, broker.port, scale)))
    except BaseException:
        at_work.cancel()
        raise
    finally:
        looking.cancel()
        healthy.stop()
        try:
            await asyncio.wait({at_work})
            if not at_work.cancelled() and (error := at_work.exception()) is not None:
                report.faults.append(str(error))
        finally:
            await healthy.close()
    report.figures["healthy requests"] = len(healthy.millis)
    report.figures["healthy requests refused"] = healthy.refused_count
    report.figures["p99_ms"] = healthy.p99_millis
    report.figures["max_ms"] = max(healthy.millis)
    if judges_time and healthy.p99_millis > P99_MILLIS_MAX:
        report.faults.append(f"p99 of the healthy client is {healthy.p99_millis:.1f} ms")
    for target in targets:
        name = target.name
        peak = peaks[name] - memory_before[name]
        report.figures[f"{name} memory more MB at most"] = peak / 2**20
        if peak > PEAK_BYTES_MAX:
            report.faults.append(f"{name} took {peak >> 20} MB more for a while")
        await _judge(target, report, memory_before[name], peers_before[name])
    return report


async def _look(targets: tuple[Server, ...], peaks: dict[str, int]) -> None:
    while True:
        for target in targets:
            if target.is_alive:
                peaks[target.name] = max(peaks[target.name], target.memory_bytes)
        await asyncio.sleep(LOOK_SECONDS)


async def _mutated_frames(target: Server, seed: int, frames: int) -> int:
    wish = ("--port", str(target.port), "--seed", str(seed), "--frames", str(frames))
    return int(json.loads(await _process("tests.hostile.attack", *wish))["sent"])


async def _process(module: str, *arguments: str) -> bytes:
    """Attackers have processes of their own, or the healthy client would wait for its own process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    if process.returncode:
        raise AssertionError(f"{module}: {errors.decode()[-3000:]}")
    return out


async def _judge(target: Server, report: Report, memory_before: int, peers_before: int) -> None:
    name = target.name
    if not target.is_alive:
        report.faults.append(f"{name} has crashed: {target.log_text[-3000:]}")
        return
    deadline = asyncio.get_running_loop().time() + SETTLE_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        grown = target.memory_bytes - memory_before
        if target.peer_count <= peers_before and grown <= MEMORY_BYTES_MAX:
            break
        await asyncio.sleep(0.2)
    report.figures[f"{name} memory before MB"] = memory_before / 2**20
    report.figures[f"{name} memory more MB"] = grown / 2**20
    report.figures[f"{name} log KB"] = target.log_bytes / 1024
    if grown > MEMORY_BYTES_MAX:
        report.faults.append(f"{name} has {grown >> 20} MB more than before")
    if target.peer_count > peers_before:
        report.faults.append(f"{name} still has {target.peer_count} peers, {peers_before} before")
    if target.log_bytes > LOG_BYTES_MAX:
        report.faults.append(f"{name} wrote {target.log_bytes} bytes of log")
    text = target.log_text
    if "Traceback" in text:
        at = text.index("Traceback")
        report.faults.append(f"{name} logged a traceback: {text[max(0, at - 300) : at + 3000]}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    wish = parser.parse_args()
    print(f"seed {wish.seed}, {wish.frames} frames", flush=True)
    with tempfile.TemporaryDirectory(prefix="hostile-") as directory:
        report = attack(wish.seed, wish.frames, Path(directory), scale=30, judges_time=True)
    print(f"{report.frames} frames sent")
    for name, figure in report.figures.items():
        print(f"  {name:<36}{figure:10.1f}")
    for fault in report.faults:
        print(f"FAULT: {fault}")
    if report.faults:
        raise SystemExit(f"seed {wish.seed}: {len(report.faults)} faults")


if __name__ == "__main__":
    main()
