"""Every subcommand of ``mqadmin`` at clusters of ours: what it prints, and what it says when it cannot."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.eventually import wait_until
from tests.integration.mqadmin.tool import Terminal, Tool

from cometmq.cli.mqadmin.registry import COMMANDS
from cometmq.client import (
    ClientConfig,
    Message,
    Outcome,
    ProducerConfig,
    PushConsumerConfig,
    ReceivedMessage,
    TraceConfig,
)
from cometmq.client.sync import Producer, PushConsumer
from cometmq.model.message_queue import MessageQueue
from cometmq.testing import cluster
from cometmq.testing.cluster import Cluster

CLUSTER = "DefaultCluster"
NAME = "standalone"
TOPIC = "Orders"
MESSAGES = 8


@pytest.fixture(scope="module")
def servers() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


@pytest.fixture(scope="module")
def tool(servers: Cluster) -> Tool:
    return Tool(servers.name_servers)


@pytest.fixture(scope="module")
def sent(servers: Cluster, tool: Tool) -> list[str]:
    """Offset ids of messages in ``TOPIC``, two in each queue."""
    tool.ok(f"updateTopic -c {CLUSTER} -t {TOPIC} -r 4 -w 4")
    wait_until(lambda: tool(f"topicRoute -t {TOPIC}").code == 0, "the route")
    with Producer("shop", name_servers=servers.name_servers) as producer:
        results = [
            producer.send(
                Message(topic=TOPIC, body=f"body {n}".encode(), tags=f"tag{n % 2}", keys=[f"k{n}"]),
                queue=MessageQueue(topic=TOPIC, broker_name=NAME, queue_id=n % 4),
            )
            for n in range(MESSAGES)
        ]
    return [result.offset_id for result in results]


def test_topics(servers: Cluster, tool: Tool, tmp_path: Path) -> None:
    broker = servers.broker_address
    assert tool.ok(f"updateTopic -b {broker} -t Made -r 3 -w 2 -p 4 -a +message.type=FIFO") == (
        f"create topic to {broker} success.\n"
        "TopicConfig [topicName=Made, readQueueNums=3, writeQueueNums=2, perm=R--, topicFilterType=SINGLE_TAG, "
        "topicSysFlag=0, order=false, attributes={+message.type=FIFO}]\n"
    )
    wait_until(lambda: "Made" in tool.ok("topicList").split(), "name servers know it")
    route = json.loads(tool.ok("topicRoute -t Made"))
    assert route["queueDatas"][0]["readQueueNums"] == 3
    assert route == tool.json("topicRoute -t Made")
    assert tool("topicRoute -t Made -l").rows[-1] == ["Total:", "1", "3", "2"]
    assert tool.ok("topicClusterList -t Made") == f"{CLUSTER}\n"
    said = tool.ok(f"updateTopicPerm -b {broker} -t Made -p 6")
    assert said.startswith(f"update topic perm from 4 to 6 in {broker} success.\nTopicConfig [")
    assert tool.ok(f"updateTopicPerm -b {broker} -t Made -p 6").startswith("new perm equals")
    assert [*tool.json("allocateMQ -t Made -i 10.0.0.1,10.0.0.2")["result"]] == [
        "10.0.0.1",
        "10.0.0.2",
    ]
    assert tool.ok(f"updateTopic -c {CLUSTER} -t Ordered -w 3 -o true").splitlines()[1] == (
        f"set cluster orderConf. isOrder=true, orderConf=[{NAME}:3]"
    )
    assert f"orderConf=[{NAME}:3]" in tool.ok("updateOrderConf -t Ordered -m get")
    tool.ok(f"updateOrderConf -t Ordered -m put -v {NAME}:2")
    refused = tool.bad("updateOrderConf -t Ordered -m delete", 2)
    assert "would delete which brokers have the queues of the ordered topic Ordered" in refused
    tool.ok("updateOrderConf -t Ordered -m delete --yes")
    assert "has no order configuration" in tool.bad("updateOrderConf -t Ordered -m get", 2)
    file = tmp_path / "topics.json"
    file.write_text('[{"topicName": "FromFile", "readQueueNums": 1, "writeQueueNums": 1}]')
    assert f"to {broker} success" in tool.ok(f"updateTopicList -b {broker} -f {file}")
    wait_until(lambda: "FromFile" in tool.ok("topicList").split(), "name servers know it")
    assert tool.ok(f"deleteTopic -t FromFile -c {CLUSTER} --yes") == (
        f"delete topic [FromFile] from cluster [{CLUSTER}] success.\n"
        "delete topic [FromFile] from NameServer success.\n"
    )
    assert "FromFile" not in tool.ok("topicList").split()


def test_who_takes_queues_from_a_topic_is_told(servers: Cluster, tool: Tool) -> None:
    """As RocketMQ's, the command sets all of a topic: without -r it has 8 queues, however many it had before."""
    tool.ok(f"updateTopic -c {CLUSTER} -t Wide -r 12 -w 12")
    said = tool(f"updateTopic -c {CLUSTER} -t Wide")
    assert said.code == 0
    assert said.err == (
        f"mqadmin: topic Wide had 12 queues to read from at {servers.broker_address}, and has 8 now; "
        "messages in the others are no longer consumed: -r 12 brings them back\n"
    )
    tool.ok(f"updateTopic -c {CLUSTER} -t Wide -r 12 -w 12")


