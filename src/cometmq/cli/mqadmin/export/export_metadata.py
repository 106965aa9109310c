"""Topics and groups of a cluster in one file, in RocketMQ's form."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from cometmq.base.errors import UsageError
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.export.files import FOLDER, save_document
from cometmq.cli.mqadmin.options import BROKER, CLUSTER, flag, value
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.names import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    SYSTEM_GROUPS,
    SYSTEM_PREFIX,
    SYSTEM_TOPICS,
)
from cometmq.model.topic import TopicConfig

_SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"


async def export_metadata(call: Call) -> None:
    args = call.args
    if "t" in args and "g" in args:
        raise UsageError("expected one of -t (only topics) and -g (only groups), got both")
    document: dict[str, Any] = {"exportTime": time.time_ns() // 1_000_000}
    if "g" not in args:
        document["topicConfigTable"] = await _topics(call)
    if "t" not in args:
        document["subscriptionGroupTable"] = await _groups(call)
    name = "topic" if "t" in args else "subscriptionGroup" if "g" in args else "metadata"
    path = save_document(args.text("f", FOLDER), f"{name}.json", document)
    call.out.line(f"export {path} success")
    call.out.value({"path": path})


async def _topics(call: Call) -> dict[str, Any]:
    target = call.target()
    system = await call.admin.brokers.system_topics(target)
    tables = await call.admin.topics.definitions(target)
    tables.raise_failed("reading the topics")
    hidden = SYSTEM_TOPICS.union(*system.raise_failed("reading the system topics").values())
    special = () if "s" in call.args else (RETRY_PREFIX, DLQ_PREFIX)
    merged = merged_topics(tables.values())
    return {
        name: msgspec.to_builtins(config)
        for name, config in merged.items()
        if name not in hidden and not name.startswith((SYSTEM_PREFIX, *special))
    }


def merged_topics(tables: Iterable[Mapping[str, TopicConfig]]) -> dict[str, TopicConfig]:
    """One definition for each name: its queues at all brokers, added up, as RocketMQ's tool does."""
    merged: dict[str, TopicConfig] = {}
    for table in tables:
        for name, config in table.items():
            known = merged.get(name)
            if known is None:
                merged[name] = msgspec.structs.replace(config)
                continue
            known.read_queue_nums += config.read_queue_nums
            known.write_queue_nums += config.write_queue_nums
    return dict(sorted(merged.items()))


async def _groups(call: Call) -> dict[str, Any]:
    tables = await call.admin.groups.definitions(call.target())
    tables.raise_failed("reading the groups")
    merged: dict[str, SubscriptionGroupConfig] = {}
    for table in tables.values():
        merged = {**table, **merged}
    return {
        name: msgspec.to_builtins(config)
        for name, config in sorted(merged.items())
        if name not in SYSTEM_GROUPS and not name.startswith(_SYSTEM_GROUP_PREFIX)
    }


COMMANDS: Final = (
    Command(
        name="exportMetadata",
        summary="Save the topics and groups of a cluster or broker in a file.",
        run=export_metadata,
        options=(
            CLUSTER,
            BROKER,
            value("f", "filePath", f"the directory of the file ({FOLDER})"),
            flag("t", "topic", "only topics"),
            flag("g", "subscriptionGroup", "only groups"),
            flag("s", "specialTopic", "retry topics and dead letters, too"),
        ),
        examples=("exportMetadata -c DefaultCluster -f ./export",),
    ),
)
