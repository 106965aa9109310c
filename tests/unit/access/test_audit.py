"""The audit log: what a line says, and that nobody waits for the disk."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from cometmq.access.audit.audit_line import AUDITED, TEXT_CHARS_MAX, audit_line, target_of
from cometmq.access.audit.audit_log import AuditLog
from cometmq.access.rules.request_rules import RULES
from cometmq.protocol import fastjson
from cometmq.protocol.codes import RequestCode as Code
from cometmq.protocol.command import Command
from cometmq.testing.fake_clock import FakeClock


def line(command: Command, result: int = 0, reason: str | None = None) -> bytes:
    return audit_line(
        command, account="amy", peer="10.0.0.7:1", wall_ms=1_000, result=result, reason=reason
    )


def audit_log(path: Path, **settings: int) -> AuditLog:
    defaults = {"file_bytes_max": 1 << 20, "file_count": 2}
    return AuditLog(path, FakeClock(), **{**defaults, **settings})


def test_a_line() -> None:
    command = Command(215, {"topic": "Orders", "AccessKey": "amy", "Signature": "x"})
    assert json.loads(line(command, 16, "no")) == {
        "at": "1970-01-01T00:00:01.000Z",
        "account": "amy",
        "peer": "10.0.0.7:1",
        "request": "DELETE_TOPIC_IN_BROKER",
        "code": 215,
        "target": {"topic": "Orders"},
        "result": 16,
        "reason": "no",
    }


@pytest.mark.parametrize(
    ("code", "body", "target"),
    [
        (18, {"topicConfigList": [{"topicName": "T"}]}, {"topics": ["T"], "count": 1}),
        (200, {"groupName": "g"}, {"group": "g"}),
        (225, {"groupConfigList": [{"groupName": "g"}]}, {"groups": ["g"], "count": 1}),
        (401, {"topic": "T", "consumerGroup": "g"}, {"topic": "T", "group": "g", "mode": "PULL"}),
        (
            25,
            b"initAuthenticationUser=hush\nfileReservedTime=3",
            {"keys": ["fileReservedTime", "initAuthenticationUser"]},
        ),
        (
            3001,
            {"password": "hush", "userType": "Super"},
            {"userType": "Super", "password": "changed"},
        ),
        (3002, {"userStatus": "disable"}, {"userStatus": "disable"}),
    ],
)
def test_what_a_body_is_about(code: int, body: object, target: dict[str, object]) -> None:
    content = body if isinstance(body, bytes) else fastjson.dumps(body)
    assert target_of(Command(code, None, content)) == target


def test_secrets_stay_out_whatever_the_request_holds() -> None:
    ext = {"accessKey": "key", "secretKey": "hush", "SecurityToken": "hush", "anything": "hush"}
    for code in AUDITED:
        for body in (b"", b"hush", b'{"password":"hush","username":"hush","secretKey":"hush"}'):
            text = line(Command(code, ext, body)).decode()
            shown = json.loads(text)["target"]
            shown.pop("body", None)
            shown.pop("keys", None)
            assert "hush" not in json.dumps(shown), code


def test_lines_are_bounded() -> None:
    huge = {"topic": "x" * 100_000, "group": "y" * 100_000}
    assert len(line(Command(17, huge), 1, "z" * 100_000)) < 4 * TEXT_CHARS_MAX
    unreadable = target_of(Command(18, None, b"{" * 100_000))
    assert len(unreadable["body"]) <= TEXT_CHARS_MAX


OF_SERVERS_AND_CONSUMERS = {
    *(Code.REGISTER_BROKER, Code.UNREGISTER_BROKER, Code.BROKER_HEARTBEAT),
    *(Code.EXCHANGE_BROKER_HA_INFO, Code.NOTIFY_MIN_BROKER_ID_CHANGE, Code.GET_ACCOUNTS),
    *(Code.CONTROLLER_ALTER_SYNC_STATE_SET, Code.CONTROLLER_REGISTER_BROKER),
    *(Code.CONTROLLER_APPLY_BROKER_ID, Code.UPDATE_CONSUMER_OFFSET),
}
"""They change something all the time, without an operator."""


def test_all_audited_requests_are_known() -> None:
    assert set(RULES) >= AUDITED


def test_whatever_an_operator_changes_is_audited() -> None:
    """By what a request needs, so that no new one can be forgotten."""
    changing = {
        code
        for code, rule in RULES.items()
        if any(word in str(rule) for word in ("Create", "Update", "Delete", "super user"))
    }
    assert changing - AUDITED == OF_SERVERS_AND_CONSUMERS


def test_who_has_looked_at_secrets_is_audited() -> None:
    assert {54, 3004, 3005} <= AUDITED


def test_lines_arrive_in_a_private_file(tmp_path: Path) -> None:
    log = audit_log(tmp_path / "sub" / "audit.log")
    log.start()
    for number in range(100):
        log.add(b"%d" % number)
    log.stop()
    assert log.path.read_bytes().split() == [b"%d" % number for number in range(100)]
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


def test_a_full_file_is_rotated_and_old_ones_go(tmp_path: Path) -> None:
    for number in range(5):
        log = audit_log(tmp_path / "audit.log", file_bytes_max=4)
        log.start()
        log.add(b"line%d" % number)
        log.stop()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.log.1", "audit.log.2"]
    assert (tmp_path / "audit.log.1").read_bytes() == b"line4\n"
    assert (tmp_path / "audit.log.2").read_bytes() == b"line3\n"


def test_what_does_not_fit_is_counted_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = audit_log(tmp_path / "audit.log", lines_max=3)
    for number in range(10):
        log.add(b"%d" % number)
    assert "lost=7" in repr(log)
    log.path.parent.mkdir(exist_ok=True)
    log._thread.start()
    log.stop()
    first, *rest = log.path.read_bytes().split(b"\n")
    assert json.loads(first)["lost"] == 7
    assert rest == [b"0", b"1", b"2", b""]
    assert "lost lines count=7" in caplog.text


def test_a_disk_that_fails_costs_lines_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = audit_log(tmp_path / "audit.log")
    log.start()
    log.path.unlink()
    log.path.mkdir()
    log.add(b"x")
    log.stop()
    assert "audit log not written" in caplog.text
    assert "lost=1" in repr(log)


def test_a_file_that_cannot_be_written_is_found_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "audit.log").mkdir()
    with pytest.raises(OSError, match="audit"):
        audit_log(tmp_path / "audit.log").start()


def test_lines_that_were_left_out_are_told_by_the_next_one(tmp_path: Path) -> None:
    log = audit_log(tmp_path / "audit.log")
    log.start()
    for _ in range(3):
        log.leave_out()
    log.add(b'{"a":1}')
    log.stop()
    told, line = (json.loads(text) for text in log.path.read_text().splitlines())
    assert told == {"at": told["at"], "leftOut": 3}
    assert line == {"a": 1}
