"""A broker's figures as numbers, of both makes, and what it leaves out."""

from __future__ import annotations

import pytest

from cometmq.admin import BrokerFigures

TOLD = {
    "brokerVersionDesc": "V5_5_0",
    "brokerActive": "true",
    "putTps": "7.5 6 5",
    "getTransferredTps": "3.5 2 1",
    "msgPutTotalTodayNow": "130",
    "msgPutTotalTodayMorning": "100",
    "msgPutTotalYesterdayMorning": "40",
    "msgGetTotalTodayNow": "90",
    "msgGetTotalTodayMorning": "80",
    "msgGetTotalYesterdayMorning": "50",
    "earliestMessageTimeStamp": "1700000000000",
    "commitLogDiskRatio": "0.25",
}


def test_what_a_broker_tells() -> None:
    figures = BrokerFigures(TOLD)
    assert (figures.version, figures.is_active) == ("V5_5_0", True)
    assert (figures.put_tps, figures.get_tps) == (7.5, 3.5)
    assert (figures.put_today, figures.put_yesterday) == (30, 60)
    assert (figures.get_today, figures.get_yesterday) == (10, 30)
    assert (figures.earliest_message_ms, figures.disk_ratio) == (1_700_000_000_000, 0.25)


def test_rocketmq_4_spells_one_of_them_otherwise() -> None:
    assert BrokerFigures({"getTransferedTps": "4.5 1 1"}).get_tps == 4.5


@pytest.mark.parametrize(
    "table", [{}, {"putTps": "  ", "commitLogDiskRatio": "-", "earliestMessageTimeStamp": "-1"}]
)
def test_what_it_does_not_tell_is_nothing(table: dict[str, str]) -> None:
    figures = BrokerFigures(table)
    assert (figures.put_tps, figures.get_tps, figures.disk_ratio) == (0.0, 0.0, 0.0)
    assert (figures.earliest_message_ms, figures.put_today, figures.is_active) == (0, 0, False)
