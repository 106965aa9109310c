"""Claims on business keys: who may work, who must wait, what is done."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cometmq.base.errors import UsageError
from cometmq.client.core.consume.outcome import Outcome
from cometmq.client.helpers.idempotence import Claim, TableClaims, first_key, once
from cometmq.model.messages.received_message import ReceivedMessage
from cometmq.testing.fake_clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "shop.db")


@pytest.fixture
def claims(database: str, clock: FakeClock) -> Iterator[TableClaims]:
    made = TableClaims(
        lambda: sqlite3.connect(database), lease_seconds=60, keep_seconds=3600, clock=clock
    )
    made.create_table()
    yield made
    made.close()


def _message(key: str = "o-17") -> ReceivedMessage:
    return ReceivedMessage(topic="T", body=b"x", properties={"KEYS": key} if key else {})


def test_a_key_goes_from_claimed_to_done(claims: TableClaims) -> None:
    assert claims.claim("k", "a") is Claim.CLAIMED
    assert claims.claim("k", "b") is Claim.BUSY
    assert claims.commit("k", "a")
    assert claims.claim("k", "b") is Claim.DONE
    assert claims.claim("other", "b") is Claim.CLAIMED


def test_a_released_key_is_free(claims: TableClaims) -> None:
    claims.claim("k", "a")
    claims.release("k", "b")
    assert claims.claim("k", "c") is Claim.BUSY
    claims.release("k", "a")
    assert claims.claim("k", "c") is Claim.CLAIMED


def test_a_claim_left_behind_expires(claims: TableClaims, clock: FakeClock) -> None:
    claims.claim("k", "dead")
    clock.advance(61)
    assert claims.claim("k", "next") is Claim.CLAIMED
    assert claims.claim("k", "third") is Claim.BUSY
    # Whoever comes back from the dead changes nothing.
    assert not claims.commit("k", "dead")
    claims.release("k", "dead")
    assert claims.commit("k", "next")


def test_done_keys_are_forgotten_after_their_time(claims: TableClaims, clock: FakeClock) -> None:
    claims.claim("k", "a")
    claims.commit("k", "a")
    clock.advance(3601)
    assert claims.forget_old() == 1
    assert claims.claim("k", "b") is Claim.CLAIMED


def test_done_keys_survive_a_restart(claims: TableClaims, database: str, clock: FakeClock) -> None:
    claims.claim("k", "a")
    claims.commit("k", "a")
    claims.close()
    again = TableClaims(lambda: sqlite3.connect(database), clock=clock)
    again.create_table()
    assert again.claim("k", "b") is Claim.DONE
    again.close()


def test_of_many_at_once_one_gets_the_key(database: str) -> None:
    stores = [TableClaims(lambda: sqlite3.connect(database, timeout=30)) for _ in range(4)]
    stores[0].create_table()
    results: list[Claim] = []
    gate = threading.Barrier(8)

    def claim(number: int) -> None:
        gate.wait()
        results.append(stores[number % 4].claim("k", str(number)))

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()
    assert results.count(Claim.CLAIMED) == 1
    assert results.count(Claim.BUSY) == 7


def test_an_effect_in_the_same_transaction_happens_once(claims: TableClaims, database: str) -> None:
    with sqlite3.connect(database) as setup:
        setup.execute("CREATE TABLE account (balance INTEGER)")
        setup.execute("INSERT INTO account VALUES (0)")
    setup.close()

    def book(key: str, *, fails: bool = False) -> None:
        connection = sqlite3.connect(database)
        try:
            with connection:
                if not claims.first_time(connection, key):
                    return
                connection.execute("UPDATE account SET balance = balance + 1")
                if fails:
                    raise RuntimeError("after the effect")
        finally:
            connection.close()

    with pytest.raises(RuntimeError):
        book("k", fails=True)
    for _ in range(3):
        book("k")
    connection = sqlite3.connect(database)
    assert connection.execute("SELECT balance FROM account").fetchall() == [(1,)]
    connection.close()


def test_a_listener_is_called_once_for_a_key(claims: TableClaims) -> None:
    calls: list[str] = []
    listener = once(claims, lambda message: calls.append(message.keys[0]))
    assert listener(_message()) is None
    assert listener(_message()) == Outcome.consumed
    assert listener(_message("o-18")) is None
    assert calls == ["o-17", "o-18"]


def test_a_failed_listener_is_called_again(claims: TableClaims) -> None:
    returns: list[Any] = [ValueError("no"), Outcome.later(), None]

    def handle(message: ReceivedMessage) -> Any:
        returned = returns.pop(0)
        if isinstance(returned, Exception):
            raise returned
        return returned

    listener = once(claims, handle)
    with pytest.raises(ValueError, match="no"):
        listener(_message())
    assert listener(_message()) == Outcome.later()
    assert listener(_message()) is None
    assert listener(_message()) == Outcome.consumed


def test_while_one_works_the_other_is_told_later(claims: TableClaims) -> None:
    inner: list[Any] = []

    def handle(message: ReceivedMessage) -> None:
        inner.append(listener(message))

    listener = once(claims, handle)
    assert listener(_message()) is None
    assert inner == [Outcome.later()]


async def test_async_listeners_are_treated_alike(claims: TableClaims) -> None:
    calls: list[int] = []

    async def handle(message: ReceivedMessage) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("no")

    listener = once(claims, handle)
    with pytest.raises(ValueError, match="no"):
        await listener(_message())
    assert await listener(_message()) is None
    assert await listener(_message()) == Outcome.consumed
    assert len(calls) == 2


def test_a_claim_that_expired_under_its_listener_is_told(
    claims: TableClaims, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    def handle(message: ReceivedMessage) -> None:
        clock.advance(61)
        assert claims.claim("o-17", "other") is Claim.CLAIMED

    once(claims, handle)(_message())
    assert "claim expired" in caplog.text


def test_bad_keys_are_refused(claims: TableClaims) -> None:
    with pytest.raises(UsageError, match="no key"):
        first_key(_message(""))
    for key in ("", "x" * 256):
        with pytest.raises(UsageError, match="expected a key"):
            claims.claim(key, "a")
    with pytest.raises(UsageError, match="table name"):
        TableClaims(lambda: sqlite3.connect(":memory:"), table="a; drop table b")
