"""RocketMQ's admin call that has a transaction checked anew which the broker gave up (323), and its Java producer."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from .conftest import required, server_kind
from .java import fetch_jars
from .servers import HERE
from .single_java import SingleJava
from .systems import Broker, NameServer, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

CLIENT = "4.9.8"
SECONDS_MAX = 120
TOPIC = "GivenUp"


def test_a_transaction_that_was_given_up_is_checked_anew_and_committed(tmp_path: Path) -> None:
    with required():
        program = SingleJava("ResumedCheck", fetch_jars(HERE / "pom.xml", CLIENT))
        commands = commands_of(server_kind(), tmp_path / "home")
    with ExitStack() as stack:
        name_server = NameServer(commands, tmp_path / "namesrv")
        stack.callback(name_server.kill)
        name_server.start()
        broker = Broker(
            [name_server],
            tmp_path / "broker",
            "broker-t",
            transactionTimeOut=1000,
            transactionCheckInterval=1000,
            transactionCheckMax=2,
            mappedFileSizeCommitLog=1 << 24,
        )
        stack.callback(broker.kill)
        broker.start(commands)
        printed = program.run(
            tmp_path / "java", [name_server.address, TOPIC], seconds_max=SECONDS_MAX
        )
    assert printed.splitlines()[-1] == f"ok {TOPIC}"
