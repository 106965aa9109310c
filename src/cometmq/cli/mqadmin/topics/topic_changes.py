"""Topics: define, change and delete."""

from __future__ import annotations

from typing import Final

import msgspec

from cometmq.base.errors import UsageError
from cometmq.cli.mqadmin.arguments import Arguments
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.definition_file import read_definitions
from cometmq.cli.mqadmin.options import BROKER, CLUSTER, EITHER, TOPIC, needed, value
from cometmq.cli.mqadmin.texts import topic_text
from cometmq.model.flags import READ_WRITE, TopicFlag
from cometmq.model.topic import TopicConfig

WRITE: Final = 2
INHERITED_TOO: Final = 7
"""Of a topic from which others are made."""

ORDER_NAMESPACE: Final = "ORDER_TOPIC_CONFIG"
"""Where name servers keep which brokers have how many queues of an ordered topic."""


async def update_topic(call: Call) -> None:
    args, out = call.args, call.out
    config = _config(args)
    target = call.target()
    before = (await call.admin.topics.definitions(target)).done
    done = await call.admin.topics.create(config, target)
    for address in done.done:
        out.line(f"create topic to {address} success.")
    out.failures(done.failed, of_change=True)
    for address in done.done:
        old = before.get(address, {}).get(config.topic_name)
        if old is not None and old.read_queue_nums > config.read_queue_nums:
            out.warning(
                f"topic {config.topic_name} had {old.read_queue_nums} queues to read from at {address}, and has "
                f"{config.read_queue_nums} now; messages in the others are no longer consumed: "
                f"-r {old.read_queue_nums} brings them back"
            )
    if config.order and done.done:
        places = await call.admin.brokers.places()
        names = sorted({place.broker_name for place in places if place.address in done.done})
        order = ";".join(f"{name}:{config.write_queue_nums}" for name in names)
        kept = await call.admin.kv.put(ORDER_NAMESPACE, config.topic_name, order)
        out.failures(kept.failed)
        where = "broker" if target.address else "cluster"
        out.line(f"set {where} orderConf. isOrder=true, orderConf=[{order}]")
    if done.done:
        out.line(topic_text(config))
    out.value({"done": list(done.done), "topic": config})


def _config(args: Arguments) -> TopicConfig:
    flags = TopicFlag.UNIT if args.truth("u", False) else 0
    flags |= TopicFlag.UNIT_SUB if args.truth("s", False) else 0
    return TopicConfig(
        topic_name=args.needed("t"),
        read_queue_nums=args.number("r", 8),
        write_queue_nums=args.number("w", 8),
        perm=_perm(args),
        topic_sys_flag=int(flags),
        order=args.truth("o", False),
        attributes=attributes(args.text("a", "")) or None,
    )


def _perm(args: Arguments) -> int:
    """RocketMQ's tool takes any number, and makes a topic that nobody can use."""
    perm = args.number("p", READ_WRITE)
    if not WRITE <= perm <= INHERITED_TOO:
        raise UsageError(
            f"expected a permission of 2 (write), 4 (read) or 6 (both) for the option -p, got {perm}"
        )
    return perm


