"""Settings and figures of a cluster in one file each, in RocketMQ's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.export.files import FOLDER, save_document
from cometmq.cli.mqadmin.options import needed, value
from cometmq.cli.mqadmin.texts import version_text
from cometmq.model.names import HALF_TOPIC, SCHEDULE_TOPIC, SYSTEM_GROUPS
from cometmq.protocol.command import VERSION

if TYPE_CHECKING:
    from cometmq.admin import BrokerFigures, Place
    from cometmq.protocol.bodies.connection import ConsumerConnection
    from cometmq.protocol.bodies.stats import BrokerStatsData

SETTINGS: Final = (
    *("brokerClusterName", "brokerId", "brokerName", "brokerRole", "fileReservedTime"),
    *("filterServerNums", "flushDiskType", "maxMessageSize", "messageDelayLevel"),
    *("msgTraceTopicName", "slaveReadEnable", "traceOn", "traceTopicEnable", "useTLS"),
    *("autoCreateTopicEnable", "autoCreateSubscriptionGroup"),
)
"""Those that say what a broker is for. The others are about its machine."""


async def export_configs(call: Call) -> None:
    from cometmq.admin import Target

    cluster = call.args.needed("c")
    places = await call.admin.brokers.places(Target(cluster=cluster, with_slaves=True))
    answers = await call.admin.brokers.settings(Target(cluster=cluster))
    names = {place.address: place.broker_name for place in places}
    masters = [place for place in places if place.is_master]
    document = {
        "brokerConfigs": {
            names[address]: {key: found[key] for key in SETTINGS if key in found}
            for address, found in answers.done.items()
        },
        "clusterScale": {
            "namesrvSize": len(call.admin.name_servers.addresses),
            "masterBrokerSize": len(masters),
            "slaveBrokerSize": len(places) - len(masters),
        },
    }
    path = save_document(call.args.text("f", FOLDER), "configs.json", document)
    call.out.line(f"export {path} success")
    call.out.failures(answers.failed)
    call.out.value({"path": path})


async def export_metrics(call: Call) -> None:
    from cometmq.admin import BrokerFigures, Target

    target = Target(cluster=call.args.needed("c"))
    found = await call.admin.clusters.brokers(target)
    report: dict[str, Any] = {}
    rates: dict[str, float] = {}
    counts: dict[str, int] = {}
    for row in found:
        figures = row.figures or BrokerFigures({})
        broker = await _broker(call, row.place, figures)
        report[row.place.broker_name] = broker
        for name, rate in broker["runtimeQuota"]["tps"].items():
            total = f"total{name[0].upper()}{name[1:]}"
            rates[total] = rates.get(total, 0.0) + rate
        for name, count in broker["runtimeQuota"]["oneDayNum"].items():
            counts[name] = counts.get(name, 0) + count
    document = {
        "evaluateReport": report,
        "totalData": {"totalTps": rates, "totalOneDayNum": counts},
    }
    path = save_document(call.args.text("f", FOLDER), "metrics.json", document)
    call.out.line(f"export {path} success")
    call.out.failures(found.failed)
    call.out.value({"path": path})


async def _broker(call: Call, place: Place, figures: BrokerFigures) -> dict[str, Any]:
    from cometmq.admin import Target

    target = Target(address=place.address)
    half = await _counter(call, HALF_TOPIC, target)
    delayed = await _counter(call, SCHEDULE_TOPIC, target)
    topics = (await call.admin.topics.definitions(target)).done.get(place.address, {})
    groups = (await call.admin.groups.definitions(target)).done.get(place.address, {})
    online = await call.admin.connections.all_consumers(target)
    call.out.failures(online.failed)
    env = {"totalMemKBytes": figures.table.get("totalMemKBytes")}
    return {
        "runtimeEnv": {key: text for key, text in env.items() if text is not None},
        "runtimeQuota": {
            "diskRatio": {
                "commitLogDiskRatio": figures.table.get("commitLogDiskRatio"),
                "consumeQueueDiskRatio": figures.table.get("consumeQueueDiskRatio"),
            },
            "tps": {
                "normalInTps": figures.put_tps,
                "normalOutTps": figures.get_tps,
                "transInTps": half.stats_minute.tps if half else 0.0,
                "scheduleInTps": delayed.stats_minute.tps if delayed else 0.0,
            },
            "oneDayNum": {
                "normalOneDayInNum": figures.put_yesterday,
                "normalOneDayOutNum": figures.get_yesterday,
                "transOneDayInNum": day_sum(half),
                "scheduleOneDayInNum": day_sum(delayed),
            },
            "messageAverageSize": figures.table.get("putMessageAverageSize"),
            "topicSize": len(topics),
            "groupSize": len(groups),
        },
        "runtimeVersion": {
            "rocketmqVersion": figures.version or version_text(VERSION),
            "clientInfo": _clients(online.done.get(place.address, {})),
        },
    }


async def _counter(call: Call, topic: str, target: Any) -> BrokerStatsData | None:
    answers = await call.admin.brokers.stats("TOPIC_PUT_NUMS", topic, target)
    return next(iter(answers.values()), None)


def day_sum(stats: BrokerStatsData | None) -> int:
    """Messages of the last day, or of as long as the broker has counted."""
    if stats is None:
        return 0
    return stats.stats_day.sum or stats.stats_hour.sum or stats.stats_minute.sum


def _clients(online: Mapping[str, ConsumerConnection]) -> list[str]:
    """Languages and versions of the consumers that are online."""
    return sorted(
        {
            f"{one.language}%{version_text(one.version)}"
            for group, told in online.items()
            if group not in SYSTEM_GROUPS
            for one in told.connection_set
        }
    )


CLUSTER: Final = needed("c", "clusterName", "the cluster")
PATH: Final = value("f", "filePath", f"the directory of the file ({FOLDER})")

COMMANDS: Final = (
    Command(
        name="exportConfigs",
        summary="Save the most important settings of a cluster's masters in a file.",
        run=export_configs,
        options=(CLUSTER, PATH),
        examples=("exportConfigs -c DefaultCluster -f ./export",),
    ),
    Command(
        name="exportMetrics",
        summary="Save the figures of a cluster's masters in a file.",
        run=export_metrics,
        options=(CLUSTER, PATH),
        examples=("exportMetrics -c DefaultCluster -f ./export",),
    ),
)
