"""The audit log hears how each request ended that changes something, whoever answers it, and when."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from cometmq.access.audit.audit_log import AuditLog
from cometmq.access.door.audit_watch import Audit
from cometmq.access.refusals import account_refusal
from cometmq.protocol.command import Command
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher, Handler
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.fake_connection import FakeConnection


class Lines:
    """Stands for the log."""

    def __init__(self) -> None:
        self.added: list[dict[str, Any]] = []

        self.left_out = 0

    def add(self, line: bytes) -> None:
        self.added.append(json.loads(line))

    def leave_out(self) -> None:
        self.left_out += 1


def told(handler: Handler, code: int = 215) -> list[tuple[str, int, str | None]]:
    """Account, result and reason of what one request leaves in the log."""
    lines = Lines()
    audit = Audit(cast(AuditLog, lines), FakeClock())
    audit.name_of = lambda connection, command: "amy"
    dispatcher = Dispatcher()
    dispatcher.add(code, handler)
    audit.watch(dispatcher)
    dispatcher.dispatch(cast(Connection, FakeConnection()), Command(code, {"topic": "T"}))
    return [(one["account"], one["result"], one.get("reason")) for one in lines.added]


def raising(error: Exception) -> Callable[[Connection, Command], Command]:
    def handle(connection: Connection, command: Command) -> Command:
        raise error

    return handle


async def later(connection: Connection, command: Command) -> Command:
    return command.reply()


async def later_refused(connection: Connection, command: Command) -> Command:
    raise Refused(17, "no such topic")


@pytest.mark.parametrize(
    ("handler", "outcome"),
    [
        (lambda connection, command: command.reply(), (0, None)),
        (lambda connection, command: None, (0, None)),
        (lambda connection, command: command.reply(1, "no"), (1, "no")),
        (lambda connection, command: command.reply(1), (1, "")),
        (raising(Refused(16, "not you")), (16, "not you")),
        (raising(ValueError("hush")), (1, "ValueError")),
        (later, (0, None)),
        (later_refused, (17, "no such topic")),
    ],
)
def test_every_outcome_is_told(handler: Handler, outcome: tuple[int, str | None]) -> None:
    assert told(handler) == [("amy", *outcome)]


def test_what_changes_nothing_is_not_told() -> None:
    assert told(lambda connection, command: command.reply(), code=310) == []


def test_who_was_refused_at_the_door_is_told_by_the_name_it_claims() -> None:
    lines = Lines()
    audit = Audit(cast(AuditLog, lines), FakeClock())
    peer = cast(Connection, FakeConnection())
    refusal = account_refusal("check signature failed.")
    audit.refused(peer, Command(310, {"AccessKey": "eve"}), refusal)
    audit.refused(peer, Command(215, {"AccessKey": "eve", "topic": "T"}), refusal)
    [line] = lines.added
    assert (line["account"], line["result"], line["reason"]) == ("eve", 16, refusal.remark)
    assert line["target"] == {"topic": "T"}


def test_without_accounts_nobody_has_a_name() -> None:
    lines = Lines()
    audit = Audit(cast(AuditLog, lines), FakeClock())
    dispatcher = Dispatcher()
    dispatcher.add(215, lambda connection, command: command.reply())
    audit.watch(dispatcher)
    command = Command(215, {"topic": "T", "AccessKey": "claimed"})
    dispatcher.dispatch(cast(Connection, FakeConnection()), command)
    assert [one["account"] for one in lines.added] == [""]


def test_nobody_can_bury_what_others_did_under_refusals_of_his_own() -> None:
    """Refused at the door, by one host: some lines, then one from time to time. What was carried out is always told."""
    lines, clock = Lines(), FakeClock()
    audit = Audit(cast(AuditLog, lines), clock)
    stranger, other = (cast(Connection, FakeConnection(host=f"10.0.0.{n}")) for n in (8, 9))
    command, refusal = Command(215, {"topic": "T"}), account_refusal("username cannot be null.")
    for _ in range(1000):
        audit.refused(stranger, command, refusal)
    assert len(lines.added) == 20
    assert lines.left_out == 980
    audit.refused(other, command, refusal)
    assert len(lines.added) == 21
    dispatcher = Dispatcher()
    dispatcher.add(215, lambda connection, command: command.reply())
    audit.watch(dispatcher)
    for _ in range(1000):
        dispatcher.dispatch(stranger, command)
    assert len(lines.added) == 1021
    clock.advance(60)
    audit.refused(stranger, command, refusal)
    assert len(lines.added) == 1022
