"""RocketMQ's 5.x Java client in POP mode: two consumers share a topic, some messages are tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from .java import MissingComponent, fetch_jars
from .servers import HERE, ServerPair
from .single_java import SingleJava

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

CLIENT = "5.5.0"
SECONDS_MAX = 200
EXIT_CODE_MISSING = 3


def test_java_client_pops(servers: ServerPair, tmp_path: Path) -> None:
    try:
        program = SingleJava("PopConsumers", fetch_jars(HERE / "pom.xml", CLIENT))
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)
    topic = "PoppedByJava"
    printed = program.run(tmp_path, [servers.address, topic], seconds_max=SECONDS_MAX)
    assert printed.splitlines()[-1] == f"ok {topic}"
