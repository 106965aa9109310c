"""Positions of consumer groups: reset, skip, clone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from cometmq.base.errors import UsageError
from cometmq.cli.mqadmin.arguments import Arguments, milliseconds
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.options import ROUTE_CLUSTER, TOPIC, needed, value

if TYPE_CHECKING:
    from cometmq.admin import ResetPoint, ResetResult

OFFSETS: Final = Layout(
    ("#brokerName", "#queueId", "#offset"), "%-40s  %-40s  %-40s", "%-40.40s  %-40s  %-40s"
)
GROUP: Final = needed("g", "group", "the consumer group")
FORCE: Final = value("f", "force", "false: move no queue forward (true)")

NOW: Final = "now"


async def reset_offset(call: Call) -> None:
    args = call.args
    group, topic, force = args.needed("g"), args.needed("t"), args.truth("f", True)
    said = args.needed("s")
    moment = -1 if said == "-1" else _now_ms() if said == NOW else milliseconds(said)
    point, broker = _point(args, moment), await _broker_name(call)
    await _check_known(call, group)
    result = await call.admin.offsets.reset(group, topic, point, broker=broker, force=force)
    if point.offset is not None and result.is_complete:
        call.out.line(f"reset consumer offset to {point.offset}")
    else:
        call.out.line(
            f"start reset consumer offset by specified, group[{group}], topic[{topic}], "
            f"force[{str(force).lower()}], timestamp(string)[{said}], timestamp(long)[{moment}]"
        )
        _show(call, result)
    _end(call, result)


def _point(args: Arguments, moment: int) -> ResetPoint:
    from cometmq.admin import ResetPoint

    queue, offset = args.number("q", low=0), args.number("o", low=0)
    if offset is not None:
        if queue is None or not args.text("b"):
            raise UsageError(
                "an offset (-o) is for one queue: give its broker (-b) and number (-q), too"
            )
        return ResetPoint.at(queue, offset)
    if queue is not None:
        raise UsageError("expected an offset (-o) for the queue given with -q")
    # RocketMQ's tools write the end as -1.
    return ResetPoint.end() if moment < 0 else ResetPoint.time(moment)


async def _broker_name(call: Call) -> str | None:
    """The name of the broker that is given by its address, or by its name."""
    given = call.args.text("b")
    if not given or ":" not in given:
        return given
    places = await call.admin.brokers.places()
    names = [place.broker_name for place in places if place.address == given]
    if not names:
        known = ", ".join(place.address for place in places)
        raise UsageError(f"no name server knows a broker at {given}; there are: {known}")
    return names[0]


async def skip_accumulated(call: Call) -> None:
    from cometmq.admin import ResetPoint

    group, topic = call.args.needed("g"), call.args.needed("t")
    force = call.args.truth("f", True)
    await _check_known(call, group)
    result = await call.admin.offsets.reset(group, topic, ResetPoint.end(), force=force)
    _show(call, result)
    _end(call, result)


async def _check_known(call: Call, group: str) -> None:
    """A slip in a name would position a group that nobody has. One that is to come can be created first.

    Raises:
        UsageError: no broker defines the group, and it has no positions.
    """
    try:
        await call.admin.groups.check_known(group)
    except UsageError as error:
        if not (await call.admin.groups.topics(group)).rows:
            raise UsageError(
                f"{error}; a group can be positioned before its first start if it is created: "
                f"`mqadmin updateSubGroup -g {group} -c CLUSTER`"
            ) from None


def _show(call: Call, result: ResetResult) -> None:
    rows = [
        (queue.broker_name, str(queue.queue_id), str(offset))
        for queue, offset in result.offsets.items()
    ]
    if rows:
        call.out.table(OFFSETS, rows)


def _end(call: Call, result: ResetResult) -> None:
    call.out.failures(result.failed, of_change=True)
    call.out.value(
        {
            "failed": result.failed,
            "offsets": [
                {"queue": queue, "offset": offset} for queue, offset in result.offsets.items()
            ],
        }
    )


async def clone_offset(call: Call) -> None:
    args = call.args
    source, destination, topic = args.needed("s"), args.needed("d"), args.needed("t")
    result = await call.admin.offsets.clone(source, destination, topic)
    if result.is_complete:
        call.out.line(
            f"clone group offset success. srcGroup[{source}], destGroup=[{destination}], topic[{topic}]"
        )
    _end(call, result)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _reset_text(args: Arguments) -> str:
    where = f"offset {args.text('o')}" if args.text("o") else f"time {args.text('s')}"
    return f"have group {args.text('g')} go on at {where} in topic {args.text('t')}"


COMMANDS: Final = (
    Command(
        name="resetOffsetByTime",
        summary="Have a consumer group go on at another time, or at an offset of one queue.",
        run=reset_offset,
        options=(
            GROUP,
            TOPIC,
            needed(
                "s", "timestamp", "now, milliseconds since 1970, or like 2026-05-17#20:15:00:000"
            ),
            FORCE,
            ROUTE_CLUSTER,
            value("b", "broker", "address of one broker"),
            value("q", "queue", "one queue of that broker"),
            value("o", "offset", "the offset in that queue"),
        ),
        confirm=_reset_text,
        examples=(
            "resetOffsetByTime -g billing -t Orders -s now",
            "resetOffsetByTime -g billing -t Orders -s '2026-05-17#20:15:00:000' --yes",
        ),
    ),
    Command(
        name="skipAccumulatedMessage",
        summary="Have a consumer group pass over everything that it has not consumed.",
        run=skip_accumulated,
        options=(GROUP, TOPIC, FORCE, ROUTE_CLUSTER),
        confirm=lambda args: (
            f"have group {args.text('g')} pass over all messages of topic {args.text('t')} that it has not consumed"
        ),
        examples=("skipAccumulatedMessage -g billing -t Orders",),
    ),
    Command(
        name="cloneGroupOffset",
        summary="Have one consumer group start in a topic where another one is.",
        run=clone_offset,
        options=(
            needed("s", "srcGroup", "the group whose positions are copied"),
            needed("d", "destGroup", "the group that gets them; it must be offline"),
            TOPIC,
            value("o", "offline", "has no meaning; RocketMQ's tool ignores it, too"),
        ),
        confirm=lambda args: (
            f"replace the positions of group {args.text('d')} in topic {args.text('t')} by those of {args.text('s')}"
        ),
        examples=("cloneGroupOffset -s billing -d billing-test -t Orders",),
    ),
)
