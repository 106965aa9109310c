"""Java programs of one file: compiled once for each set of jars, run to their end or beside a test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from .java import (
    JAVAC_SECONDS_MAX,
    QUIET_LOGBACK,
    RunningProgram,
    cached,
    clean_environment,
    run_tool,
    tail,
)
from .servers import HERE

SOURCES = HERE / "java" / "single"


class SingleJava:
    """``SingleJava("Name", jars)`` is ``java/single/Name.java``, against the jars in a directory."""

    def __init__(self, name: str, jars: Path) -> None:
        self._name = name
        self._jars = jars
        source = SOURCES / f"{name}.java"

        def fill(directory: Path) -> None:
            options = ["--release", "17", "-nowarn", "-encoding", "UTF-8", "-cp", str(jars / "*")]
            command = ["javac", *options, "-d", str(directory), str(source)]
            run_tool(command, seconds_max=JAVAC_SECONDS_MAX)

        self._classes = cached(f"classes-{name}", [source], fill, salt=jars.name)

    def run(
        self,
        home: Path,
        arguments: Iterable[str],
        *,
        text: str = "",
        seconds_max: float,
        settings: Mapping[str, str] | None = None,
    ) -> str:
        """What the program printed. Its logs go below ``home``, ``text`` to its standard input.

        ``settings`` are further system properties.

        Raises:
            AssertionError: it did not end in time, or not well.
        """
        command = self._command(home, settings)
        # To files, so that there is something to read when time is over.
        outputs, errors = home / "out.txt", home / "err.txt"
        with outputs.open("wb") as out, errors.open("wb") as err:
            try:
                code = subprocess.run(
                    [*command, *arguments],
                    input=text.encode(),
                    stdout=out,
                    stderr=err,
                    env=clean_environment() | {"ROCKETMQ_HOME": str(home)},
                    timeout=seconds_max,
                    check=False,
                    # Some tools write into the directory they are started in.
                    cwd=home,
                ).returncode
            except subprocess.TimeoutExpired:
                code = None
        assert code == 0, (
            f"{self._name} ended with code {code} (none: not within {seconds_max} s)\n"
            f"{tail(outputs)}\n{tail(errors)}"
        )
        return outputs.read_text(encoding="utf-8", errors="replace")

    def start(
        self, home: Path, arguments: Iterable[str], settings: Mapping[str, str] | None = None
    ) -> RunningProgram:
        """The program at work, for a test that does other things meanwhile. It must be waited for, or killed."""
        command = self._command(home, settings)
        return RunningProgram([*command, *arguments], home, {"ROCKETMQ_HOME": str(home)})

    def _command(self, home: Path, settings: Mapping[str, str] | None) -> list[str]:
        home.mkdir(parents=True, exist_ok=True)
        logback = home / "logback.xml"
        logback.write_text(QUIET_LOGBACK, encoding="utf-8")
        properties = {
            "user.home": home,
            "file.encoding": "UTF-8",
            "stdout.encoding": "UTF-8",
            # Times are printed in the zone of the machine.
            "user.timezone": "UTC",
            "logback.configurationFile": logback,
            "rmq.logback.configurationFile": logback,
            "rocketmq.client.logLevel": "ERROR",
            # A program may want to stay when a library of RocketMQ ends the process.
            "java.security.manager": "allow",
            **(settings or {}),
        }
        flags = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        flags += [f"-D{name}={value}" for name, value in properties.items()]
        classpath = f"{self._classes}{os.pathsep}{self._jars / '*'}"
        return ["java", *flags, "-cp", classpath, self._name]
