"""Who is connected: members of consumer groups, and producers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cometmq.base.errors import CometError
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.groups.running_info import running_info_text
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.options import flag, needed, value
from cometmq.cli.mqadmin.texts import version_text

if TYPE_CHECKING:
    from cometmq.protocol.bodies.connection import ConsumerConnection
    from cometmq.protocol.bodies.running import ConsumerRunningInfo

MEMBERS: Final = Layout(
    ("#ClientId", "#ClientAddr", "#Language", "#Version"), "%-36s %-22s %-10s %s"
)
SUBSCRIPTIONS: Final = Layout(("#Topic", "#SubExpression"), "%-20s %s")
RUNNING: Final = Layout(
    ("#Index", "#ClientId", "#Version", "#ConsumerRunningInfoFile"), "%-10s %-40s %-20s %s"
)
GROUP: Final = needed("g", "consumerGroup", "the consumer group")
ADDRESS: Final = value("b", "brokerAddr", "ask only the broker at this address")


async def consumer_connection(call: Call) -> None:
    group, address = call.args.needed("g"), call.args.text("b")
    told = await call.admin.connections.consumers(group, address=address)
    call.out.table(
        MEMBERS,
        [
            (one.client_id, one.client_addr, one.language or "", version_text(one.version))
            for one in told.connection_set
        ],
    )
    call.out.line()
    call.out.line("Below is subscription:")
    call.out.table(
        SUBSCRIPTIONS,
        [(topic, one.sub_string) for topic, one in sorted(told.subscription_table.items())],
    )
    call.out.line()
    call.out.line(f"ConsumeType: {told.consume_type}")
    call.out.line(f"MessageModel: {told.message_model}")
    call.out.line(f"ConsumeFromWhere: {told.consume_from_where}")
    call.out.value(told)


async def producer_connection(call: Call) -> None:
    group, topic = call.args.needed("g"), call.args.needed("t")
    told = await call.admin.connections.producers(group, topic)
    for number, one in enumerate(told.connection_set, start=1):
        version = version_text(one.version)
        call.out.line(
            f"{number:04d}  {one.client_id:<32} {one.client_addr:<22} {one.language or '':<8} {version}"
        )
    call.out.value(told)


async def producers(call: Call) -> None:
    answers = await call.admin.connections.all_producers(call.target())
    for told in answers.values():
        for group, members in told.data.items():
            if not members:
                call.out.line(f"producer group ({group}) instances are empty")
            for one in members:
                call.out.line(
                    f"producer group ({group}) instance : clientId={one.client_id},remoteIP={one.remote_ip}, "
                    f"language={one.language}, version={one.version}, "
                    f"lastUpdateTimestamp={one.last_update_timestamp}"
                )
    call.out.failures(answers.failed)
    call.out.value({address: told.data for address, told in answers.done.items()})


async def consumer_status(call: Call) -> None:
    args = call.args
    group, client_id, address = args.needed("g"), args.text("i"), args.text("b")
    if client_id is not None:
        info = await call.admin.connections.running_info(
            group, client_id, with_stacks="s" in args, address=address
        )
        call.out.text(running_info_text(info))
        call.out.value(info)
        return
    told = await call.admin.connections.consumers(group, address=address)
    infos, failed = await _running(call, group, told, address)
    folder = Path(str(time.time_ns() // 1_000_000))
    if not call.out.is_json:
        _save(folder, infos)
    rows = []
    for number, (client, info) in enumerate(infos.items(), start=1):
        file = folder / _file_name(client)
        version = info.properties.get("PROP_CLIENT_VERSION", "")
        rows.append((str(number), client, version, str(file)))
    call.out.table(RUNNING, rows)
    if told.subscription_mismatch:
        call.out.line()
        call.out.line("WARN: Different subscription in the same group of consumer!!!")
    elif infos:
        subscriptions = {
            tuple(sorted((one.topic, one.sub_string) for one in info.subscription_set))
            for info in infos.values()
        }
        is_same = len(subscriptions) == 1
        call.out.line()
        call.out.line(
            "Same subscription in the same group of consumer"
            if is_same
            else "WARN: Different subscription in the same group of consumer!!!"
        )
        call.out.line()
        call.out.line(f"Rebalance {'OK' if _is_balanced(infos) else 'Failed'}")
    call.out.failures(failed)
    call.out.value(infos)


async def _running(
    call: Call, group: str, told: ConsumerConnection, address: str | None
) -> tuple[dict[str, ConsumerRunningInfo], dict[str, CometError]]:
    """What each member tells about itself, and those that do not."""
    infos: dict[str, ConsumerRunningInfo] = {}
    failed: dict[str, CometError] = {}
    for member in told.connection_set:
        try:
            infos[member.client_id] = await call.admin.connections.running_info(
                group, member.client_id, with_stacks="s" in call.args, address=address
            )
        except CometError as error:
            failed[member.client_id] = error
    return infos, failed


def _save(folder: Path, infos: Mapping[str, ConsumerRunningInfo]) -> None:
    """A file for each client, in the working directory."""
    folder.mkdir(exist_ok=True)
    for client, info in infos.items():
        (folder / _file_name(client)).write_text(running_info_text(info), encoding="utf-8")


def _is_balanced(infos: dict[str, ConsumerRunningInfo]) -> bool:
    """Whether no queue has two consumers."""
    queues = [queue for info in infos.values() for queue in info.mq_table]
    return len(queues) == len(set(queues))


def _file_name(client_id: str) -> str:
    """Clients choose their ids: no path may be made of one."""
    return client_id.replace("/", "_").replace("\0", "_").lstrip(".") or "_"


COMMANDS: Final = (
    Command(
        name="consumerConnection",
        summary="Show the members of a consumer group, and what they subscribe to.",
        run=consumer_connection,
        options=(GROUP, ADDRESS),
        can_watch=True,
        examples=("consumerConnection -g billing",),
    ),
    Command(
        name="consumerStatus",
        summary="Show what the members of a consumer group tell about themselves.",
        run=consumer_status,
        options=(
            GROUP,
            value("i", "clientId", "one member; its answer is printed, not saved"),
            ADDRESS,
            flag("s", "jstack", "what their threads or tasks do, too"),
        ),
        examples=("consumerStatus -g billing", "consumerStatus -g billing -i 10.0.0.7@4711"),
    ),
    Command(
        name="producerConnection",
        summary="Show the members of a producer group.",
        run=producer_connection,
        options=(
            needed("g", "producerGroup", "the producer group"),
            needed("t", "topic", "a topic that it sends to"),
        ),
        can_watch=True,
        examples=("producerConnection -g shop -t Orders",),
    ),
    Command(
        name="producer",
        summary="Show all producers that a broker knows.",
        run=producers,
        options=(needed("b", "broker", "address of the broker"),),
        can_watch=True,
        examples=("producer -b 127.0.0.1:10911",),
    ),
)
