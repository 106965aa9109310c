"""Who belongs to a group, by what several brokers say."""

from __future__ import annotations

import asyncio

import pytest

from cometmq.base.errors import ConnectFailed
from cometmq.client.aio.instance.group_members import ASKED_BROKERS_MAX, ask_members
from cometmq.protocol.bodies.heartbeat import ConsumerList
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import SystemFault

NOBODY: list[str] = []


class Brokers:
    """By address: a list of members, a code, or None for one that is away."""

    def __init__(self, **answers: list[str] | int | None) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def call(self, address: str, request: Command, seconds: float) -> Command:
        assert (request.code, seconds) == (RequestCode.GET_CONSUMER_LIST_BY_GROUP, 3.0)
        assert request.ext == {"consumerGroup": "g"}
        self.asked.append(address)
        answer = self.answers[address]
        if answer is None:
            raise ConnectFailed(f"nobody at {address}")
        if isinstance(answer, int):
            return request.reply(answer, "no consumer for this group, g")
        return request.reply(body=ConsumerList(consumer_id_list=answer).encode())

    def ask(self) -> list[str]:
        return sorted(asyncio.run(ask_members(self.call, list(self.answers), "g", 3.0)))


def test_a_broker_that_has_just_started_does_not_hide_members() -> None:
    brokers = Brokers(old=["x", "y", "z"], new=["y"])
    assert brokers.ask() == ["x", "y", "z"]
    assert sorted(brokers.asked) == ["new", "old"]


def test_one_answer_is_enough() -> None:
    assert Brokers(here=["x"], away=None, stranger=ResponseCode.SYSTEM_ERROR).ask() == ["x"]


def test_nobody_knows_the_group() -> None:
    with pytest.raises(SystemFault, match="no consumer"):
        Brokers(one=ResponseCode.SYSTEM_ERROR, away=None, empty=NOBODY).ask()
    assert Brokers(empty=NOBODY, away=None).ask() == []


def test_nobody_answers() -> None:
    with pytest.raises(ConnectFailed, match="nobody at"):
        Brokers(one=None, two=None).ask()


def test_of_many_brokers_some_are_asked_and_others_only_when_these_are_away() -> None:
    many = Brokers(**{f"b{number}": ["x"] for number in range(20)})
    assert many.ask() == ["x"]
    assert len(many.asked) == ASKED_BROKERS_MAX
    away = Brokers(**{f"b{number}": None for number in range(19)}, last=["x"])
    assert away.ask() == ["x"]
