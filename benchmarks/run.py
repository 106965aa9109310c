"""``make bench``: every benchmark of this directory, one after the other.

    python benchmarks/run.py [NAME...]      all, or those named: compare clients spark_kafka …

First CometMQ beside RocketMQ, then the clients, then the rest. One that fails does not stop the others; the end tells
which did, and how long each took. Each also runs alone, with options of its own; its first docstring line says what it
measures. Compare figures of one run only: they are taken on whatever machine this is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
FIRST = ("compare", "clients")


def main() -> int:
    names = sorted({script.stem for script in HERE.glob("*.py")} - {Path(__file__).stem, *FIRST})
    names = [*FIRST, *names]
    if unknown := set(sys.argv[1:]) - set(names):
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are {' '.join(names)}")
        return 2
    ended = [(name, *run(name)) for name in names if not sys.argv[1:] or name in sys.argv[1:]]
    print("\n== all")
    for name, code, seconds in ended:
        print(
            f"{name:16} {seconds:6.0f} s   {'done' if code == 0 else f'FAILED, exit code {code}'}"
        )
    return 1 if any(code for _, code, _ in ended) else 0


def run(name: str) -> tuple[int, float]:
    """Its exit code and how many seconds it took."""
    print(f"\n== {name}", flush=True)
    started = time.monotonic()
    # Some use parts of others by their full name. Servers that they start are those of this checkout.
    path = os.pathsep.join((str(HERE.parent / "src"), str(HERE.parent)))
    environment = {**os.environ, "PYTHONPATH": path}
    what = ["-m", f"benchmarks.{name}"] if (HERE / name).is_dir() else [str(HERE / f"{name}.py")]
    command = [sys.executable, *what]
    ended = subprocess.run(command, cwd=HERE.parent, env=environment, check=False)
    return ended.returncode, time.monotonic() - started


if __name__ == "__main__":
    sys.exit(main())
