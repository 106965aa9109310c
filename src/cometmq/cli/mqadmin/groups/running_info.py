"""What a consumer tells about itself, in the form of RocketMQ's tool. No I/O."""

from __future__ import annotations

from typing import Final

from cometmq.cli.mqadmin.texts import java, time_text
from cometmq.protocol.bodies.running import ConsumerRunningInfo

_QUEUE: Final = "%-64.64s  %-32.32s  %-4s  %s"
_RATES: Final = "%-64.64s  %14.2f %14.2f %14.2f %14.2f %18.2f %25d"
_RATES_HEAD: Final = "%-64s  %14s %14s %14s %14s %18s %25s"


def running_info_text(info: ConsumerRunningInfo) -> str:
    sections = {
        "Properties": [f"{key:<40}: {text}" for key, text in sorted(info.properties.items())],
        "Subscription": _subscriptions(info),
        "Offset": _offsets(info),
        "MQ Detail": _queues(info),
        "RT&TPS": _rates(info),
    }
    user = info.user_consumer_info or {}
    if user:
        sections["Info"] = [f"{key:<40}: {java(one)}" for key, one in sorted(user.items())]
    if info.jstack:
        sections["jstack"] = [info.jstack]
    parts = ["\n".join([f"#Consumer {title}#", *lines]) for title, lines in sections.items()]
    return "\n\n\n".join(parts) + "\n"


def _subscriptions(info: ConsumerRunningInfo) -> list[str]:
    return [
        f"{number:03d} Topic: {one.topic:<40} ClassFilter: false    SubExpression: {one.sub_string}"
        for number, one in enumerate(info.subscription_set, start=1)
    ]


def _offsets(info: ConsumerRunningInfo) -> list[str]:
    lines = [_QUEUE % ("#Topic", "#Broker Name", "#QID", "#Consumer Offset")]
    for queue, told in sorted(info.mq_table.items()):
        lines.append(_QUEUE % (queue.topic, queue.broker_name, queue.queue_id, told.commit_offset))
    return lines


def _queues(info: ConsumerRunningInfo) -> list[str]:
    lines = [_QUEUE % ("#Topic", "#Broker Name", "#QID", "#ProcessQueueInfo")]
    for queue, told in sorted(info.mq_table.items()):
        names = zip(told.__struct_encode_fields__, told.__struct_fields__, strict=True)
        state = ", ".join(
            f"{name}={_value(name, getattr(told, attribute))}" for name, attribute in names
        )
        shown = f"ProcessQueueInfo [{state}]"
        lines.append(_QUEUE % (queue.topic, queue.broker_name, queue.queue_id, shown))
    return lines


def _rates(info: ConsumerRunningInfo) -> list[str]:
    titles = (
        *("#Topic", "#Pull RT", "#Pull TPS", "#Consume RT", "#ConsumeOK TPS"),
        *("#ConsumeFailed TPS", "#ConsumeFailedMsgsInHour"),
    )
    lines = [_RATES_HEAD % titles]
    for topic, rate in sorted(info.status_table.items()):
        figures = (
            *(rate.pull_rt, rate.pull_tps, rate.consume_rt, rate.consume_ok_tps),
            *(rate.consume_failed_tps, rate.consume_failed_msgs),
        )
        lines.append(_RATES % (topic, *figures))
    return lines


def _value(name: str, found: object) -> str:
    if name.endswith("Timestamp") and isinstance(found, int):
        return time_text(found) or "never"
    return java(found)
