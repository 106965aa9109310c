"""Java is there and new enough, or the message says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.spark.pipeline.session import JavaMissing, check_java, java_major


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


def java(directory: Path, text: str) -> dict[str, str]:
    program = directory / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{text}' >&2\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(directory)}


def test_a_good_one(tmp_path: Path) -> None:
    assert check_java(java(tmp_path, 'openjdk version "21.0.1"')) == 21


def test_an_old_one(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match=r"java is Java 11\. Spark needs Java 17 or newer"):
        check_java(java(tmp_path, 'openjdk version "11.0.2"'))


def test_one_that_says_nothing(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match="said no version"):
        check_java(java(tmp_path, "hello"))


def test_none(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match="no java on the PATH"):
        check_java({"PATH": str(tmp_path)})
    with pytest.raises(JavaMissing, match="cannot be run: No such file"):
        check_java({"JAVA_HOME": str(tmp_path)})