def test_figures_of_topics(servers: Cluster, tool: Tool, sent: list[str]) -> None:
    rows = tool(f"topicStatus -t {TOPIC}").rows
    assert rows[0][0] == "#Broker"
    assert [row[:4] for row in rows[1:5]] == [[NAME, str(n), "0", "2"] for n in range(4)]
    status = tool.json(f"topicStatus -t {TOPIC}")
    assert [queue["max_offset"] for queue in status["queues"]] == [2, 2, 2, 2]
    tool.ok(f"updateSubGroup -c {CLUSTER} -g looker")
    tool.ok(f"resetOffsetByTime -g looker -t {TOPIC} -s now --yes")
    assert [CLUSTER, TOPIC, "looker"] in tool("topicList -c").rows
    [row] = [row for row in tool(f"statsAll -t {TOPIC}").rows if row[1] == "looker"]
    assert row[2] == "0"
    assert tool(f"brokerConsumeStats -b {servers.broker_address}").code == 0


def test_groups_and_positions(
    servers: Cluster, tool: Tool, sent: list[str], tmp_path: Path
) -> None:
    broker = servers.broker_address
    said = tool.ok(f"updateSubGroup -b {broker} -g billing -r 3 -q 2")
    assert "retryQueueNums=2, retryMaxTimes=3, groupRetryPolicy=" in said
    assert "retryMaxTimes                           =  3" in tool.ok("getConsumerConfig -g billing")
    assert tool.json("getConsumerConfig -g billing")[NAME]["retry_max_times"] == 3
    assert tool.ok(f"setConsumeMode -b {broker} -t {TOPIC} -g billing -m POP -q 2") == (
        f"set consume mode to {broker} success.\n"
        f"topic[{TOPIC}] group[billing] consume mode[POP] popShareQueueNum[2]\n"
    )
    assert "PULL or POP" in tool.bad(f"setConsumeMode -b {broker} -t {TOPIC} -g billing -m X", 2)
    file = tmp_path / "groups.json"
    file.write_text('[{"groupName": "audit"}]')
    tool.ok(f"updateSubGroupList -c {CLUSTER} -f {file}")
    rows = tool(f"resetOffsetByTime -g billing -t {TOPIC} -s 0 --yes").rows
    assert rows[2:] == [[NAME, str(n), "0"] for n in range(4)]
    progress = tool.json("consumerProgress -g billing")
    assert (
        sum(row["broker_offset"] - row["consumer_offset"] for row in progress["queues"]) == MESSAGES
    )
    assert tool.ok("consumerProgress -g billing").endswith(
        f"\nConsume TPS: 0.00\nConsume Diff Total: {MESSAGES}\nConsume Inflight Total: 0\n"
    )
    assert (
        tool.ok(f"resetOffsetByTime -g billing -t {TOPIC} -s 0 -b {broker} -q 1 -o 1 --yes")
        == "reset consumer offset to 1\n"
    )
    assert "Consume Diff Total: 7" in tool.ok("consumerProgress -g billing -s true")
    assert "clone group offset success" in tool.ok(
        f"cloneGroupOffset -s billing -d audit -t {TOPIC} --yes"
    )
    assert "Consume Diff Total: 7" in tool.ok("consumerProgress -g audit")
    tool.ok(f"skipAccumulatedMessage -g billing -t {TOPIC} --yes")
    [row] = [row for row in tool("consumerProgress").rows if row[0] == "audit"]
    assert row[1:] == ["0", "OFFLINE", "0", "7"]
    assert tool.ok(f"deleteSubGroup -c {CLUSTER} -g audit -r true --yes") == (
        f"delete subscription group [audit] from broker [{broker}] in cluster [{CLUSTER}] success.\n"
    )
    assert "no broker has a definition" in tool.bad("getConsumerConfig -g audit", 2)


