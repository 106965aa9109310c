"""Java's side of these tests: jars by Maven, our program by javac, both kept outside the repository.

A cache entry is named after what it was made of and appears by one rename, so a broken download or compilation never
looks like a finished one. Everything that is missing becomes a ``MissingComponent`` that names it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

MAVEN_SECONDS_MAX = 600
JAVAC_SECONDS_MAX = 180
MAIN_CLASS = "cometmq.interop.Main"

# Where 5.x keeps the classes that our program knows from 4.x. Everything else that differs is in ``Dialect.java``.
MOVED_PACKAGES = {
    "org.apache.rocketmq.common.protocol.": "org.apache.rocketmq.remoting.protocol.",
    "org.apache.rocketmq.common.admin.": "org.apache.rocketmq.remoting.protocol.admin.",
    "org.apache.rocketmq.common.subscription.": (
        "org.apache.rocketmq.remoting.protocol.subscription."
    ),
}

# Without a configuration of its own, the logging library among the client's jars prints every detail to standard
# output, in between the lines that the driver reads.
QUIET_LOGBACK = '<configuration><root level="ERROR"/></configuration>\n'


class MissingComponent(Exception):
    """A component that these tests need is not there; the message says which one and what to do."""


def require_tools(names: Iterable[str] = ("java", "javac", "mvn")) -> None:
    """Raises ``MissingComponent`` unless these commands are on the path."""
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        raise MissingComponent(
            f"not on the path: {', '.join(missing)}; install what tests/interop/README.md asks for"
        )


def fetch_jars(pom: Path, version: str = "") -> Path:
    """The directory with the runtime jars of a pom file, filled by Maven when it is not there yet.

    ``version`` replaces the pom's own ``rocketmq.version``.
    """

    def fill(directory: Path) -> None:
        goal = "dependency:copy-dependencies"
        options = ["-DincludeScope=runtime", f"-DoutputDirectory={directory}"]
        if version:
            options.append(f"-Drocketmq.version={version}")
        run_tool(["mvn", "-q", "-B", "-f", str(pom), goal, *options], seconds_max=MAVEN_SECONDS_MAX)

    name = "-".join(filter(None, ("jars", pom.parent.name, version)))
    return cached(name, [pom], fill, salt=version)


def compile_program(sources: Path, jars: Path, version: str) -> Path:
    """The directory with the classes of our program, compiled when its sources have changed."""
    series = version[0]
    common = sorted((sources / "common").rglob("*.java"))
    own = sorted((sources / f"series-{series}").rglob("*.java"))
    moved = MOVED_PACKAGES if series == "5" else {}

    def fill(directory: Path) -> None:
        with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
            files = []
            for file in [*common, *own]:
                text = file.read_text(encoding="utf-8")
                for old, new in moved.items():
                    text = text.replace(f"import {old}", f"import {new}")
                files.append(Path(scratch) / file.name)
                files[-1].write_text(text, encoding="utf-8")
            options = ["--release", "17", "-nowarn", "-encoding", "UTF-8"]
            paths = ["-cp", str(jars / "*"), "-d", str(directory)]
            command = ["javac", *options, *paths, *map(str, files)]
            run_tool(command, seconds_max=JAVAC_SECONDS_MAX)

    # The jars' directory is named after their versions, so it stands for them.
    return cached("classes", [*common, *own], fill, salt=f"{jars.name} {moved}")


class JavaProgram:
    """Our program around the Java client, ready to run. Each run has a directory of its own for what it writes."""

    def __init__(self, *, classes: Path, jars: Path, runs: Path) -> None:
        self._classpath = f"{classes}{os.pathsep}{jars / '*'}"
        self._runs = runs

    def start(
        self,
        run: str,
        arguments: Iterable[str],
        *,
        header_encoding: str,
        settings: Mapping[str, str] | None = None,
    ) -> RunningProgram:
        """Starts the program; ``run`` names its directory, ``settings`` are further system properties."""
        home = self._runs / run
        home.mkdir(parents=True)
        logback = home / "logback.xml"
        logback.write_text(QUIET_LOGBACK, encoding="utf-8")
        properties = {
            "user.home": str(
                home
            ),  # the client's own log and the offsets of broadcast consumers go below it
            "file.encoding": "UTF-8",
            "logback.configurationFile": str(logback),
            "rocketmq.client.logLevel": "WARN",
            "rocketmq.serialize.type": header_encoding,
            # A 5.x consumer asks for queues a second after its start, and just then its timer sends a heartbeat: see
            # ``Cluster.HEARTBEAT_MS`` for what happens if both meet.
            "rocketmq.client.rebalance.minInterval": "200",
            **(settings or {}),
        }
        # The program is over in a minute: start-up time counts for more than the best machine code.
        flags = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        flags += [f"-D{name}={value}" for name, value in properties.items()]
        command = ["java", *flags, "-cp", self._classpath, MAIN_CLASS, *arguments]
        return RunningProgram(command, home)


class RunningProgram:
    """One process. Its output goes to files, so that neither side ever waits for the other to read."""

    def __init__(
        self, command: list[str], home: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._lines_file = home / "out.txt"
        self._errors_file = home / "err.txt"
        with self._lines_file.open("wb") as out, self._errors_file.open("wb") as err:
            self.process = subprocess.Popen(
                command,
                bufsize=0,  # A line that nobody reads any more must not come up again when the pipe is closed.
                cwd=home,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                env={**clean_environment(), **(environment or {})},
            )

    def lines(self) -> list[str]:
        """What the program has printed so far."""
        return self._lines_file.read_text(encoding="utf-8").splitlines()

    def errors(self) -> str:
        """The end of what it wrote to standard error: stack traces of failed scenarios."""
        return tail(self._errors_file)

    def go_on(self) -> None:
        """Answers a program that waits for a line of input."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(b"\n")
        except BrokenPipeError:
            pass  # It has ended already, and its report will say why.

    def no_more_input(self) -> None:
        """A program that works through its input ends."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait(self, seconds_max: float) -> bool:
        """Waits for the end, which it forces when time is over. Says whether the program ended by itself."""
        assert self.process.stdin is not None
        try:
            self.process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        finally:
            self.process.stdin.close()
        return True


def clean_environment() -> dict[str, str]:
    """The environment without the variables that would point a RocketMQ process elsewhere."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("ROCKETMQ") and name not in ("NAMESRV_ADDR", "JAVA_TOOL_OPTIONS")
    }


