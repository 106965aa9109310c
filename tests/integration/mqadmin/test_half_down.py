"""Half a cluster does not answer: what the other half says is shown, and who did what is told."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.eventually import wait_until
from tests.integration.mqadmin.tool import Tool

from cometmq.model.topic import DataVersion, TopicConfig
from cometmq.protocol.bodies.register import RegisterBrokerBody, encode_register_body
from cometmq.protocol.bodies.topic import TopicConfigTable
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.frame import encode_bytes
from cometmq.testing import cluster

CLUSTER = "DefaultCluster"
TOPIC = "Halved"


@contextmanager
def silent_broker(name_server: str) -> Iterator[str]:
    """Accepts connections and answers nothing, as a broker that hangs; the name server believes that it is alive."""
    table = TopicConfigTable(
        topic_config_table={name: TopicConfig(topic_name=name) for name in (TOPIC, "Another")},
        data_version=DataVersion(counter=1),
    )
    host, port = name_server.split(":")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection((host, int(port))) as line,
    ):
        address = f"127.0.0.1:{server.getsockname()[1]}"
        command = Command(
            RequestCode.REGISTER_BROKER,
            ext={
                "brokerName": "silent",
                "brokerAddr": address,
                "clusterName": CLUSTER,
                "haServerAddr": address,
                "brokerId": "0",
                "compressed": "true",
            },
            body=encode_register_body(
                RegisterBrokerBody(topics=table), compressed=True, version=Command(0).version
            ),
        )
        line.sendall(encode_bytes(command))
        yield address


def test_what_half_a_cluster_says_and_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMETMQ_MQ_CLIENT_API_TIMEOUT", "700")
    with cluster() as servers, silent_broker(servers.name_servers) as silent:
        tool, alive = Tool(servers.name_servers), servers.broker_address
        wait_until(lambda: "silent" in tool("clusterList").out, "it is registered")

        said = tool("clusterList")
        assert said.code == 1
        assert [row[3] for row in said.rows if row[0] == CLUSTER] == [silent, alive]
        assert said.err.startswith("mqadmin: ")
        assert silent in said.err
        assert "Traceback" not in said.err

        said = tool(f"updateTopic -c {CLUSTER} -t {TOPIC} -r 2 -w 2")
        assert said.code == 1
        assert f"create topic to {alive} success." in said.out
        assert f"create topic to {silent}" not in said.out
        assert said.err.startswith(
            f"mqadmin: {silent} did not answer request 17 in time; it may do it later"
        )

        wait_until(lambda: alive in tool(f"topicRoute -t {TOPIC}").out, "both have it")
        said = tool(f"topicStatus -t {TOPIC} --json")
        assert said.code == 1
        assert len(json.loads(said.out)["queues"]) == 2
        assert silent in said.err

        tool(f"updateSubGroup -c {CLUSTER} -g billing")
        said = tool(f"resetOffsetByTime -g billing -t {TOPIC} -s 0 --yes")
        assert said.code == 1
        assert silent in said.err
        said = tool("consumerProgress -g billing")
        assert said.code == 1
        assert silent in said.err

        said = tool(f"deleteTopic -c {CLUSTER} -t {TOPIC} --yes")
        assert said.code == 1
        assert "success" not in said.out
        assert silent in said.err
        # The name servers still know it, so that the command can be given again.
        assert tool(f"topicRoute -t {TOPIC}").code == 0

        assert tool(f"updateTopic -b {alive} -t Whole -r 1 -w 1").code == 0