def test_members(
    servers: Cluster, tool: Tool, sent: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        Producer("shop", name_servers=servers.name_servers) as producer,
        PushConsumer(
            "online", listener=lambda _: None, name_servers=servers.name_servers
        ) as consumer,
    ):
        consumer.subscribe(TOPIC, "tag0 || tag1")
        producer.send(Message(topic=TOPIC, body=b"one more"))
        wait_until(lambda: tool("consumerConnection -g online").code == 0, "it is known")
        said = tool.ok("consumerConnection -g online")
        assert "tag0 || tag1" in said
        assert "ConsumeType: CONSUME_PASSIVELY\nMessageModel: CLUSTERING\n" in said
        wait_until(lambda: "Rebalance OK" in tool("consumerStatus -g online").out, "it answers")
        [member] = tool.json("consumerConnection -g online")["connection_set"]
        assert (member_file := next(tmp_path.glob(f"*/{member['client_id']}"))).is_file()
        assert "#Consumer Subscription#" in member_file.read_text()
        assert "#Consumer MQ Detail#" in tool.ok(
            f"consumerStatus -g online -i {member['client_id']}"
        )

        def is_producer_known() -> bool:
            return tool(f"producerConnection -g shop -t {TOPIC}").code == 0

        wait_until(is_producer_known, "the producer has said hello")
        assert tool(f"producerConnection -g shop -t {TOPIC}").rows[0][0] == "0001"
        assert "producer group (shop) instance" in tool.ok(f"producer -b {servers.broker_address}")


def test_messages(servers: Cluster, tool: Tool, sent: list[str]) -> None:
    said = tool.ok(f"queryMsgById -i {sent[3]} -f UTF-8")
    assert "Keys:                [k3]\n" in said
    assert "Message Body:        body 3\n" in said
    path = re.findall(r"Message Body Path:   (.*)", said)[0]
    assert Path(path).read_bytes() == b"body 3"
    [document] = tool.json(f"queryMsgById -i {sent[3]}")
    assert (document["body"], document["keys"], document["queue"]) == ("body 3", ["k3"], 3)
    unique = document["message_id"]
    assert "Keys:                [k3]\n" in tool.ok(f"queryMsgByUniqueKey -t {TOPIC} -i {unique}")
    assert tool(f"queryMsgByKey -t {TOPIC} -k k3").rows[1][:2] == [unique, "3"]
    assert tool.json(f"queryMsgByOffset -t {TOPIC} -b {NAME} -i 3 -o 0")["body"] == "body 3"
    printed = tool.ok(f"printMsg -t {TOPIC} -s tag1")
    assert printed.count("MSGID: ") == MESSAGES // 2
    assert "body=[98, 111, 100, 121, 32, 51], transactionId='null'}] BODY: body 3\n" in printed
    lines = tool.ok(f"printMsg -t {TOPIC} --json").splitlines()
    assert {json.loads(line)["body"] for line in lines} >= {f"body {n}" for n in range(MESSAGES)}
    assert "Count: 2" in tool.ok(
        f"printMsgByQueue -t {TOPIC} -a {NAME} -i 1 -p true -d true -f true"
    )
    assert tool.ok(f"consumeMessage -t {TOPIC} -b {NAME} -i 0 -o 1 -c 1").count("MSGID: ") == 1
    assert "min: 0\n" in tool.ok(f"queryCq -t {TOPIC} -q 3 -i 0 -c 1 -b {servers.broker_address}")


