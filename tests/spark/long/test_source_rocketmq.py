"""The tests of the source, batches and streams, against RocketMQ 4.9.7's own broker: ordinary pulls serve there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.integration.broker_links import broker_link
from tests.interop.systems import ROCKETMQ_4, Broker, NameServer, commands_of
from tests.spark import test_source_batch, test_source_stream
from tests.spark.test_source_batch import orders, producer
from tests.spark.test_source_stream import send, start

from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.spark import register
from cometmq.testing.cluster_view import ClusterView

__all__ = ["orders", "producer", "send", "start"]

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def servers(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterView]:
    register(spark)
    directory = tmp_path_factory.mktemp("rocketmq")
    commands = commands_of(ROCKETMQ_4, directory / "home")
    with NameServer(commands, directory / "names").running() as name_server:
        broker = Broker(
            [name_server],
            directory / "broker",
            "java",
            enablePropertyFilter="true",
            # Else it tells a group that it has never heard of that it is at 0.
            accessMessageInMemoryMaxRatio=0,
            mappedFileSizeCommitLog=64 * 1024 * 1024,
        )
        try:
            broker.start(commands)
            yield ClusterView(name_server.address, broker.address, suffix="java")
            broker.stop()
        finally:
            broker.kill()


def test_it_has_no_bulk_pull(servers: ClusterView) -> None:
    """So that what follows are ordinary pulls."""
    with broker_link(servers.broker_address) as link:
        reply = link.call(Command(RequestCode.BULK_PULL, {"topic": "any"}))
    assert reply.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


for _module in (test_source_batch, test_source_stream):
    for _name, _test in vars(_module).items():
        if _name.startswith("test_"):
            _own = f"test_{_module.__name__.rpartition('_')[2]}_{_name.removeprefix('test_')}"
            globals()[_own] = _test
