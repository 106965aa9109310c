"""RocketMQ's Java clients at work while their cluster grows and shrinks: no send fails, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from .java import MissingComponent, fetch_jars
from .servers import HERE
from .single_java import SingleJava
from .systems import OURS, Broker, NameServer, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

SECONDS_MAX = 200
EXIT_CODE_MISSING = 3
# Consumers look for new queues every 20 seconds otherwise.
SETTINGS = {"rocketmq.client.rebalance.waitInterval": "1000"}


@pytest.mark.parametrize("client", ["4.9.8", "5.5.0"])
def test_java_clients_follow_brokers_and_queues(client: str, tmp_path: Path) -> None:
    try:
        program = SingleJava("ScaledClients", fetch_jars(HERE / "pom.xml", client))
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)
    ours = commands_of(OURS, tmp_path / "home")
    topic = f"ScaledByJava-{client}".replace(".", "-")
    with NameServer(ours, tmp_path / "namesrv").running() as name_server:
        brokers = [
            Broker(
                [name_server],
                tmp_path / name,
                name,
                mappedFileSizeCommitLog=16 * 1024 * 1024,
                # The second broker gets the topic when the program says so, not by a heartbeat of the first message.
                autoCreateTopicEnable="false",
            )
            for name in ("broker-a", "broker-b")
        ]
        try:
            arguments = [name_server.address, topic]
            for broker in brokers:
                broker.start(ours, until_known=False)
                arguments += [broker.name, broker.address]
            printed = program.run(
                tmp_path / "java", arguments, seconds_max=SECONDS_MAX, settings=SETTINGS
            )
        finally:
            for broker in brokers:
                broker.kill()
    assert printed.splitlines()[-1] == f"ok {topic}"