def test_sending(tool: Tool, sent: list[str]) -> None:
    tool.ok(f"updateTopic -c {CLUSTER} -t Sent -r 2 -w 2")
    wait_until(lambda: tool("topicRoute -t Sent").code == 0, "the route")
    row = tool(f"sendMessage -t Sent -p 'hello there' -k one -c tag -b {NAME} -i 1").rows[1]
    assert row[:3] == [NAME, "1", "SEND_OK"]
    assert tool.json(f"queryMsgByUniqueKey -t Sent -i {row[3]}")[0]["body"] == "hello there"
    assert tool.ok("checkMsgSendRT -t Sent -a 3 -s 10").count(" true ") == 3
    assert tool.ok(f"sendMsgStatus -b {NAME} -c 2 -s 10").count("sendStatus=SEND_OK") == 2
    assert tool("clusterRT -a 2").rows[1][:2] == [CLUSTER, NAME]


def test_a_dead_letter_goes_back_to_its_group_alone(servers: Cluster, tool: Tool) -> None:
    tool.ok(f"updateTopic -c {CLUSTER} -t Dead -r 1 -w 1")
    wait_until(lambda: tool("topicRoute -t Dead").code == 0, "the route")
    got: dict[str, list[str]] = {"bills": [], "others": []}
    is_repaired = False
    soon = PushConsumerConfig(client=ClientConfig(persist_offsets_millis=50))

    def billing(message: ReceivedMessage) -> Outcome | None:
        if not is_repaired:
            return Outcome.to_dlq()
        got["bills"].append(message.message_id)
        return None

    def others(message: ReceivedMessage) -> None:
        got["others"].append(message.message_id)

    names = servers.name_servers
    with (
        PushConsumer("bills", listener=billing, name_servers=names, config=soon) as consumer,
        PushConsumer("others", listener=others, name_servers=names, config=soon) as other,
    ):
        consumer.subscribe("Dead")
        other.subscribe("Dead")
        unique = tool.json("sendMessage -t Dead -p 17 -k order-17")["message_id"]
        wait_until(lambda: tool.json("listDeadLetters -g bills")["total"] == 1, "it is dead")
        assert tool("listDeadLetters -g bills").rows[1][:3] == [unique, "Dead", "order-17"]
        is_repaired = True
        assert tool.ok(f"resendDeadLetters -g bills -i {unique} --yes") == (
            f"resend {unique} to group [bills] success.\n"
        )
        wait_until(lambda: got["bills"] == [unique], "its group gets it again")
        [document] = tool.json(f"queryMsgByUniqueKey -t Dead -i {unique}")
        said = tool.ok(f"queryMsgById -i {document['offset_id']} -g bills -s true")
        assert "SendResult [sendStatus=SEND_OK" in said
        wait_until(lambda: got["bills"] == [unique, unique], "and again")
        wait_until(lambda: got["others"] == [unique], "the other group has got it once")
        assert "expected ids" in tool.bad("resendDeadLetters -g bills --yes", 2)
        is_repaired = False
        tool.ok("sendMessage -t Dead -p 18 -k order-18")
        wait_until(lambda: tool.json("listDeadLetters -g bills")["total"] == 2, "two are dead")
        is_repaired = True
        asked = tool.bad("resendDeadLetters -g bills -a -m 1", 2)
        assert "deliver all dead letters (at most 1) of group bills" in asked
        first = tool("resendDeadLetters -g bills -a -m 1 --yes")
        assert (first.code, first.out) == (0, f"resend {unique} to group [bills] success.\n")
        assert "these were the first 1, " in first.err
        assert "there are more; -b TIME begins later" in first.err
        assert tool.ok("resendDeadLetters -g bills -a --yes").count("success") == 2
        assert tool.ok("resendDeadLetters -g others -a --yes") == (
            "group [others] has no dead letters to resend.\n"
        )
        assert "has no dead letter" in tool.bad("resendDeadLetters -g bills -i 00 --yes", 2)


