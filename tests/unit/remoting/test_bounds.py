"""What one peer may use up: sockets of an address, requests and bytes of a caller, and what is told of it."""

from __future__ import annotations

import logging
import socket
from typing import Any, cast

import pytest

from cometmq.protocol.command import Command
from cometmq.remoting.bounds import rates
from cometmq.remoting.bounds.crowd import Crowd, caller_of
from cometmq.remoting.bounds.rates import RateLimits
from cometmq.remoting.bounds.reached import TELL_SECONDS, Reached
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.remoting_config import RemotingServerConfig
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.fake_connection import FakeConnection

SYSTEM_BUSY = 2


@pytest.mark.parametrize(
    ("host", "caller"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
    ],
)
def test_an_address_of_ipv6_is_its_network(host: str, caller: str) -> None:
    assert caller_of(host) == caller


@pytest.mark.parametrize("end", ["close", "detach", "forgotten"])
def test_a_socket_counts_until_it_is_closed_by_whatever_way(end: str) -> None:
    crowd = Crowd()
    first, other = socket.socketpair()
    counted = crowd.admit(first, "10.0.0.7")
    assert crowd.count("10.0.0.7") == 1
    if end == "close":
        counted.close()
    elif end == "detach":
        socket.close(counted.detach())
    else:
        del counted
    assert (crowd.count("10.0.0.7"), len(crowd)) == (0, 0)
    assert other.recv(1) == b"", "the descriptor is closed, too"
    other.close()


class Limited:
    """A dispatcher with one handler behind limits."""

    def __init__(self, **limits: int) -> None:
        self.clock = FakeClock()
        self.reached = Reached()
        self.rates = RateLimits(
            RemotingServerConfig(**cast(Any, limits)), self.reached, self.clock.monotonic
        )
        self.dispatcher = Dispatcher()
        self.dispatcher.add(1, lambda connection, command: command.reply())
        self.rates.watch(self.dispatcher)

    def passed(self, count: int, peer: FakeConnection, body: bytes = b"") -> int:
        """How many of so many requests were let pass."""
        for _ in range(count):
            self.dispatcher.dispatch(cast(Connection, peer), Command(1, body=body))
        return sum(reply.code == 0 for reply in peer.take())


def test_without_limits_nothing_stands_before_the_handlers() -> None:
    assert Limited().dispatcher.guards == []


def test_requests_beyond_the_rate_are_refused_as_busy_with_the_reason() -> None:
    limited = Limited(requests_per_second_max=10)
    peer = FakeConnection()
    assert limited.passed(15, peer) == 10
    limited.dispatcher.dispatch(cast(Connection, peer), Command(1))
    (reply,) = peer.take()
    assert reply.code == SYSTEM_BUSY
    assert reply.remark == (
        "[RATE_LIMIT]system busy, start flow control for a while, address 127.0.0.1 sends more than 10 requests "
        "a second (clientRequestsPerSecondMax)"
    )
    assert limited.reached.counts == {"clientRequestsPerSecondMax": 6}
    limited.clock.advance(0.5)
    assert limited.passed(15, peer) == 5
    limited.clock.advance(100)
    assert limited.passed(15, peer) == 10, "no more than a second's worth is saved up"


def test_all_connections_of_an_address_share_and_a_new_one_is_no_new_allowance() -> None:
    limited = Limited(requests_per_second_max=10)
    first, second = FakeConnection(1), FakeConnection(2)
    assert limited.passed(6, first) == 6
    assert limited.passed(6, second) == 4
    for peer in (first, second):
        limited.rates.forget(cast(Connection, peer))
    assert limited.passed(6, FakeConnection(3)) == 0


def test_bytes_beyond_the_rate_are_taken_on_credit_once() -> None:
    limited = Limited(bytes_per_second_max=1000)
    peer = FakeConnection()
    assert limited.passed(3, peer, bytes(2500)) == 1
    assert limited.reached.counts == {"clientBytesPerSecondMax": 2}
    limited.clock.advance(1.4)
    assert limited.passed(1, peer) == 0, "1500 bytes were still owed"
    limited.clock.advance(0.2)
    assert limited.passed(1, peer) == 1


def test_an_account_has_an_allowance_of_its_own_wherever_it_comes_from() -> None:
    limited = Limited(requests_per_second_max=10)
    accounts: dict[object, str] = {}
    limited.rates.account_of = lambda connection: accounts.get(connection, "")
    first, second, stranger = FakeConnection(1), FakeConnection(2), FakeConnection(3)
    accounts.update({first: "alice", second: "alice"})
    assert limited.passed(6, first) == 6
    assert limited.passed(6, second) == 4
    assert limited.passed(6, stranger) == 6
    accounts[second] = "bob"
    assert limited.passed(6, second) == 6


def test_limits_come_and_go_while_the_server_runs() -> None:
    limited = Limited()
    limited.rates.apply(RemotingServerConfig(requests_per_second_max=1))
    assert limited.passed(3, FakeConnection()) == 1
    limited.rates.apply(RemotingServerConfig())
    assert limited.dispatcher.guards == []


def test_callers_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "CALLERS_MAX", 100)
    limited = Limited(requests_per_second_max=1)
    for number in range(1000):
        peer = FakeConnection()
        peer.peer = f"10.0.{number >> 8}.{number & 255}:1"
        assert limited.passed(2, peer) == 1
        limited.rates.forget(cast(Connection, peer))
        limited.clock.advance(0.001)
    assert len(limited.rates._of_caller) <= 100
    assert not limited.rates._of_connection


def test_what_was_reached_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    reached = Reached()
    reached.tell(0.0)
    reached.count("serverConnectionsMax")
    reached.tell(1.0)
    reached.count("serverConnectionsMax")
    reached.count("autoCreateTopicsMax")
    reached.tell(2.0)
    reached.tell(1.0 + TELL_SECONDS)
    reached.tell(1.0 + 3 * TELL_SECONDS)
    assert [record.getMessage() for record in caplog.records] == [
        "bounds reached serverConnectionsMax=1",
        "bounds reached autoCreateTopicsMax=1 serverConnectionsMax=1",
    ]
    assert all(record.levelno == logging.WARNING for record in caplog.records)
