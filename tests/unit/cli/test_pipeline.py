"""The command without Spark: it stays quick, and says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from cometmq.cli.main import main


def test_help_does_not_import_spark() -> None:
    program = (
        "import sys; from click.testing import CliRunner; from cometmq.cli.main import main\n"
        "assert CliRunner().invoke(main, ['pipeline', 'run', '--help']).exit_code == 0\n"
        "print([name for name in ('pyspark', 'pyarrow', 'yaml') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("package", ["pyspark", "pyarrow", "yaml"])
def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    result = CliRunner().invoke(main, ["pipeline", "run", "archive"])
    assert result.exit_code == 2
    assert f"pipelines need the package {package}: pip install 'cometmq[spark]'" in result.output


def test_parameters_are_pairs() -> None:
    result = CliRunner().invoke(main, ["pipeline", "explain", "archive", "--set", "topic"])
    assert result.exit_code == 2
    assert "--set takes NAME=VALUE, not 'topic'" in result.output


def test_explain_and_show_and_list_need_no_session() -> None:
    told = CliRunner().invoke(
        main, ["pipeline", "explain", "archive", "--set", "topic=Orders", "--master", "yarn"]
    )
    assert told.exit_code == 0, told.output
    assert "archive (stream, every 10 seconds) on yarn" in told.output
    shown = CliRunner().invoke(main, ["pipeline", "show", "archive"])
    assert shown.output.startswith("name: archive\n")
    assert "rehydrate " in CliRunner().invoke(main, ["pipeline", "list"]).output


def test_a_pipeline_that_is_not_there() -> None:
    result = CliRunner().invoke(main, ["pipeline", "run", "nowhere.yaml"])
    assert result.exit_code == 2
    assert (
        "there is no file 'nowhere.yaml', and no pipeline of this name comes along" in result.output
    )
