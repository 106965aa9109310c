"""Gives every decoder inputs that are nearly right, in this process: some ten thousand a second.

python -m tests.hostile.in_process [--inputs 100000] [--seconds 10] [--seed N] [--target sql92] [--first K]

An input follows from the seed, the name of the decoder and its number. ``--target`` and ``--first`` with ``--inputs 1``
make one of them again; ``--show`` prints it.
"""

from __future__ import annotations

import argparse
import json
import random as numbers
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Final

from tests.hostile.decoders import Target, targets

FAULTS_MAX: Final = 10
SECONDS_MAX: Final = 2.0
"""No input of at most 64 KB may take the processor for longer."""


@dataclass
class Findings:
    inputs: int = 0
    refused: int = 0
    slowest: float = 0.0
    slowest_of: str = ""
    faults: list[str] = field(default_factory=list)
    by_target: dict[str, int] = field(default_factory=dict)


def input_of(target: Target, seed: int, number: int) -> bytes:
    return target.mutator.make(Random(f"{seed} {target.name} {number}"))


def fuzz(
    chosen: Sequence[Target],
    seed: int,
    *,
    inputs: int | None = None,
    seconds: float | None = None,
    first: int = 0,
) -> Findings:
    """So many inputs in all, or for so long; whichever ends first."""
    findings = Findings()
    deadline = None if seconds is None else time.monotonic() + seconds
    for target, number in _turns(chosen, first, inputs):
        _try(target, seed, number, findings)
        is_over = deadline is not None and time.monotonic() > deadline
        if is_over or len(findings.faults) >= FAULTS_MAX:
            break
    return findings


def _turns(
    chosen: Sequence[Target], first: int, inputs: int | None
) -> Iterator[tuple[Target, int]]:
    given = 0
    for round_number in count():
        for target in chosen:
            begun = first + round_number * target.turn
            for number in range(begun, begun + target.turn):
                if inputs is not None and given >= inputs:
                    return
                given += 1
                yield target, number


def _try(target: Target, seed: int, number: int, findings: Findings) -> None:
    data = input_of(target, seed, number)
    findings.inputs += 1
    findings.by_target[target.name] = findings.by_target.get(target.name, 0) + 1
    started = time.thread_time()
    try:
        target.read(data)
    except target.refuses:
        findings.refused += 1
    except Exception as error:  # noqa: BLE001 - what is looked for
        where = "".join(traceback.format_exception(error)[-3:])
        findings.faults.append(_fault(target, seed, number, f"{type(error).__name__}\n{where}"))
    took = time.thread_time() - started
    if took > findings.slowest:
        findings.slowest, findings.slowest_of = took, f"{target.name} {number}"
    if took > SECONDS_MAX:
        findings.faults.append(_fault(target, seed, number, f"took {took:.1f} s"))


def _fault(target: Target, seed: int, number: int, what: str) -> str:
    again = f"--seed {seed} --target {target.name!r} --first {number} --inputs 1"
    return f"{target.name}: {what} (again: python -m tests.hostile.in_process {again})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=numbers.randrange(1 << 31))
    parser.add_argument("--target", help="one decoder only")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    wish = parser.parse_args()
    chosen = [target for target in targets() if wish.target in (None, target.name)]
    if not chosen:
        raise SystemExit(f"no decoder {wish.target!r}: {', '.join(one.name for one in targets())}")
    if wish.show:
        for target in chosen:
            for number in range(wish.first, wish.first + (wish.inputs or 1)):
                print(target.name, number, input_of(target, wish.seed, number))
        return
    inputs = 100_000 if wish.inputs is None and wish.seconds is None else wish.inputs
    started = time.monotonic()
    found = fuzz(chosen, wish.seed, inputs=inputs, seconds=wish.seconds, first=wish.first)
    if wish.json:
        json.dump(vars(found), sys.stdout)
        return
    rate = found.inputs / max(time.monotonic() - started, 1e-9)
    print(f"seed {wish.seed}: {found.inputs} inputs, {found.refused} refused, {rate:.0f} a second")
    print(f"  slowest {found.slowest * 1000:.0f} ms ({found.slowest_of}); {found.by_target}")
    for fault in found.faults:
        print(f"FAULT: {fault}")
    if found.faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