def test_traces(servers: Cluster, tool: Tool) -> None:
    tool.ok(f"updateTopic -c {CLUSTER} -t Traces -r 1 -w 1")
    tool.ok(f"updateTopic -c {CLUSTER} -t Traced -r 1 -w 1")
    wait_until(lambda: tool("topicRoute -t Traced").code == 0, "the route")
    trace = TraceConfig(is_trace_on=True, trace_topic="Traces", flush_interval_ms=20)
    config = ProducerConfig(trace=trace)
    with Producer("tracing", name_servers=servers.name_servers, config=config) as producer:
        result = producer.send(Message(topic="Traced", body=b"x"))
    line = f"queryMsgTraceById -i {result.message_id} -t Traces"
    wait_until(lambda: "Pub" in tool(line).out, "the trace is stored")
    row = tool(line).rows[1]
    assert (row[0], row[1], row[-1]) == ("Pub", "tracing", "success")


def test_servers(servers: Cluster, tool: Tool) -> None:
    broker = servers.broker_address
    assert tool("clusterList").rows[1][:4] == [CLUSTER, NAME, "0", broker]
    assert tool("clusterList -m").rows[1][:2] == [CLUSTER, NAME]
    assert tool.json("clusterList")[0]["place"]["address"] == broker
    assert "brokerVersionDesc" in tool.ok(f"brokerStatus -b {broker}")
    assert tool.ok(f"brokerStatus -c {CLUSTER}").startswith(f"{broker:<24} ")
    assert tool.ok(f"getBrokerConfig -b {broker}").startswith(f"============{broker}============\n")
    assert f"============Master: {broker}====" in tool.ok(f"getBrokerConfig -c {CLUSTER}")
    assert tool.ok(f"updateBrokerConfig -b {broker} -k defaultTopicQueueNums -v 6") == (
        f"update broker config success, {broker}\n"
    )
    assert tool.json(f"getBrokerConfig -b {broker}")[broker]["defaultTopicQueueNums"] == "6"
    names = servers.name_servers
    assert tool.ok("getNamesrvConfig").startswith(f"============{names}============\n")
    assert tool.ok("updateNamesrvConfig -k orderMessageEnable -v true") == (
        f"update name server config success![{names}]\norderMessageEnable : true\n"
    )
    assert "success" in tool.ok("updateKvConfig -s space -k key -v value")
    assert "success" in tool.ok("deleteKvConfig -s space -k key --yes")
    wiped = tool.ok(f"wipeWritePerm -b {NAME} --yes")
    assert wiped.startswith(f"wipe write perm of broker[{NAME}] in name server[{names}] OK, ")
    assert " OK, " in tool.ok(f"addWritePerm -b {NAME}")
    assert tool.ok(f"cleanExpiredCQ -b {broker}") == "success\n"
    assert tool.ok(f"cleanUnusedTopic -c {CLUSTER} --yes") == "success\n"
    assert tool.ok(f"deleteExpiredCommitLog -b {broker} --yes") == "success\n"


def test_exports(servers: Cluster, tool: Tool, sent: list[str], tmp_path: Path) -> None:
    where = f"-c {CLUSTER} -f {tmp_path}"
    assert tool.ok(f"exportMetadata {where}") == f"export {tmp_path}/metadata.json success\n"
    metadata = json.loads((tmp_path / "metadata.json").read_text())
    assert metadata["topicConfigTable"][TOPIC]["readQueueNums"] == 4
    assert "TBW102" not in metadata["topicConfigTable"]
    tool.ok(f"exportMetadata {where} -t")
    assert "subscriptionGroupTable" not in json.loads((tmp_path / "topic.json").read_text())
    tool.ok(f"exportMetadata {where} -g")
    assert "topicConfigTable" not in json.loads((tmp_path / "subscriptionGroup.json").read_text())
    tool.ok(f"exportConfigs {where}")
    configs = json.loads((tmp_path / "configs.json").read_text())
    assert configs["brokerConfigs"][NAME]["flushDiskType"] == "ASYNC_FLUSH"
    assert configs["clusterScale"]["masterBrokerSize"] == 1
    tool.ok(f"exportMetrics {where}")
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["evaluateReport"][NAME]["runtimeQuota"]["topicSize"] > 0


