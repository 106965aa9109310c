"""Running ``cometmq pipeline`` in a test as a user would, in the session that all tests share."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner

from cometmq.cli.main import main


def cometmq(*arguments: str, code: int = 0) -> str:
    """What the command printed, errors included."""
    result = CliRunner().invoke(main, list(arguments), catch_exceptions=False)
    assert result.exit_code == code, f"exit code {result.exit_code}\n{result.output}"
    return result.output


def settings(**values: Any) -> list[str]:
    return [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