def tail(file: Path, characters_max: int = 4000) -> str:
    """The last part of a text file, for error messages."""
    text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    return text[-characters_max:]


def cache_root() -> Path:
    """Where everything lives that these tests make or fetch."""
    return Path(os.environ.get("COMETMQ_CACHE") or Path.home() / ".cache" / "cometmq") / "interop"


def cached(kind: str, inputs: list[Path], fill: Callable[[Path], None], *, salt: str = "") -> Path:
    """The cache entry of this kind made from these inputs; ``fill`` makes it when it is not there yet."""
    digest = hashlib.sha256(salt.encode())
    for file in inputs:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    root = cache_root()
    entry = root / f"{kind}-{digest.hexdigest()[:16]}"
    if not entry.is_dir():
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root) as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            fill(made)
            try:
                made.rename(entry)
            except OSError:
                # Somebody else made the same entry meanwhile, and theirs is as good as ours.
                if not entry.is_dir():
                    raise
    return entry


def run_tool(command: list[str], *, seconds_max: float, cwd: Path | None = None) -> None:
    """Runs a tool to its end. Raises ``MissingComponent`` with its output when it fails."""
    name = command[0]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds_max, check=False, cwd=cwd
        )
    except subprocess.TimeoutExpired:
        raise MissingComponent(f"{name} did not end within {seconds_max} s: {command}") from None
    if done.returncode != 0:
        output = (done.stdout + done.stderr).strip()[-4000:]
        raise MissingComponent(f"{name} failed with exit code {done.returncode}:\n{output}")
