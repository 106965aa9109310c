"""Upkeep of brokers: what is expired, and whether clients may send to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from cometmq.cli.mqadmin.arguments import Arguments
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.options import BROKER, needed, value

if TYPE_CHECKING:
    from cometmq.admin import ByServer, Target

CLUSTER: Final = value("c", "cluster", "all brokers of this cluster; without -b and -c: all")


async def clean_expired_queues(call: Call) -> None:
    await _clean(call, call.admin.brokers.clean_expired_queues)


async def clean_unused_topics(call: Call) -> None:
    await _clean(call, call.admin.brokers.clean_unused_topics)


async def delete_expired_log(call: Call) -> None:
    await _clean(call, call.admin.brokers.delete_expired_log)


async def _clean(call: Call, clean: Callable[[Target], Awaitable[ByServer[Any]]]) -> None:
    done = await clean(call.target(with_slaves=True, is_needed=False))
    call.out.line("success" if done.is_complete else "false")
    call.out.done(done)


async def wipe_write_perm(call: Call) -> None:
    name = await _broker(call)
    answers = await call.admin.name_servers.wipe_write_perm(name)
    _show_perm(call, "wipe", name, answers)


async def add_write_perm(call: Call) -> None:
    name = await _broker(call)
    answers = await call.admin.name_servers.add_write_perm(name)
    _show_perm(call, "add", name, answers)


async def _broker(call: Call) -> str:
    """Name servers say OK to a broker that they do not know. Raises NoSuchName."""
    from cometmq.admin import Target

    name = call.args.needed("b")
    await call.admin.brokers.places(Target(broker=name))
    return name


def _show_perm(call: Call, verb: str, name: str, answers: ByServer[int]) -> None:
    for address, count in answers.done.items():
        call.out.line(f"{verb} write perm of broker[{name}] in name server[{address}] OK, {count}")
    for address in answers.failed:
        call.out.line(f"{verb} write perm of broker[{name}] in name server[{address}] Failed")
    call.out.failures(answers.failed)
    call.out.value({"broker": name, "topics": answers.done})


def _where(args: Arguments) -> str:
    if args.text("b"):
        return f"at broker {args.text('b')}"
    return f"at all brokers of cluster {args.text('c')}" if args.text("c") else "at all brokers"


COMMANDS: Final = (
    Command(
        name="cleanExpiredCQ",
        summary="Remove queue files of which no message is left.",
        run=clean_expired_queues,
        options=(BROKER, CLUSTER),
        examples=("cleanExpiredCQ -c DefaultCluster",),
    ),
    Command(
        name="cleanUnusedTopic",
        summary="Remove the queues of topics that are no longer defined.",
        run=clean_unused_topics,
        options=(BROKER, CLUSTER),
        confirm=lambda args: f"remove the queues of topics that are not defined {_where(args)}",
        examples=("cleanUnusedTopic -c DefaultCluster",),
    ),
    Command(
        name="deleteExpiredCommitLog",
        summary="Delete log files that are older than they are to be kept, now.",
        run=delete_expired_log,
        options=(BROKER, CLUSTER),
        confirm=lambda args: (
            f"delete all messages that are older than they have to be kept {_where(args)}"
        ),
        examples=("deleteExpiredCommitLog -b 127.0.0.1:10911",),
    ),
    Command(
        name="wipeWritePerm",
        summary="Have clients send nothing more to a broker, as before a stop.",
        run=wipe_write_perm,
        options=(needed("b", "brokerName", "name of the broker"),),
        confirm=lambda args: f"have clients send nothing more to broker {args.text('b')}",
        examples=("wipeWritePerm -b broker-a",),
    ),
    Command(
        name="addWritePerm",
        summary="Have clients send to a broker again.",
        run=add_write_perm,
        options=(needed("b", "brokerName", "name of the broker"),),
        examples=("addWritePerm -b broker-a",),
    ),
)
