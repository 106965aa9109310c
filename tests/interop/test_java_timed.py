"""RocketMQ's 5.x Java client: messages with a time of delivery, and recalls of them. The 4.x one has no call for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .java import MissingComponent, fetch_jars
from .servers import HERE, ServerPair
from .single_java import SingleJava

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

CLIENT = "5.5.0"
SECONDS_MAX = 120
EXIT_CODE_MISSING = 3


def test_java_client_sends_at_times_and_recalls(servers: ServerPair, tmp_path: Path) -> None:
    try:
        program = SingleJava("TimedMessages", fetch_jars(HERE / "pom.xml", CLIENT))
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)
    topic = "TimedByJava"
    printed = program.run(tmp_path, [servers.address, topic], seconds_max=SECONDS_MAX)
    assert printed.splitlines()[-1] == f"ok {topic}"