def test_definitions_come_back(tool: Tool, tmp_path: Path) -> None:
    file = tmp_path / "definitions.json"
    tool.ok(f"updateTopic -c {CLUSTER} -t ComesBack -r 3 -w 3")
    tool.ok(f"exportDefinitions -c {CLUSTER} -f {file}")
    tool.ok(f"deleteTopic -c {CLUSTER} -t ComesBack --yes")
    plan = tool.ok(f"importDefinitions -c {CLUSTER} -f {file} -p")
    assert "create topic ComesBack" in plan
    assert "nothing was done" in plan
    assert "done: create topic ComesBack" in tool.ok(f"importDefinitions -c {CLUSTER} -f {file}")
    assert "0 changes" in tool.ok(f"importDefinitions -c {CLUSTER} -f {file} -p")
    file.write_text('{"topics": [{"topicName": "a b", "readQueNums": 3}]}')
    said = tool.bad(f"importDefinitions -c {CLUSTER} -f {file}", 2)
    assert "did you mean readQueueNums?" in said
    assert "nothing was changed" in said


def test_bad_input(servers: Cluster, tool: Tool, sent: list[str], tmp_path: Path) -> None:
    broker = servers.broker_address
    tool.ok(f"updateSubGroup -c {CLUSTER} -g looker")
    tool.ok(f"updateTopic -c {CLUSTER} -t WriteOnly -r 1 -w 1 -p 2")
    wait_until(lambda: tool("topicRoute -t WriteOnly").code == 0, "the route")
    for line, code, text in (
        ("topicStatus -t Nope", 2, "does not know topic 'Nope'"),
        ("consumerConnection -g Nobody", 2, "no consumer of group 'Nobody' was ever online here"),
        ("topicStatus", 2, "Missing required option: t"),
        ("topicStatus -t ''", 2, "expected a value for the option -t"),
        ("topicStatus -t Orders -x 1", 2, "Unrecognized option: -x"),
        ("topicStatus -t Orders more", 2, "got the word 'more'"),
        (f"updateTopic -b {broker} -c {CLUSTER} -t T", 2, "already been selected: 'b'"),
        ("updateTopic -t T", 2, "Missing required option: one of [-b"),
        (
            f"updateTopic -b {broker} -t T -r many",
            2,
            "a whole number for the option -r, got 'many'",
        ),
        (f"updateTopic -b {broker} -t T -r 0", 2, "at least one read queue"),
        (f"updateTopic -b {broker} -t T -p 9", 2, "2 (write), 4 (read) or 6 (both)"),
        (f"updateTopic -b {broker} -t T -p 1", 2, "2 (write), 4 (read) or 6 (both)"),
        (f"updateTopic -b {broker} -t T -o maybe", 2, "true or false for the option -o"),
        (f"updateTopic -b {broker} -t 'a b'", 2, "illegal characters"),
        (f"updateTopic -b {broker} -t T -a x", 2, "+name=value"),
        ("updateTopic -c Nowhere -t T", 2, "no cluster 'Nowhere'; there are: DefaultCluster"),
        ("updateTopic -b 127.0.0.1:1 -t T", 1, "cannot connect to 127.0.0.1:1: Connection refused"),
        ("updateTopic -b localhost:1 -t T", 1, "cannot connect to localhost:1: Connection refused"),
        ("updateTopic -b nonsense -t T", 2, "nonsense"),
        ("updateSubGroup -g billing", 2, "expected a broker (-b ADDRESS) or a cluster (-c NAME)"),
        (
            f"updateSubGroup -c {CLUSTER} -g g -r -5",
            2,
            "expected at least -1 for the option -r, got -5",
        ),
        ("updateSubGroup -c DefaultCluster -g g -p {", 2, "expected a retry policy like"),
        (f"updateTopicList -b {broker} -f {tmp_path}/none", 2, "No such file"),
        (
            f"importDefinitions -c {CLUSTER} -f {tmp_path}/none",
            2,
            f"cannot read {tmp_path}/none: No such file",
        ),
        (f"updateBrokerConfig -b {broker} -k listenPort -v 1", 1, "change the file and restart"),
        ("consumerProgress -g nobody-there", 2, "no group 'nobody-there'"),
        (
            f"resetOffsetByTime -g g -t {TOPIC} -s yesterday --yes",
            2,
            "like 2026-05-17#20:15:00:000",
        ),
        (f"resetOffsetByTime -g g -t {TOPIC} -s 0 -o 7 --yes", 2, "give its broker (-b)"),
        ("resetOffsetByTime -g looker -t Nope -s 0 --yes", 2, "Nope"),
        (f"resetOffsetByTime -g nobody -t {TOPIC} -s 0 --yes", 2, "no group 'nobody'; there are: "),
        (f"skipAccumulatedMessage -g nobody -t {TOPIC} --yes", 2, "updateSubGroup -g nobody"),
        ("resetOffsetByTime -g looker -t WriteOnly -s 0 --yes", 2, "no queue to read from"),
        ("printMsg -t Nope", 2, "does not know topic 'Nope'"),
        ("deleteTopic -c DefaultCluster -t Nope --yes", 2, "Nope"),
        (f"deleteTopic -c Nowhere -t {TOPIC} --yes", 2, "no cluster 'Nowhere'; there are: "),
        (f"deleteSubGroup -c {CLUSTER} -g nobody --yes", 2, "no group 'nobody'; there are: "),
        ("listDeadLetters -g nobody", 2, "no group 'nobody'; there are: "),
        ("resendDeadLetters -g nobody -a --yes", 2, "no group 'nobody'; there are: "),
        ("wipeWritePerm -b nobody --yes", 2, f"no broker 'nobody'; there are: {NAME}"),
        ("sendMsgStatus -b nobody -c 1", 2, f"no broker 'nobody'; there are: {NAME}"),
        ("addWritePerm -b nobody", 2, f"no broker 'nobody'; there are: {NAME}"),
        (f"sendMessage -t {TOPIC} -p x -b nobody", 2, f"from 0: 4 at {NAME}"),
        (
            f"queryMsgById -t {TOPIC} -i {sent[0]} -g Nobody -s true",
            2,
            "of group 'Nobody' was ever",
        ),
        (f"queryMsgByOffset -t {TOPIC} -b nobody -i 0 -o 0", 2, f"there are: {NAME}"),
        (f"brokerStatus -b {tool.name_servers}", 1, "is it a broker (port 10911 by default)"),
        (f"getNamesrvConfigs -b {broker}", 2, "did you mean getNamesrvConfig?"),
        (f"getControllerConfig -a {broker}", 1, "is it a controller (port 9878 by default)"),
        (f"listUser -b {broker}", 1, "accounts are not turned on there (authenticationEnabled)"),
        (f"clusterAclConfigVersion -b {broker}", 1, "(aclEnable)"),
        ("cloneGroupOffset -s nobody -d other -t Orders --yes", 2, "nobody"),
        ("queryMsgById -i 123", 2, "expected a message id"),
        (f"queryMsgByOffset -t {TOPIC} -b {NAME} -i 0 -o 99", 1, "has no message at offset 99"),
        (f"printMsg -t {TOPIC} -c KLINGON", 2, "expected a character set"),
        ("haStatus", 2, "expected a broker"),
        ("deleteSubGroup -g billing", 2, "expected a broker (-b ADDRESS) or a cluster"),
        ("resetMasterFlushOffset -b 127.0.0.1:1", 2, "a value for the option -o"),
        ("getSyncStateSet -a 127.0.0.1:1 -b x", 1, "127.0.0.1:1"),
        ("topicList --watch 2", 2, "--watch is for commands that show progress"),
        (f"topicStatus -t {TOPIC} --watch often", 2, "expected seconds"),
        ("topicList --color blue", 2, "auto, always or never"),
    ):
        assert text in tool.bad(line, code), line


