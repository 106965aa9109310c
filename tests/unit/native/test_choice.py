"""Which implementation runs is asked for once, and told."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cometmq.native import choice

is_compiled = choice.choose(choice.AUTO) == choice.NATIVE
needs_twins = pytest.mark.skipif(not is_compiled, reason="cometmq was installed without twins")


@pytest.fixture
def _not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "TWINS", ("nobody_compiled_this",))


@needs_twins
@pytest.mark.parametrize("asked", [choice.AUTO, choice.NATIVE])
def test_twins_that_are_there_are_taken(asked: str) -> None:
    assert choice.choose(asked) == choice.NATIVE


def test_python_is_taken_where_it_is_asked_for() -> None:
    assert choice.choose(choice.PYTHON) == choice.PYTHON


@pytest.mark.usefixtures("_not_compiled")
def test_without_twins_python_runs() -> None:
    assert choice.choose(choice.AUTO) == choice.PYTHON


@needs_twins
def test_one_twin_too_few_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "TWINS", (*choice.TWINS, "nobody_compiled_this"))
    assert choice.choose(choice.AUTO) == choice.PYTHON


@pytest.mark.usefixtures("_not_compiled")
def test_twins_that_are_asked_for_and_not_there_are_an_error() -> None:
    with pytest.raises(ImportError, match=r"nobody_compiled_this.*Install cometmq again"):
        choice.choose(choice.NATIVE)


@pytest.mark.parametrize("asked", ["cython", "Native", " "])
def test_another_word_is_an_error(asked: str) -> None:
    with pytest.raises(ImportError, match="must be auto, python or native, not"):
        choice.choose(asked)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, choice.choose(choice.AUTO)),
        ("", choice.choose(choice.AUTO)),
        (choice.AUTO, choice.choose(choice.AUTO)),
        (choice.PYTHON, choice.PYTHON),
        pytest.param(choice.NATIVE, choice.NATIVE, marks=needs_twins),
    ],
)
def test_a_command_tells_which_one_runs(value: str | None, expected: str) -> None:
    done = _version(value)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f" ({expected})\n")


def test_a_command_with_a_wrong_value_does_not_run() -> None:
    done = _version("fast")
    assert done.returncode != 0
    assert "COMETMQ_IMPL must be auto, python or native, not 'fast'" in done.stderr


def test_the_tests_run_what_they_were_asked_for() -> None:
    asked = os.environ.get(choice.VARIABLE) or choice.AUTO
    assert choice.choose(asked) == choice.NAME


def _version(value: str | None) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if name != choice.VARIABLE}
    if value is not None:
        environment[choice.VARIABLE] = value
    return subprocess.run(
        [sys.executable, "-m", "cometmq.cli", "--version"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
