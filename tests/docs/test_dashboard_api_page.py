"""The reference of the dashboard's API says what the table of routes does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_reference_is_up_to_date() -> None:
    subprocess.run(
        [sys.executable, ROOT / "tools" / "dashboard_api.py", "--check"], check=True, cwd=ROOT
    )
