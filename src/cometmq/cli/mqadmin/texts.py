"""How RocketMQ's tool writes times, permissions and definitions. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from cometmq.model.flags import perm_text
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.topic import TopicConfig

SETTING: Final = "%-50s=  %s"


def time_text(milliseconds: int) -> str:
    """``2026-05-17 20:15:00,000`` in the zone of this machine; empty for 0."""
    if milliseconds <= 0:
        return ""
    moment = datetime.fromtimestamp(milliseconds // 1000).astimezone()
    return f"{moment:%Y-%m-%d %H:%M:%S},{milliseconds % 1000:03d}"


def java(value: object) -> str:
    """A value as Java prints it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key}={java(one)}" for key, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(java, value))}]"
    return str(value)


def topic_text(config: TopicConfig) -> str:
    return (
        f"TopicConfig [topicName={config.topic_name}, readQueueNums={config.read_queue_nums}, "
        f"writeQueueNums={config.write_queue_nums}, perm={perm_text(config.perm)}, "
        f"topicFilterType={config.topic_filter_type}, topicSysFlag={config.topic_sys_flag}, "
        f"order={java(config.order)}, attributes={java(config.attributes or {})}]"
    )


def group_text(config: SubscriptionGroupConfig) -> str:
    fields = group_fields(config)
    return (
        f"SubscriptionGroupConfig{{{', '.join(f'{key}={text}' for key, text in fields.items())}}}"
    )


def group_fields(config: SubscriptionGroupConfig) -> dict[str, str]:
    """Names and values in RocketMQ's order; what the broker does not tell has the value that it means."""
    meant = {
        "consumeMessageOrderly": False,
        "groupRetryPolicy": {},
        "groupSysFlag": 0,
        "consumeTimeoutMinute": 15,
        "attributes": {},
    }
    names = zip(config.__struct_encode_fields__, config.__struct_fields__, strict=True)
    found = {name: getattr(config, attribute) for name, attribute in names}
    fields = {
        name: _field(meant.get(name) if one is None else one, name) for name, one in found.items()
    }
    policy = fields.pop("groupRetryPolicy")
    place = list(fields).index("brokerId")
    entries = list(fields.items())
    return dict([*entries[:place], ("groupRetryPolicy", policy), *entries[place:]])


def _field(value: object, name: str) -> str:
    if name == "groupRetryPolicy":
        return retry_policy_text(value)
    if isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
        return java([str(one) for one in value])
    return java(value)


def retry_policy_text(policy: object) -> str:
    shown = policy if isinstance(policy, dict) else {}
    return (
        f"GroupRetryPolicy{{type={shown.get('type', 'CUSTOMIZED')}, "
        f"exponentialRetryPolicy={java(shown.get('exponentialRetryPolicy'))}, "
        f"customizedRetryPolicy={java(shown.get('customizedRetryPolicy'))}}}"
    )


def version_text(number: int) -> str:
    """``V4_9_8`` for the number that a client sends. From 4.0.0 on, RocketMQ counts two for each release."""
    release, is_released = divmod(number - _VERSION_4_0_0, 2)
    if release < 0:
        return f"V3 ({number})"
    if release >= _RELEASES_MAX:
        return "HIGHER_VERSION"
    name = f"V{4 + release // 100}_{release // 10 % 10}_{release % 10}"
    return name if is_released else f"{name}_SNAPSHOT"


_VERSION_4_0_0: Final = 212
_RELEASES_MAX: Final = 200
