"""The whole attack, one part after the other:

1. Every decoder gets inputs that are nearly right, in processes of their own (``in_process``).
2. Our clients work with a server that answers wrongly (``hostile_server``).
3. Both servers get mutated frames over sockets (``attack``), then half frames, floods and slow writers (``crowds``),
   with a healthy client beside them (``healthy``).

python -m tests.hostile.run [--frames 2000000] [--seed N]     # so many inputs; every fifth is a frame over a socket
python -m tests.hostile.run --seconds 55                       # as much as there is time for

``make fuzz`` runs it. Prints the seed first and what was seen at the end; exit code 1 when a bound is broken.
A failed run is repeated with its seed; a part of it with the modules named above.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.hostile.healthy import Healthy
from tests.hostile.servers import Server, servers

ROOT: Final = Path(__file__).parents[2]
MEMORY_BYTES_MAX: Final = 50 << 20
"""More than at the start, after all peers have gone."""
PEAK_BYTES_MAX: Final = 512 << 20
"""More than at the start, at any time: twice what may wait to be complete."""
LOOK_SECONDS: Final = 0.1
QUIET_SECONDS: Final = 2.0
"""How long the healthy client is alone at first."""
SOCKET_SHARE: Final = 0.2
FIXED_SECONDS: Final = 20.0
DECODER_PROCESSES: Final = 2
CLIENT_SECONDS: Final = 20.0
LOG_BYTES_MAX: Final = 1 << 20
P99_TIMES_MAX: Final = 10.0
"""What attackers may do to a healthy client: so many times what it has when it is alone."""
SETTLE_SECONDS: Final = 30.0


@dataclass
class Report:
    frames: int = 0
    faults: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)


def attack(
    seed: int,
    frames: int,
    directory: Path,
    *,
    scale: int,
    judges_time: bool,
    seconds: float = math.inf,
    broker_module: str = "cometmq.broker",
) -> Report:
    """
    Args:
        scale: how big the crowds of half frames, floods and slow writers are.
        seconds: send mutated frames for so long at most.
    """
    with servers(directory, broker_module) as (name_server, broker):
        return asyncio.run(_attack(seed, frames, seconds, name_server, broker, scale, judges_time))


async def _attack(
    seed: int,
    frames: int,
    seconds: float,
    name_server: Server,
    broker: Server,
    scale: int,
    judges_time: bool,
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
    try:
        await asyncio.wait({at_work}, timeout=QUIET_SECONDS)
        quiet = report.figures["p99_ms alone"] = healthy.p99_millis
        healthy.millis.clear()
        started = asyncio.get_running_loop().time()
        sent = await asyncio.gather(
            *(
                _mutated_frames(target, seed + number, frames // 2, seconds)
                for number, target in enumerate(targets)
            )
        )
        report.frames = sum(sent)
        took = asyncio.get_running_loop().time() - started
        report.figures["frames a second"] = report.frames / took
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
    if judges_time and healthy.p99_millis > P99_TIMES_MAX * quiet:
        report.faults.append(
            f"p99 of the healthy client is {healthy.p99_millis:.1f} ms, {quiet:.1f} ms when it was alone"
        )
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


async def _mutated_frames(target: Server, seed: int, frames: int, seconds: float) -> int:
    target_flags = ("--port", str(target.port), "--seed", str(seed))
    amount = ("--frames", str(frames), "--seconds", str(seconds))
    sent = await _process("tests.hostile.attack", *target_flags, *amount)
    return int(json.loads(sent)["sent"])


async def _process(module: str, *arguments: str, may_fail: bool = False) -> bytes:
    """Attackers have processes of their own, or the healthy client would wait for its own process."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    if process.returncode and not (may_fail and out):
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


async def decoders(seed: int, *, inputs: int | None, seconds: float | None) -> Report:
    """The inputs in this many processes at a time; each has a seed of its own."""
    wish = ("--inputs", str((inputs or 0) // DECODER_PROCESSES)) if inputs is not None else ()
    wish = (*wish, "--seconds", str(seconds)) if seconds is not None else wish
    started = time.monotonic()
    answers = await asyncio.gather(
        *(
            _process("tests.hostile.in_process", "--json", "--seed", str(seed + number), *wish)
            for number in range(DECODER_PROCESSES)
        )
    )
    report = Report()
    for found in map(json.loads, answers):
        report.frames += found["inputs"]
        report.faults += found["faults"]
        slowest = report.figures.get("slowest input, ms", 0.0)
        report.figures["slowest input, ms"] = max(slowest, found["slowest"] * 1000)
    report.figures["inputs a second"] = report.frames / (time.monotonic() - started)
    return report


async def clients(seed: int, seconds: float) -> Report:
    """Our clients with a server that answers wrongly."""
    wish = ("--seed", str(seed), "--seconds", str(seconds))
    found = json.loads(await _process("tests.hostile.hostile_server", *wish, may_fail=True))
    return Report(
        found["replies"], found["faults"], {"replies a second": found["replies"] / seconds}
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=2_000_000, help="inputs in all")
    parser.add_argument("--seconds", type=float, help="instead: for about so long, at least 40")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    wish = parser.parse_args()
    seed, seconds = wish.seed, wish.seconds
    print(f"seed {seed}, {wish.frames if seconds is None else f'{seconds:g} s'}", flush=True)
    over_sockets = wish.frames if seconds is not None else int(wish.frames * SOCKET_SHARE)
    inputs = None if seconds is not None else wish.frames - over_sockets
    # A third for the decoders; starting, crowds and waiting for memory to come back take some twenty seconds.
    part = None if seconds is None else (seconds - FIXED_SECONDS) / 3
    with tempfile.TemporaryDirectory(prefix="hostile-") as directory:
        reports = {
            "decoders": asyncio.run(decoders(seed, inputs=inputs, seconds=part)),
            "clients": asyncio.run(clients(seed, part or CLIENT_SECONDS)),
            "servers": attack(
                seed,
                over_sockets,
                Path(directory),
                scale=30 if part is None else 2,
                judges_time=part is None,
                seconds=part or math.inf,
            ),
        }
    for name, report in reports.items():
        print(f"{name}: {report.frames} inputs")
        for title, figure in report.figures.items():
            print(f"  {title:<36}{figure:10.1f}")
    faults = [f"{name}: {fault}" for name, report in reports.items() for fault in report.faults]
    for fault in faults:
        print(f"FAULT: {fault}")
    if faults:
        raise SystemExit(f"seed {seed}: {len(faults)} faults")


if __name__ == "__main__":
    main()
