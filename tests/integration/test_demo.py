"""The demo where Spark cannot run: it says what is missing, and all the rest is shown and true."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from cometmq.cli.main import main
from cometmq.spark import java


def test_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr(java, "_installed", lambda: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = CliRunner().invoke(main, ["demo", "--messages", "40"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "all 80 acknowledged orders are still there" in result.output
    assert "/ shows the 81 messages in Orders, and the group demo-consumer" in result.output
    _, _, last = result.output.partition("\n6. A pipeline on Spark")
    assert "left out: no java on the PATH. Spark needs Java 17 or newer" in last
    assert "everything above works without it" in last
