"""The page of permissions is what the software would write now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cometmq.protocol.codes import RequestCode

ROOT = Path(__file__).parents[2]


def test_the_page_of_permissions_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "permissions_page.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_request_is_on_it() -> None:
    page = (ROOT / "docs" / "reference" / "permissions.md").read_text()
    assert [code.name for code in RequestCode if f"| {int(code)} | {code.name} |" not in page] == []
