"""The page of metrics is what the software would write now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_metrics_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.metrics_page", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