def test_no_name_server_answers_or_one_of_two(servers: Cluster, tool: Tool) -> None:
    assert "no name server answered" in Tool("127.0.0.1:1").bad("topicList", 1)
    wrong_port = Tool(servers.broker_address).bad("topicList", 1)
    assert "is it a name server (port 9876 by default)" in wrong_port
    for written in ("http://127.0.0.1:9876", "127.0.0.1:9876,127.0.0.1:9877", "localhost"):
        assert "expected an address like 127.0.0.1:9876" in Tool(written).bad("topicList", 2)
    half = Tool(f"{tool.name_servers};127.0.0.1:1")
    said = half("updateNamesrvConfig -k orderMessageEnable -v true")
    assert said.code == 1
    assert f"success![{tool.name_servers}]" in said.out
    assert said.err.startswith("mqadmin: cannot connect to 127.0.0.1:1")
    assert half("topicList").code == 0


def test_what_is_destroyed_is_named_and_confirmed(tool: Tool) -> None:
    tool.ok(f"updateTopic -c {CLUSTER} -t Precious -r 1 -w 1")
    wait_until(lambda: tool("topicRoute -t Precious").code == 0, "the route")
    line = f"deleteTopic -c {CLUSTER} -t Precious"
    said = tool.bad(line, 2)
    assert "would delete topic Precious with all its messages from cluster DefaultCluster" in said
    assert "add --yes" in said
    for answer in ("n\n", "\n", ""):
        refused = tool(line, keyboard=Terminal(answer))
        assert refused.code == 2
        assert "This will delete topic Precious" in refused.err
        assert "nothing was done" in refused.err
    assert "Precious" in tool.ok("topicList").split()
    assert tool(line, keyboard=Terminal("y\n")).code == 0
    assert "Precious" not in tool.ok("topicList").split()