def attributes(text: str) -> dict[str, str]:
    """``+a=b,-c`` as ``{"+a": "b", "-c": ""}``. Raises UsageError for what is neither set nor removed."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, content = part.partition("=")
        if (key[:1], bool(equals)) not in (("+", True), ("-", False)) or not key[1:]:
            raise UsageError(f"expected attributes like +name=value or -name, got {part!r}")
        found[key] = content
    return found


async def update_topic_list(call: Call) -> None:
    configs = read_definitions(call.args.needed("f"), TopicConfig, '[{"topicName": "Orders"}]')
    done = await call.admin.topics.create_many(configs, call.target())
    call.out.done(
        done,
        "submit batch of topic config to {address} success, please check the result later.",
        topics=[config.topic_name for config in configs],
    )


async def delete_topic(call: Call) -> None:
    topic, cluster = call.args.needed("t"), call.args.needed("c")
    done = await call.admin.topics.delete(topic, cluster)
    if done.is_complete:
        call.out.line(f"delete topic [{topic}] from cluster [{cluster}] success.")
        call.out.line(f"delete topic [{topic}] from NameServer success.")
    call.out.done(done, topic=topic)


async def update_topic_perm(call: Call) -> None:
    args, out = call.args, call.out
    topic, perm = args.needed("t"), args.number("p", 6)
    target = call.target()
    done = await call.admin.topics.set_perm(topic, perm, target)
    for address, before in done.done.items():
        if before.perm == perm and target.address:
            out.line("new perm equals to the old one!")
            continue
        out.line(f"update topic perm from {before.perm} to {perm} in {address} success.")
        if target.address:
            out.line(f"{topic_text(msgspec.structs.replace(before, perm=perm))}.")
    out.done(done, topic=topic, perm=perm)


async def update_order_conf(call: Call) -> None:
    args, out = call.args, call.out
    topic, method = args.needed("t"), args.needed("m")
    kv = call.admin.kv
    if method == "put":
        order = args.text("v")
        if order is None:
            raise UsageError(
                "expected queues by broker for the option -v, such as broker-a:4;broker-b:4"
            )
        out.failures((await kv.put(ORDER_NAMESPACE, topic, order)).failed)
        out.line(f"update orderConf success. topic=[{topic}], orderConf=[{order}]")
    elif method == "get":
        found = await kv.get(ORDER_NAMESPACE, topic)
        if found is None:
            raise UsageError(f"topic {topic!r} has no order configuration; set it with -m put")
        order = found
        out.line(f"get orderConf success. topic=[{topic}], orderConf=[{order}] ")
    elif method == "delete":
        order = ""
        out.failures((await kv.delete(ORDER_NAMESPACE, topic)).failed)
        out.line(f"delete orderConf success. topic=[{topic}]")
    else:
        raise UsageError(f"expected put, get or delete for the option -m, got {method!r}")
    out.value({"topic": topic, "order": order})


def _order_text(args: Arguments) -> str:
    if args.text("m") != "delete":
        return ""
    return f"delete which brokers have the queues of the ordered topic {args.text('t')}"


COMMANDS: Final = (
    Command(
        name="updateTopic",
        summary="Create a topic, or change it.",
        run=update_topic,
        options=(
            BROKER,
            CLUSTER,
            TOPIC,
            value("r", "readQueueNums", "number of queues to read from (8)"),
            value("w", "writeQueueNums", "number of queues to write to (8)"),
            value("p", "perm", "2 write, 4 read, 6 both (6)"),
            value("o", "order", "true: an ordered topic, whose queues stay when a broker is down"),
            value("u", "unit", "true: a topic of a unit"),
            value("s", "hasUnitSub", "true: subscribed to across units"),
            value("a", "attributes", "like +message.type=FIFO,-old"),
        ),
        groups=EITHER,
        examples=("updateTopic -c DefaultCluster -t Orders -r 8 -w 8",),
    ),
    Command(
        name="updateTopicList",
        summary="Create topics, or change them, from a file.",
        run=update_topic_list,
        options=(
            BROKER,
            CLUSTER,
            needed("f", "filename", "JSON array of topics"),
        ),
        groups=EITHER,
        examples=("updateTopicList -c DefaultCluster -f topics.json",),
    ),
    Command(
        name="deleteTopic",
        summary="Delete a topic with its messages from brokers and name servers.",
        run=delete_topic,
        options=(TOPIC, needed("c", "clusterName", "the cluster that has it")),
        confirm=lambda args: (
            f"delete topic {args.text('t')} with all its messages from cluster {args.text('c')}"
        ),
        examples=("deleteTopic -c DefaultCluster -t Orders --yes",),
    ),
    Command(
        name="updateTopicPerm",
        summary="Change whether a topic can be read and written.",
        run=update_topic_perm,
        options=(BROKER, CLUSTER, TOPIC, needed("p", "perm", "2 write, 4 read, 6 both")),
        examples=("updateTopicPerm -c DefaultCluster -t Orders -p 4",),
    ),
    Command(
        name="updateOrderConf",
        summary="Set, show or delete which brokers have the queues of an ordered topic.",
        run=update_order_conf,
        options=(
            TOPIC,
            needed("m", "method", "put, get or delete"),
            value("v", "orderConf", "like broker-a:4;broker-b:4"),
        ),
        confirm=_order_text,
        examples=("updateOrderConf -t Orders -m put -v 'broker-a:4;broker-b:4'",),
    ),
)
