"""Subcommands of ``mqadmin`` about replication and controllers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.eventually import wait_until
from tests.integration.mqadmin.tool import Tool

from cometmq.cli.mqadmin.registry import COMMANDS
from cometmq.testing import cluster
from cometmq.testing.cluster import Cluster

CLUSTER = "DefaultCluster"
ELECTED_SECONDS_MAX = 60.0


@pytest.fixture(scope="module")
def servers() -> Iterator[Cluster]:
    with cluster(slaves=1, controller=True) as running:
        yield running


def test_every_subcommand_about_replicas(servers: Cluster) -> None:
    tool = Tool(servers.name_servers)
    controller = str(servers.servers.controller_address)
    [master], [slave] = servers.masters, servers.slaves
    name = master.live.current.identity.broker_name

    def is_in_sync() -> bool:
        return tool(f"getSyncStateSet -a {controller} -b {name}").out.count("\nInSync") == 2

    wait_until(is_in_sync, "the slave is in sync", ELECTED_SECONDS_MAX)
    said = tool.ok(f"getSyncStateSet -a {controller} -c {CLUSTER}")
    assert f"#brokerName\t{name}\n" in said
    assert f"#MasterAddr\t{master.address}\n" in said
    assert "#SyncStateSetNums\t2\n" in said
    assert f"#ControllerLeaderAddress\t{controller}\n" in tool.ok(
        f"getControllerMetaData -a {controller}"
    )
    assert f"============{controller}====" in tool.ok(f"getControllerConfig -a {controller}")
    said = tool.ok(f"updateControllerConfig -a {controller} -k notifyBrokerRoleChanged -v true")
    assert "notifyBrokerRoleChanged : true\n" in said
    said = tool.ok(f"haStatus -b {master.address}")
    assert f"#MasterAddr\t{master.address}\n" in said
    assert "#InSyncSlaveNum\t1\n" in said
    assert "#MasterAddr\t" in tool.ok(f"haStatus -b {slave.address}")
    said = tool.ok(f"getBrokerEpoch -b {name}")
    assert "#Epoch: EpochEntry{epoch=1, startOffset=0, endOffset=0}" in said
    assert said.count("#brokerAddr") == 2
    # It is for slaves of RocketMQ; ours ask their master.
    refused = tool.bad(f"resetMasterFlushOffset -b {slave.address} -o 0 --yes", 1)
    assert "REQUEST_CODE_NOT_SUPPORTED" in refused
    told = tool.json(f"getSyncStateSet -a {controller} -b {name}")[name]
    [other] = [
        one["broker_id"]
        for one in told["in_sync_replicas"]
        if one["broker_id"] != told["master_broker_id"]
    ]
    said = tool.ok(f"electMaster -a {controller} -c {CLUSTER} -bn {name} -b {other} --yes")
    assert f"#BrokerName\t{name}\n" in said

    def is_elected() -> bool:
        found = tool.json(f"getSyncStateSet -a {controller} -b {name}")[name]
        return bool(found["master_broker_id"] == other)

    wait_until(is_elected, "it is the master", ELECTED_SECONDS_MAX)
    assert "nobody" in tool.bad("getBrokerEpoch -b nobody", 2)
    refused = tool.bad(f"cleanBrokerMetadata -a {controller} -bn {name} -c {CLUSTER} --yes", 1)
    assert "alive" in refused
    said = tool.ok(f"cleanBrokerMetadata -a {controller} -bn {name} -c {CLUSTER} -l --yes")
    assert said == f"clear broker {name} metadata from controller success! \n"
    mine = {command.name for command in COMMANDS if ".mqadmin.ha" in command.run.__module__}
    assert tool.ran >= mine - {"resetMasterFlushOffset"}
