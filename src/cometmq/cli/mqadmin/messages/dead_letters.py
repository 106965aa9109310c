"""Dead letters: list them, and deliver them to their group again. RocketMQ's tool has neither."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from cometmq.base.errors import UsageError
from cometmq.cli.mqadmin.arguments import Arguments
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.layout import Layout
from cometmq.cli.mqadmin.messages.message_texts import decoded, document
from cometmq.cli.mqadmin.options import flag, needed, value
from cometmq.cli.mqadmin.texts import time_text

if TYPE_CHECKING:
    from cometmq.admin import DeadLetter

LETTERS: Final = Layout(
    ("#Message ID", "#Topic", "#Keys", "#Given Up", "#Body"),
    "%-36s  %-32s  %-24s  %-23s  %s",
)
BODY_SHOWN_MAX: Final = 60
COUNT: Final = 100
COUNT_MAX: Final = 100_000


async def list_dead_letters(call: Call) -> None:
    group = call.args.needed("g")
    letters, _ = await _letters(call, group)
    total = await call.admin.dead_letters.count(group)
    if not total:
        await call.admin.groups.check_known(group)
    call.out.table(LETTERS, [_row(letter) for letter in letters])
    call.out.line()
    call.out.line(f"Total: {total}")
    call.out.value({"total": total, "letters": [_document(letter) for letter in letters]})


async def resend_dead_letters(call: Call) -> None:
    group, ids = call.args.needed("g"), call.args.names("i")
    has_more = False
    if ids:
        letters = await _chosen(call, group, ids)
    else:
        letters, has_more = await _letters(call, group)
    if not letters:
        await call.admin.groups.check_known(group)
        call.out.line(f"group [{group}] has no dead letters to resend.")
    result = await call.admin.dead_letters.resend(group, letters)
    for letter in letters:
        if letter.message.offset_id in result.done:
            call.out.line(f"resend {letter.message_id} to group [{group}] success.")
    call.out.failures(result.failed)
    if has_more:
        # Those that were sent stay where they are, and would be the first again.
        last = time_text(letters[-1].message.store_timestamp)
        call.out.warning(
            f"these were the first {len(letters)}, the last of them given up at {last}, and there are more; "
            "-b TIME begins later, -m NUMBER takes more at once"
        )
    call.out.value({"done": result.done, "failed": result.failed, "has_more": has_more})


async def _letters(call: Call, group: str) -> tuple[list[DeadLetter], bool]:
    """The first ones, as many as are asked for, and whether there are more."""
    most = call.args.number("m", COUNT, low=1)
    if most > COUNT_MAX:
        raise UsageError(f"expected at most {COUNT_MAX} dead letters for the option -m, got {most}")
    found: list[DeadLetter] = []
    async for letter in _scan(call, group):
        if len(found) == most:
            return found, True
        found.append(letter)
    return found, False


async def _chosen(call: Call, group: str, ids: list[str]) -> list[DeadLetter]:
    """By the id that the producer gave, the last one of it; or by that of the dead letter itself."""
    wanted = {one.upper() for one in ids}
    found: dict[str, DeadLetter] = {}
    async for letter in _scan(call, group):
        for name in wanted & {letter.message_id.upper(), letter.message.offset_id.upper()}:
            found[name] = letter
    missing = sorted(wanted - set(found))
    if missing:
        raise UsageError(
            f"group {group!r} has no dead letter {', '.join(missing)}; nothing was sent; "
            f"`mqadmin listDeadLetters -g {group}` lists them"
        )
    return list(found.values())


def _scan(call: Call, group: str) -> AsyncIterator[DeadLetter]:
    return call.admin.dead_letters.scan(
        group, begin_ms=call.args.time("b"), end_ms=call.args.time("e")
    )


def _row(letter: DeadLetter) -> tuple[str, ...]:
    message = letter.message
    body = " ".join(decoded(message.body[: 4 * BODY_SHOWN_MAX], "utf-8").split())
    return (
        letter.message_id,
        letter.origin_topic,
        " ".join(message.keys),
        time_text(message.store_timestamp),
        body if len(body) <= BODY_SHOWN_MAX else body[: BODY_SHOWN_MAX - 1] + "…",
    )


def _document(letter: DeadLetter) -> dict[str, object]:
    return {
        **document(letter.message),
        "origin_topic": letter.origin_topic,
        "origin_id": letter.origin_id,
    }


def _resend_text(args: Arguments) -> str:
    if bool(args.names("i")) == ("a" in args):
        raise UsageError("expected ids of dead letters (-i) or all of them (-a)")
    most = args.number("m", COUNT, low=1)
    which = (
        f"all dead letters (at most {most})" if "a" in args else f"dead letters {args.text('i')}"
    )
    return f"deliver {which} of group {args.text('g')} to this group again"


GROUP: Final = needed("g", "groupName", "the consumer group")
BEGIN: Final = value("b", "beginTimestamp", "given up at this time or later")
END: Final = value("e", "endTimestamp", "given up at this time or earlier")
MOST: Final = value("m", "maxNum", f"at most so many ({COUNT})")

COMMANDS: Final = (
    Command(
        name="listDeadLetters",
        summary="List the messages that a consumer group gave up on.",
        run=list_dead_letters,
        options=(GROUP, BEGIN, END, MOST),
        can_watch=True,
        examples=("listDeadLetters -g billing",),
    ),
    Command(
        name="resendDeadLetters",
        summary="Deliver dead letters to their consumer group again, and to no other group.",
        run=resend_dead_letters,
        options=(
            GROUP,
            value("i", "msgId", "ids of dead letters, separated by commas"),
            flag("a", "all", "all of them, at most as many as -m says"),
            BEGIN,
            END,
            MOST,
        ),
        confirm=_resend_text,
        examples=(
            "resendDeadLetters -g billing -i C000020207431FE24D0D5BFEB6850013",
            "resendDeadLetters -g billing -a -m 1000 --yes",
        ),
    ),
)
