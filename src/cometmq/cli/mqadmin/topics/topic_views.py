"""Topics: which there are, where their queues are, and who consumes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from cometmq.base.errors import UsageError
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.options import ROUTE_CLUSTER, TOPIC, flag, needed
from cometmq.cli.mqadmin.texts import time_text
from cometmq.model.allocation import allocate
from cometmq.model.message_queue import MessageQueue
from cometmq.model.names import DLQ_PREFIX, RETRY_PREFIX
from cometmq.protocol.bodies.route import encode_route

ROUTE: Final = Layout(
    ("#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm"),
    "%-45s %-32s %-50s %-10s %-11s %-5s",
)
STATUS: Final = Layout(
    ("#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated"),
    "%-32s  %-4s  %-20s  %-20s    %s",
    "%-32.32s  %-4s  %-20s  %-20s    %s",
)
CONSUMERS: Final = Layout(
    ("#Cluster Name", "#Topic", "#Consumer Group"),
    "%-20s  %-48s  %-48s",
    "%-20.20s  %-64.64s  %-64.64s",
)


async def topic_route(call: Call) -> None:
    route = await call.admin.topics.route(call.args.needed("t"))
    document = msgspec.json.decode(encode_route(route, standard=True))
    if "l" not in call.args:
        call.out.document(document)
        return
    call.out.value(document)
    queues = {data.broker_name: data for data in route.queue_datas}
    rows = []
    for broker in sorted(route.broker_datas, key=lambda data: (data.cluster, data.broker_name)):
        addresses = ", ".join(f"{number}={one}" for number, one in broker.broker_addrs.items())
        data = queues.get(broker.broker_name)
        numbers = (data.read_queue_nums, data.write_queue_nums, data.perm) if data else (0, 0, 0)
        rows.append((broker.cluster, broker.broker_name, f"{{{addresses}}}", *map(str, numbers)))
    call.out.table(ROUTE, rows)
    call.out.line("-" * 158)
    reads = sum(data.read_queue_nums for data in route.queue_datas)
    writes = sum(data.write_queue_nums for data in route.queue_datas)
    total = ("Total:", str(len(rows)), "", str(reads), str(writes), "")
    call.out.line(ROUTE.line(total))


async def topic_status(call: Call) -> None:
    status = await call.admin.topics.status(call.args.needed("t"))
    rows = [
        (
            row.queue.broker_name,
            str(row.queue.queue_id),
            str(row.min_offset),
            str(row.max_offset),
            time_text(row.updated_ms),
        )
        for row in status.queues
    ]
    call.out.table(STATUS, rows)
    call.out.line()
    call.out.line(f"Topic Put TPS: {status.put_tps or 0.0}")
    call.out.failures(status.failed)
    call.out.value(status)


async def topic_cluster_list(call: Call) -> None:
    clusters = await call.admin.topics.clusters(call.args.needed("t"))
    for name in clusters:
        call.out.line(name)
    call.out.value(clusters)


async def topic_list(call: Call) -> None:
    names = await call.admin.topics.names()
    if "c" not in call.args:
        for name in names:
            call.out.line(name)
        call.out.value(names)
        return
    await _topics_with_consumers(call, names)


async def _topics_with_consumers(call: Call, names: Iterable[str]) -> None:
    """A row per group; one without a group for a topic that nobody consumes."""
    cluster_of = {place.broker_name: place.cluster for place in await call.admin.brokers.places()}
    defined = await call.admin.topics.rows()
    consumed = await call.admin.topics.all_groups()
    clusters = {row.name: cluster_of[min(row.by_broker)] for row in defined}
    groups = {row.topic: row.groups for row in consumed}
    rows = [
        (clusters.get(name, ""), name, group)
        for name in names
        if not name.startswith((RETRY_PREFIX, DLQ_PREFIX))
        for group in groups.get(name) or [""]
    ]
    call.out.table(CONSUMERS, rows)
    call.out.failures({**defined.failed, **consumed.failed})
    call.out.value([dict(zip(("cluster", "topic", "group"), row, strict=True)) for row in rows])


async def allocate_queues(call: Call) -> None:
    topic, members = call.args.needed("t"), call.args.names("i")
    if not members:
        raise UsageError("expected members like 10.0.0.1,10.0.0.2 for the option -i")
    route = await call.admin.topics.route(topic)
    queues = [
        MessageQueue(topic=topic, broker_name=data.broker_name, queue_id=number)
        for data in route.queue_datas
        for number in range(data.read_queue_nums)
    ]
    result = {
        member: [
            {"brokerName": one.broker_name, "queueId": one.queue_id, "topic": one.topic}
            for one in allocate("AVG", member, queues, members) or []
        ]
        for member in members
    }
    call.out.line(msgspec.json.encode({"result": result}).decode())
    call.out.value({"result": result})


COMMANDS: Final = (
    Command(
        name="topicRoute",
        summary="Show where the queues of a topic are.",
        run=topic_route,
        options=(TOPIC, flag("l", "list", "as a table")),
        examples=("topicRoute -t Orders -l",),
    ),
    Command(
        name="topicStatus",
        summary="Show the first and last offset of each queue of a topic.",
        run=topic_status,
        options=(TOPIC, ROUTE_CLUSTER),
        can_watch=True,
        examples=("topicStatus -t Orders", "topicStatus -t Orders --watch 2"),
    ),
    Command(
        name="topicClusterList",
        summary="List the clusters that have a topic.",
        run=topic_cluster_list,
        options=(TOPIC,),
        examples=("topicClusterList -t Orders",),
    ),
    Command(
        name="topicList",
        summary="List all topics.",
        run=topic_list,
        options=(flag("c", "clusterModel", "with clusters and consumer groups"),),
        examples=("topicList", "topicList -c"),
    ),
    Command(
        name="allocateMQ",
        summary="Show how a topic's queues would be shared among members of a group.",
        run=allocate_queues,
        options=(TOPIC, needed("i", "ipList", "names of the members, separated by commas")),
        examples=("allocateMQ -t Orders -i 10.0.0.1,10.0.0.2",),
    ),
)
