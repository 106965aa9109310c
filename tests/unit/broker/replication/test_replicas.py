"""How many copies a record has, and what a send may expect."""

from __future__ import annotations

import pytest

from cometmq.broker.replication.replicas import Outlook, Replicas

LOG_END = 1000


def _with(*confirmed: int, behind_max: int = 100) -> Replicas:
    replicas = Replicas(behind_max)
    for number, offset in enumerate(confirmed):
        _report(replicas, number, 0)
        _report(replicas, number, offset)
    return replicas


def _report(replicas: Replicas, number: int, offset: int, port: int = 1, since: int = 0) -> None:
    replicas.reported((number, port), f"slave-{number}:{port}", offset, LOG_END, since)


def test_the_first_report_is_no_copy_yet() -> None:
    """It may be the end of a log that went another way."""
    replicas = Replicas(100)
    for _ in range(2):
        _report(replicas, 0, 50)
        assert replicas.copied_to(2) is None
        assert len(replicas) == 0
    _report(replicas, 0, 60)
    assert replicas.copied_to(2) == 60
    assert len(replicas) == 1


def test_who_fetches_a_record_is_no_replica() -> None:
    replicas = Replicas(100)
    _report(replicas, 0, LOG_END - 10)
    assert replicas.following(LOG_END) == 0
    assert replicas.outlook(2, LOG_END) is Outlook.NOT_AVAILABLE


def test_who_reports_the_end_of_the_log_is_waited_for_and_is_a_copy_with_the_next_record() -> None:
    """As RocketMQ's slaves do, which are right most of the time."""
    replicas = Replicas(100)
    _report(replicas, 0, LOG_END)
    assert replicas.outlook(2, LOG_END + 10) is Outlook.WAIT
    assert replicas.copied_to(2) is None
    replicas.reported((0, 1), "slave-0:1", LOG_END + 10, LOG_END + 10)
    assert replicas.copied_to(2) == LOG_END + 10


def test_two_connections_of_one_host_count_once_until_both_speak() -> None:
    replicas = _with(50)
    _report(replicas, 0, 0, port=2)
    _report(replicas, 0, 60, port=2)
    assert replicas.copied_to(3) is None
    _report(replicas, 0, 50)
    assert replicas.copied_to(3) == 50


def test_a_stranger_casts_no_doubt_on_a_slave_of_its_host() -> None:
    replicas = _with(50)
    _report(replicas, 0, 20, port=2)
    assert replicas.copied_to(2) == 50


def test_a_slave_that_begins_later_is_no_copy_of_what_was_before() -> None:
    replicas = Replicas(100)
    _report(replicas, 0, 0, since=4096)
    _report(replicas, 0, 5000)
    assert replicas.copied_to(2, waiting=4096) is None
    assert replicas.copied_to(2, waiting=4196) == 5000


@pytest.mark.parametrize(
    ("confirmed", "needed", "copied"),
    [
        ((), 2, None),
        ((50,), 2, 50),
        ((50, 70), 2, 70),
        ((50, 70), 3, 50),
        ((50, 70), 4, None),
        ((70, 50, 60), 3, 60),
    ],
)
def test_the_log_is_copied_as_far_as_enough_slaves_have_it(
    confirmed: tuple[int, ...], needed: int, copied: int | None
) -> None:
    assert _with(*confirmed).copied_to(needed) == copied


def test_a_slave_that_left_no_longer_counts() -> None:
    replicas = _with(50, 70)
    replicas.left((1, 1))
    assert replicas.copied_to(2) == 50
    replicas.left((0, 1))
    assert replicas.copied_to(2) is None


def test_a_slave_may_take_back_what_it_said() -> None:
    replicas = _with(70)
    _report(replicas, 0, 10)
    assert replicas.copied_to(2) == 10


@pytest.mark.parametrize(
    ("confirmed", "needed", "outlook"),
    [
        ((), 1, Outlook.WAIT),
        ((), 2, Outlook.NOT_AVAILABLE),
        ((899,), 2, Outlook.NOT_AVAILABLE),
        ((900,), 2, Outlook.WAIT),
        ((900, 10), 3, Outlook.NOT_AVAILABLE),
        ((900, 1000), 3, Outlook.WAIT),
    ],
)
def test_a_send_waits_only_for_slaves_that_follow_closely(
    confirmed: tuple[int, ...], needed: int, outlook: Outlook
) -> None:
    assert _with(*confirmed).outlook(needed, log_end=LOG_END) is outlook
