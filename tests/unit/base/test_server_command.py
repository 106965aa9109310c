"""Options that all servers have."""

from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.base.errors import ConfigError
from cometmq.base.server_command import log_file_of


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_where_a_server_logs(home: Path) -> None:
    assert log_file_of("broker", None, False) is None
    assert log_file_of("broker", "b.log", False) == "b.log"
    assert not (home / "logs").exists()
    for _ in range(2):
        found = log_file_of("namesrv", None, True)
        assert found == f"{home}/logs/rocketmqlogs/namesrv.log"
    assert (home / "logs" / "rocketmqlogs").is_dir()


def test_two_places_are_refused(home: Path) -> None:
    with pytest.raises(ConfigError, match="give one of them"):
        log_file_of("broker", "b.log", True)


def test_a_directory_that_cannot_be_made_is_told(home: Path) -> None:
    (home / "logs").touch()
    with pytest.raises(ConfigError, match="cannot be made for logs"):
        log_file_of("broker", None, True)
