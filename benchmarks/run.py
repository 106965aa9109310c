"""``make bench``: every benchmark of this directory, one after the other, then CometMQ beside RocketMQ.

    python benchmarks/run.py [--quick ...]      flags go to the comparison: `python -m benchmarks.compare --help`

Each also runs alone; its first docstring line says what it measures. Compare figures of one run only: they are taken
on whatever machine this is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def main() -> None:
    here = Path(__file__)
    # Some use parts of others by their full name.
    environment = {**os.environ, "PYTHONPATH": str(here.parent.parent)}
    for script in sorted(here.parent.glob("*.py")):
        if script.name == here.name:
            continue
        print(f"\n== {script.stem}", flush=True)
        subprocess.run([sys.executable, script], check=True, env=environment)
    print("\n== compare", flush=True)
    comparison = [sys.executable, "-m", "benchmarks.compare", *sys.argv[1:]]
    sys.exit(subprocess.run(comparison, cwd=here.parent.parent, check=False).returncode)


if __name__ == "__main__":
    main()
