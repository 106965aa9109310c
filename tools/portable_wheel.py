"""Makes a compiled wheel one for all Linux machines whose C library is new enough, instead of for those like this one.

    python tools/portable_wheel.py DIRECTORY

`auditwheel` finds the oldest C library that the twins can run with, and the wheel is named after it (`manylinux…`), as
package indexes want it. The twins need nothing else, so nothing has to be added to the wheel. A directory without a
compiled one is left as it is.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

LOCAL_TAG: Final = "-linux_"


class NotPortable(Exception):
    """What the tools said."""


def make_portable(directory: Path) -> list[Path]:
    """Replaces the compiled wheels of a directory. Returns the new ones. Raises NotPortable."""
    made: list[Path] = []
    for wheel in sorted(directory.glob("cometmq-*.whl")):
        if LOCAL_TAG in wheel.name:
            made.append(_retagged(wheel))
            wheel.unlink()
    return made


def _retagged(wheel: Path) -> Path:
    found = json.loads(_said(wheel, "auditwheel", "show", "--json", str(wheel)))["overall_tag"]
    if LOCAL_TAG in f"-{found}":
        raise NotPortable(f"{wheel.name}: it needs what not every Linux has, see `auditwheel show`")
    name = _said(wheel, "wheel", "tags", "--platform-tag", found, str(wheel)).strip()
    return wheel.with_name(name)


def _said(wheel: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NotPortable(f"{wheel.name}: {(done.stdout + done.stderr).strip()}")
    return done.stdout


if __name__ == "__main__":
    try:
        for one in make_portable(Path(sys.argv[1])):
            print(f"for all machines: {one}")
    except NotPortable as error:
        raise SystemExit(f"this wheel runs on machines like this one only: {error}") from None
