"""Consumer groups: define, change and delete."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cometmq.base.errors import UsageError
from cometmq.cli.mqadmin.arguments import Arguments
from cometmq.cli.mqadmin.call import NO_TARGET, Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.definition_file import read_definitions
from cometmq.cli.mqadmin.options import BROKER, CLUSTER, EITHER, needed, value
from cometmq.cli.mqadmin.texts import group_fields, group_text
from cometmq.cli.mqadmin.topics.topic_changes import attributes
from cometmq.model.group import SubscriptionGroupConfig

GROUP: Final = needed("g", "groupName", "the consumer group")


async def update_group(call: Call) -> None:
    config = _config(call.args)
    done = await call.admin.groups.create(config, call.target())
    for address in done.done:
        call.out.line(f"create subscription group to {address} success.")
    if done.done:
        call.out.text(group_text(config))
    call.out.done(done, group=config)


def _config(args: Arguments) -> SubscriptionGroupConfig:
    """Without options, RocketMQ's tool allows neither broadcasting nor a start from the beginning; so do we."""
    return SubscriptionGroupConfig(
        group_name=args.needed("g"),
        consume_enable=args.truth("s", True),
        consume_from_min_enable=args.truth("m", False),
        consume_broadcast_enable=args.truth("d", False),
        consume_message_orderly=args.truth("o", False),
        retry_queue_nums=args.number("q", 1, low=0),
        retry_max_times=args.number("r", 16, low=-1),
        group_retry_policy=_retry_policy(args.text("p")),
        broker_id=args.number("i", 0),
        which_broker_when_consume_slowly=args.number("w", 1),
        notify_consumer_ids_changed_enable=args.truth("a", True),
        attributes=attributes(args.text("attributes", "")) or None,
    )


def _retry_policy(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UsageError(
            'expected a retry policy like {"type":"CUSTOMIZED","customizedRetryPolicy":{"next":[1000,5000]}} '
            f"for the option -p, got {text!r}: {error}"
        ) from None


async def update_group_list(call: Call) -> None:
    configs = read_definitions(
        call.args.needed("f"), SubscriptionGroupConfig, '[{"groupName": "billing"}]'
    )
    done = await call.admin.groups.create_many(configs, call.target())
    call.out.done(
        done,
        "submit batch of group config to {address} success, please check the result later.",
        groups=[config.group_name for config in configs],
    )


async def delete_group(call: Call) -> None:
    group = call.args.needed("g")
    target = call.target()
    await call.admin.groups.check_known(group, target)
    done = await call.admin.groups.delete(group, target, remove_offsets=call.args.truth("r", False))
    brokers = [place.address for place in await call.admin.brokers.places()]
    for address in done.done:
        if target.address:
            call.out.line(f"delete subscription group [{group}] from broker [{address}] success.")
        elif address in brokers:
            call.out.line(
                f"delete subscription group [{group}] from broker [{address}] in cluster "
                f"[{target.cluster}] success."
            )
    call.out.done(done, group=group)


def _delete_text(args: Arguments) -> str:
    group, address, cluster = args.text("g"), args.text("b"), args.text("c")
    if address:
        return f"delete group {group} from broker {address}"
    if cluster:
        return f"delete group {group} with its retries and dead letters from cluster {cluster}"
    raise UsageError(NO_TARGET)


async def set_consume_mode(call: Call) -> None:
    args = call.args
    group, topic, mode = args.needed("g"), args.needed("t"), args.needed("m").upper()
    queues = args.number("q", 0, low=0)
    done = await call.admin.groups.set_consume_mode(
        group, topic, mode, pop_share_queues=queues, target=call.target()
    )
    for address in done.done:
        call.out.line(f"set consume mode to {address} success.")
    if done.done:
        call.out.line(
            f"topic[{topic}] group[{group}] consume mode[{mode}] popShareQueueNum[{queues}]"
        )
    call.out.done(done, topic=topic, group=group, mode=mode)


async def consumer_config(call: Call) -> None:
    group = call.args.needed("g")
    tables = await call.admin.groups.definitions()
    found = {}
    for place in await call.admin.brokers.places():
        config = tables.done.get(place.address, {}).get(group)
        if config is None:
            continue
        found[place.broker_name] = config
        edge = "=" * 29
        call.out.line(f"{edge}{place.cluster}:{place.broker_name}{edge}")
        for name, text in group_fields(config).items():
            call.out.line(f"{name:<40}=  {'' if text == 'null' else text}")
    call.out.failures(tables.failed)
    if not found:
        raise UsageError(f"no broker has a definition of group {group!r}")
    call.out.value(found)


COMMANDS: Final = (
    Command(
        name="updateSubGroup",
        summary="Create a consumer group, or change it.",
        run=update_group,
        options=(
            BROKER,
            CLUSTER,
            GROUP,
            value("s", "consumeEnable", "false: the group may not consume (true)"),
            value("m", "consumeFromMinEnable", "true: it may start from the beginning (false)"),
            value("d", "consumeBroadcastEnable", "true: it may broadcast (false)"),
            value("o", "consumeMessageOrderly", "true: it pops in order (false)"),
            value("q", "retryQueueNums", "queues of its retry topic (1)"),
            value("r", "retryMaxTimes", "retries before a message is a dead letter (16)"),
            value("p", "groupRetryPolicy", "delays between retries, as JSON"),
            value("i", "brokerId", "consume from the broker with this id (0)"),
            value("w", "whichBrokerWhenConsumeSlowly", "consume from this id when far behind (1)"),
            value(
                "a", "notifyConsumerIdsChanged", "false: do not tell members of each other (true)"
            ),
            value("", "attributes", "like +name=value,-old"),
        ),
        examples=("updateSubGroup -c DefaultCluster -g billing -r 3",),
    ),
    Command(
        name="updateSubGroupList",
        summary="Create consumer groups, or change them, from a file.",
        run=update_group_list,
        options=(BROKER, CLUSTER, needed("f", "filename", "JSON array of groups")),
        groups=EITHER,
        examples=("updateSubGroupList -c DefaultCluster -f groups.json",),
    ),
    Command(
        name="setConsumeMode",
        summary="Have a consumer group pull or pop a topic.",
        run=set_consume_mode,
        options=(
            BROKER,
            CLUSTER,
            needed("t", "topicName", "the topic"),
            GROUP,
            needed("m", "mode", "PULL or POP"),
            value("q", "popShareQueueNum", "with POP, how many other members get each queue (0)"),
        ),
        examples=("setConsumeMode -c DefaultCluster -t Orders -g billing -m POP -q 0",),
    ),
    Command(
        name="deleteSubGroup",
        summary="Delete a consumer group; from a cluster, with its retries and dead letters.",
        run=delete_group,
        options=(
            BROKER,
            CLUSTER,
            GROUP,
            value("r", "removeOffset", "true: its positions, too (false)"),
        ),
        confirm=_delete_text,
        examples=("deleteSubGroup -c DefaultCluster -g billing -r true",),
    ),
    Command(
        name="getConsumerConfig",
        summary="Show how brokers define a consumer group.",
        run=consumer_config,
        options=(GROUP,),
        examples=("getConsumerConfig -g billing",),
    ),
)
