"""``java/single/MovedClients.java`` at work beside a test: RocketMQ's own clients while masters and slaves change."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.eventually import wait_until

from .java import RunningProgram, fetch_jars
from .replication_group import TOPIC
from .servers import HERE
from .single_java import SingleJava

WAIT_SECONDS_MAX = 60.0
END_SECONDS_MAX = 90.0
_PROGRESS = re.compile(r"sent (\d+) taken (\d+) failed (\d+)")


def group_of(version: str) -> str:
    """The group of the consumer of a version."""
    return f"moved-consumers-{version[0]}"


class MovedClients:
    """``sent`` counts what was acknowledged by SEND_OK, ``taken`` what came to the consumer."""

    def __init__(self, program: RunningProgram) -> None:
        self._program = program

    @property
    def sent(self) -> int:
        return self._progress()[0]

    @property
    def taken(self) -> int:
        return self._progress()[1]

    @property
    def failed(self) -> int:
        """Sends that ended with an error."""
        return self._progress()[2]

    def sends_on(self, count: int = 50) -> None:
        """Waits until so many more sends were acknowledged."""
        aim = self.sent + count
        self._wait(lambda: self.sent >= aim, f"{count} more sends")

    def takes_on(self, count: int = 20) -> None:
        """Waits until the consumer got so many more."""
        aim = self.taken + count
        self._wait(lambda: self.taken >= aim, f"{count} more taken")

    def falls_behind(self, count: int = 40) -> None:
        """Waits until so much is left to consume: more than the consumer has in its hands."""
        self._wait(lambda: self.sent - self.taken >= count, f"{count} left to consume")

    def be_quiet(self) -> None:
        """No more sends."""
        self._program.go_on()
        self._wait(lambda: "quiet" in self._program.lines(), "quiet")

    def drain(self) -> str:
        """Everything acknowledged comes to the consumer, which commits and ends. What it says in the end."""
        self._program.go_on()
        self._program.wait(END_SECONDS_MAX)
        assert self._program.process.returncode == 0, self._story()
        return self._program.lines()[-1]

    def kill(self) -> None:
        self._program.process.kill()
        self._program.wait(END_SECONDS_MAX)

    def _wait(self, probe: Callable[[], bool], what: str) -> None:
        wait_until(probe, lambda: f"{what}: {self._story()}", WAIT_SECONDS_MAX)

    def _progress(self) -> tuple[int, int, int]:
        for line in reversed(self._program.lines()):
            found = _PROGRESS.fullmatch(line)
            if found:
                sent, taken, failed = map(int, found.groups())
                return sent, taken, failed
        return 0, 0, 0

    def _story(self) -> str:
        code = self._program.process.poll()
        return (
            f"{self._progress()} (sent, taken, failed), exit code {code}\n{self._program.errors()}"
        )


@contextlib.contextmanager
def moved_clients(
    version: str, name_server: str, home: Path, *, pause_ms: int
) -> Iterator[MovedClients]:
    """Clients of a version, killed in the end if they have not ended.

    Args:
        pause_ms: how long the consumer takes for a message; a send is made every 20.
    """
    program = SingleJava("MovedClients", fetch_jars(HERE / "pom.xml", version))
    arguments = [name_server, TOPIC, group_of(version), str(pause_ms)]
    # Otherwise a consumer looks for its queues every 20 seconds.
    settings = {"rocketmq.client.rebalance.waitInterval": "1000"}
    clients = MovedClients(program.start(home, arguments, settings))
    try:
        yield clients
    finally:
        clients.kill()
