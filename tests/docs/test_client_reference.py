"""The reference pages of the client and of the admin library are what the software would write now, and complete."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

import cometmq.admin
import cometmq.client
import cometmq.client.aio
import cometmq.client.sync

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "client.md").read_text()
ADMIN_PAGE = (ROOT / "docs" / "reference" / "admin.md").read_text()
SETTINGS_PAGE = (ROOT / "docs" / "reference" / "client-settings.md").read_text()


def test_the_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "client_reference.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "module", [cometmq.client, cometmq.client.aio, cometmq.client.sync, cometmq.admin]
)
def test_every_exported_name_is_on_a_page(module: object) -> None:
    names: list[str] = module.__all__  # type: ignore[attr-defined]
    both = PAGE + SETTINGS_PAGE if module is not cometmq.admin else ADMIN_PAGE
    missing = [name for name in names if f"## {name}\n" not in both and f"| `{name}` |" not in both]
    assert names
    assert not missing


def test_every_setting_is_on_its_page() -> None:
    for name in ("ClientConfig", "ProducerConfig", "PushConsumerConfig", "LitePullConfig"):
        [section] = [part for part in SETTINGS_PAGE.split("\n## ") if part.startswith(f"{name}\n")]
        fields = dataclasses.fields(getattr(cometmq.client, name))
        assert [field.name for field in fields if f"`{field.name}`" not in section] == []
