"""Gives the same scenarios to the Python modules and to their compiled twins, and compares all that can be seen.

    python -m tests.differential.run                    # `make differential`: ten minutes
    python -m tests.differential.run --seconds 300
    python -m tests.differential.run --seed 7           # that scenario alone, made as short as it still differs

Each implementation runs in a process of its own. A difference is printed with its seed, which repeats it.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.differential.calls import Answers, Calls, calls
from tests.differential.scenario import Feed, Scenario, Step, scenario
from tests.differential.world import Outcome

from cometmq.native.choice import NATIVE, PYTHON, VARIABLE
from cometmq.protocol.frame import decode_bytes

ROOT: Final = Path(__file__).parents[2]
TRIES_MAX: Final = 400
"""Attempts to make a scenario shorter."""
SHOWN_BYTES: Final = 300


class Crashed(Exception):
    """A process ended in the middle of a scenario; what it said."""


class Implementation:
    """A process that carries out scenarios with one of the two. A context manager."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.differential.world"],
            cwd=ROOT,
            env={**os.environ, VARIABLE: self.name, "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def begin(self, asked: Scenario | Calls) -> None:
        assert self._process.stdin is not None
        try:
            pickle.dump(asked, self._process.stdin)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Crashed(f"{self.name}: exit code {self._process.wait()}") from None

    def end(self) -> tuple[Any, ...]:
        """The fields of the outcome."""
        assert self._process.stdout is not None
        try:
            found: tuple[Any, ...] = pickle.load(self._process.stdout)
            return found
        except EOFError:
            raise Crashed(f"{self.name}: exit code {self._process.wait()}") from None


class Pair:
    """The two that are compared. A difference between two of the same kind is a fault of the comparison."""

    def __init__(self, one: Implementation, other: Implementation) -> None:
        self._both = one, other

    def differences(self, asked: Scenario) -> list[str]:
        """What differs, in the order in which it happened. Raises Crashed."""
        return list(compare(*self.outcomes(asked)))

    def outcomes(self, asked: Scenario, other: Scenario | None = None) -> tuple[Outcome, Outcome]:
        """Of the two; ``other`` is for the second, if it is to have another one. Raises Crashed."""
        first, second = self._both
        first.begin(asked)
        second.begin(other or asked)
        return Outcome(*first.end()), Outcome(*second.end())

    def different_calls(self, asked: Calls) -> list[str]:
        """Inputs that were not answered alike. Raises Crashed."""
        for implementation in self._both:
            implementation.begin(asked)
        one, other = (Answers(*implementation.end()) for implementation in self._both)
        return [
            f"{name} of {data.hex()}: {str(left)[:SHOWN_BYTES]}\n     not: {str(right)[:SHOWN_BYTES]}"
            for (name, data), left, right in zip(asked.inputs, one.found, other.found, strict=True)
            if left != right
        ]


@contextmanager
def pair(one: str = PYTHON, other: str = NATIVE) -> Iterator[Pair]:
    with Implementation(one) as first, Implementation(other) as second:
        yield Pair(first, second)


class _Trial:
    """Answers whether a scenario differs, by one pair of processes for as long as they live."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._pair = stack.enter_context(pair())

    def differs(self, asked: Scenario) -> bool:
        try:
            return bool(self._pair.differences(asked))
        except Crashed:
            self._stack.close()
            self._pair = self._stack.enter_context(pair())
            return True


def shortened(asked: Scenario) -> Scenario:
    """A scenario that still differs, with fewer steps and pieces; the same one if it does not differ."""
    with ExitStack() as stack:
        return _shortened(asked, _Trial(stack).differs)


def _shortened(asked: Scenario, differs: Callable[[Scenario], bool]) -> Scenario:
    found = asked
    tries = 0
    size = max(len(found.steps) // 2, 1)
    while size and tries < TRIES_MAX:
        at = 0
        while at < len(found.steps) and tries < TRIES_MAX:
            tries += 1
            steps = found.steps[:at] + found.steps[at + size :]
            if differs(found._replace(steps=steps)):
                found = found._replace(steps=steps)
            else:
                at += size
        size //= 2
    for number, step in enumerate(found.steps):
        if isinstance(step, Feed):
            for simpler in _simpler(step):
                tries += 1
                steps = [*found.steps]
                steps[number] = simpler
                if tries < TRIES_MAX and differs(found._replace(steps=steps)):
                    found = found._replace(steps=steps)
                    break
    return found


def _simpler(step: Feed) -> Iterator[Feed]:
    """The bytes at once; then each frame alone."""
    data = b"".join(step.pieces)
    at = 0
    while at + 4 <= len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        if end > len(data):
            break
        yield Feed(step.peer, [data[at:end]], is_one_turn=True)
        at = end
    yield Feed(step.peer, [data], is_one_turn=True)


def compare(one: Outcome, other: Outcome) -> Iterator[str]:
    for number, (left, right) in enumerate(zip(one.replies, other.replies, strict=True)):
        for peer in sorted({*left, *right}):
            yield from _reply_difference(number, peer, left.get(peer, b""), right.get(peer, b""))
    for title, first, second in (
        ("closed", one.closed, other.closed),
        ("errors", one.errors, other.errors),
        ("failures", one.failures, other.failures),
        ("callers", one.callers, other.callers),
    ):
        if first != second:
            yield f"{title}: {first}\n     not: {second}"
    for name in sorted({*one.files, *other.files}):
        before, after = one.files.get(name), other.files.get(name)
        if before is None or after is None:
            yield f"file {name}: only {PYTHON if after is None else NATIVE} has it"
        elif before != after:
            at = _first_difference(before, after)
            yield (
                f"file {name} at {at} of {len(before)} and {len(after)} bytes: "
                f"{before[at : at + 60].hex()}\n     not: {after[at : at + 60].hex()}"
            )


def _reply_difference(step: int, peer: int, left: bytes, right: bytes) -> Iterator[str]:
    """Requests of one turn are answered in any order: a peer finds its call by the opaque number."""
    ours, theirs = _frames(left), _frames(right)
    if ours == theirs:
        return
    for one, other in zip_longest(sorted(set(ours) - set(theirs)), sorted(set(theirs) - set(ours))):
        yield f"step {step}, peer {peer}: {_readable(one)}\n     not: {_readable(other)}"
        return
    yield f"step {step}, peer {peer}: {len(ours)} replies\n     not: {len(theirs)}"


def _frames(data: bytes) -> list[bytes]:
    frames: list[bytes] = []
    at = 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        frames.append(data[at:end])
        at = end
    return sorted(frames)


def _readable(frame: bytes | None) -> str:
    return "nothing" if frame is None else repr(decode_bytes(frame))[:SHOWN_BYTES]


def _first_difference(one: bytes, other: bytes) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long, at most")
    parser.add_argument("--seed", type=int, help="this scenario alone")
    wish = parser.parse_args()
    if wish.seed is not None:
        found = shortened(scenario(wish.seed))
        with pair() as both:
            try:
                differences = both.differences(found)
            except Crashed as crash:
                differences = [str(crash)]
        _show(found.steps)
        with pair() as both:
            differences += both.different_calls(calls(wish.seed))
        print("\n".join(differences) or "no difference")
        raise SystemExit(1 if differences else 0)
    first = random.randrange(1 << 31)
    print(f"from seed {first}, {wish.seconds:g} s", flush=True)
    count, differing = search(first, wish.seconds)
    print(f"{count} scenarios, {len(differing)} differ")
    if differing:
        raise SystemExit(f"python -m tests.differential.run --seed {differing[0]}")


def search(first: int, seconds: float, *, faults_max: int = 5) -> tuple[int, list[int]]:
    """How many scenarios were tried, and the seeds of those that differ."""
    deadline = time.monotonic() + seconds
    count = 0
    differing: list[int] = []
    while time.monotonic() < deadline and len(differing) < faults_max:
        with pair() as both:
            try:
                while time.monotonic() < deadline and len(differing) < faults_max:
                    seed = first + count
                    count += 1
                    differences = both.differences(scenario(seed))
                    differences += both.different_calls(calls(seed))
                    if differences:
                        differing.append(seed)
                        print(f"seed {seed}:", *differences[:3], sep="\n  ", flush=True)
            except Crashed as crash:
                differing.append(seed)
                print(f"seed {seed}: {crash}", flush=True)
    return count, differing


def _show(steps: list[Step]) -> None:
    for number, step in enumerate(steps):
        if isinstance(step, Feed):
            data = b"".join(step.pieces)
            sizes = ", ".join(str(len(piece)) for piece in step.pieces[:20])
            print(f"step {number}: peer {step.peer} sends {len(data)} bytes in pieces of {sizes}")
            print(f"    {data[:SHOWN_BYTES]!r}")
        else:
            print(f"step {number}: {step}")


if __name__ == "__main__":
    main()
