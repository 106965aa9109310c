"""Alerts fire once, are resolved once, and can be silenced."""

from __future__ import annotations

import asyncio
import json
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.eventually import eventually

from cometmq.base.clock import SystemClock
from cometmq.dashboard.alerts.book import DEFAULT_RULES, AlertBook
from cometmq.dashboard.alerts.conditions import DAY_MS, Condition, conditions_of
from cometmq.dashboard.alerts.files import AlertFiles
from cometmq.dashboard.alerts.states import AlertStates
from cometmq.dashboard.bodies.operations import NewRule
from cometmq.dashboard.watch.certificates import Certificates
from cometmq.dashboard.watch.hub import Hub
from cometmq.dashboard.watch.snapshot import GroupState, Snapshot
from cometmq.testing.fake_clock import FakeClock

LAG = Condition(rule="late", kind="lag", subject="billing", value=9.0, text="9 behind")


def test_a_condition_fires_after_a_while_and_once() -> None:
    states = AlertStates()
    wait = {"late": 60}
    assert states.step([LAG], wait, 0) == []
    assert states.step([LAG], wait, 59_000) == []
    [fired] = states.step([LAG], wait, 60_000)
    assert (fired.state, fired.since_ms, fired.subject) == ("firing", 0, "billing")
    assert states.step([LAG], wait, 70_000) == []
    assert [one.rule for one in states.firing] == ["late"]
    [resolved] = states.step([], wait, 80_000)
    assert (resolved.state, resolved.resolved_ms) == ("resolved", 80_000)
    assert states.firing == []
    assert [one.state for one in states.history] == ["resolved"]


def test_what_goes_away_in_time_never_fires() -> None:
    states = AlertStates()
    states.step([LAG], {"late": 60}, 0)
    assert states.step([], {"late": 60}, 30_000) == []
    assert states.step([LAG], {"late": 60}, 61_000) == []
    assert not states.history


async def test_history_and_silences_outlive_a_restart(tmp_path: Path) -> None:
    def opened() -> AlertBook:
        return AlertBook(AlertFiles(tmp_path), "", Hub(1), FakeClock())

    book = opened()
    rule = NewRule(name="late", kind="lag")
    await asyncio.gather(
        *(book.put(msgspec.structs.replace(rule, name=f"late-{number}")) for number in range(20))
    )
    states = book.states("main")
    states.step([LAG], {}, 0)
    states.step([], {}, 1000)
    await book.silence("main", "late-7", "billing", 60)
    again = opened()
    assert {one.name for one in again.rules} >= {f"late-{number}" for number in range(20)}
    assert [one.subject for one in again.states("main").history] == ["billing"]
    assert again.states("main").silenced_until(("late-7", "billing"), 0)


def test_silenced_alerts_are_shown_and_not_told() -> None:
    states = AlertStates()
    states.silence("late", "*", 50_000)
    assert states.step([LAG], {}, 0) == []
    assert states.firing[0].silenced_until_ms == 50_000
    assert states.step([], {}, 10_000) == []
    assert states.step([LAG], {}, 60_000)
    states.silence("late", "billing", 90_000)
    states.silence("late", "billing", 0)
    assert states.step([], {}, 70_000)


async def test_alerts_are_posted_to_a_webhook() -> None:
    """As JSON, when one begins to fire and when it is resolved."""
    posted: list[Any] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        posted.append(json.loads(await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        clock = FakeClock()
        book = AlertBook(AlertFiles(None), f"http://127.0.0.1:{port}/alerts", Hub(1), clock)
        book.start()
        await book.put(NewRule(name="late", kind="lag", threshold=5, for_seconds=0))
        for lag in (9, 0):
            site: Any = SimpleNamespace(
                name="prod",
                snapshot=Snapshot(at_ms=0, groups={"billing": GroupState(lag=lag)}),
                lag_ages={},
                members={},
                status={},
                certificates=SimpleNamespace(ends={}),
            )
            await book.look(site)
        await eventually(lambda: len(posted) == 2, lambda: str(posted))
        await book.stop()
    told = [(one["site"], one["rule"], one["subject"], one["state"]) for one in posted]
    assert told == [("prod", "late", "billing", "firing"), ("prod", "late", "billing", "resolved")]


def certificate(name: str, valid: timedelta) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=400))
        .not_valid_after(now + valid)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM) + key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )


async def ends_of(directory: Path, valid: timedelta) -> Certificates:
    """Of a file of ours, and of a server that presents it."""
    path = directory / "dashboard.pem"
    path.write_bytes(certificate("dashboard", valid))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    server = await asyncio.start_server(
        lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context
    )
    async with server:
        port = server.sockets[0].getsockname()[1]
        found = Certificates([str(path), ""], has_tls=True, clock=SystemClock())
        await found.look([f"127.0.0.1:{port}", "127.0.0.1:1"])
    return found


async def test_a_certificate_that_ends_soon(tmp_path: Path) -> None:
    found = await ends_of(tmp_path, timedelta(days=3, hours=1))
    file_end, server_end = (
        found.ends.pop("dashboard.pem"),
        next(iter(found.ends.values())),
    )
    assert file_end == server_end
    site: Any = SimpleNamespace(
        certificates=SimpleNamespace(ends={"a:1": server_end}),
        snapshot=Snapshot(at_ms=server_end - 3 * DAY_MS),
    )
    [rule] = [one for one in DEFAULT_RULES if one.kind == "certificate"]
    [condition] = conditions_of(site, [rule])
    assert (condition.subject, condition.value) == ("a:1", 3.0)
    assert condition.text == "the certificate of a:1 ends in 3.0 days"
    assert conditions_of(site, [msgspec.structs.replace(rule, threshold=2.0)]) == []


async def test_what_cannot_be_looked_at_keeps_its_last_end(tmp_path: Path) -> None:
    found = await ends_of(tmp_path, timedelta(days=30))
    before = dict(found.ends)
    (tmp_path / "dashboard.pem").write_text("no certificate")
    await found.look([name for name in before if ":" in name])
    assert found.ends == before
    assert len(before) == 2