def test_watching(tool: Tool, sent: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    async def next_look(seconds: float) -> None:
        nonlocal looks
        looks += 1
        assert seconds == 2.5
        if looks == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("cometmq.cli.mqadmin.main._pause", next_look)
    said = tool("clusterList --watch 2.5")
    assert (said.code, said.out.count("#Cluster Name")) == (0, 3)
    looks = 0
    assert tool("clusterList -i 2.5").code == 0
    assert "#Broker Name" not in tool.bad("topicStatus -t Nope --watch 2.5", 2)


def test_a_terminal_gets_colours_and_columns_that_fit(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    head, row = tool("clusterList", screen=Terminal()).out.splitlines()
    assert head.startswith("\x1b[1m#Cluster")
    assert row.startswith(CLUSTER[:5])
    monkeypatch.setenv("NO_COLOR", "1")
    head, row = tool("clusterList", screen=Terminal()).out.splitlines()
    assert max(len(head), len(row)) <= 120 < len(tool("clusterList").out.splitlines()[0])
    assert "\x1b" not in head


def test_exit_codes_of_rocketmq(tool: Tool) -> None:
    for line, ours, theirs in (
        ("topicStatus -t Nope", 2, 0),
        ("topicStatus", 2, 1),
        ("no-such-command", 2, 0),
        ("brokerStatus -b 127.0.0.1:1", 1, 0),
        ("addBroker -c x -b y", 1, 0),
        ("topicList", 0, 0),
    ):
        assert tool(line).code == ours
        assert tool(f"{line} --rocketmq-exit-codes").code == theirs


def test_every_subcommand_was_run(tool: Tool, request: pytest.FixtureRequest) -> None:
    """Those about replication and accounts have clusters of their own: test_replicas, test_accounts."""
    ran = [item for item in request.session.items if item.path == Path(__file__)]
    if len(ran) < len([name for name in globals() if name.startswith("test_")]):
        pytest.skip("not all of this file runs")
    elsewhere = {
        command.name
        for command in COMMANDS
        if "cometmq.cli.mqadmin.ha" in command.run.__module__
        or "cometmq.cli.mqadmin.accounts" in command.run.__module__
    }
    assert tool.ran >= {command.name for command in COMMANDS} - elsewhere
