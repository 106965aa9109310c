"""The page of settings is what the software would write now."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_settings_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "settings_page.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_settings_named_in_the_operating_guide_exist() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    guide = (ROOT / "docs" / "operating.md").read_text()
    [table] = re.findall(r"Keys that RocketMQ does not have:\n\n(.*?)\n\n", guide, re.DOTALL)
    named = re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
    assert named
    assert [key for key in named if f"| `{key}` |" not in page] == []
