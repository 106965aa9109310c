"""Many servers at once: what fails is told by address and delays nobody else."""

from __future__ import annotations

import asyncio

import pytest

from cometmq.admin import PartialFailure
from cometmq.admin.fan_out import WINDOW, FanOut
from cometmq.base.errors import CometError, ConnectFailed


@pytest.mark.simulated_time
async def test_answers_and_failures_come_by_address_in_the_order_of_the_servers() -> None:
    async def ask(address: str) -> str:
        if address == "b":
            raise ConnectFailed("nobody at b")
        await asyncio.sleep(0 if address == "c" else 0.001)
        return address.upper()

    answers = await FanOut(8).each(["a", "b", "c", "a"], ask)

    assert list(answers.done.items()) == [("a", "A"), ("c", "C")]
    assert [str(error) for error in answers.failed.values()] == ["nobody at b"]
    with pytest.raises(PartialFailure) as failure:
        answers.raise_failed("the change")
    assert (
        str(failure.value) == "the change failed at 1 of 3 servers (b: nobody at b); done at a, c"
    )


async def test_no_more_servers_are_asked_at_once_than_allowed() -> None:
    under_way = most = 0

    async def ask(address: str) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1

    await FanOut(3).each(map(str, range(20)), ask)

    assert most == 3


async def test_a_server_may_be_asked_for_what_another_one_has_to_answer() -> None:
    fan_out = FanOut(1)

    async def ask(address: str) -> list[str]:
        answers = await fan_out.each([f"{address}-1", f"{address}-2"], echo)
        return answers.values()

    async def echo(address: str) -> str:
        await asyncio.sleep(0)
        return address

    async with asyncio.timeout(10):
        answers = await fan_out.each(["a", "b"], ask)
    assert answers.values() == [["a-1", "a-2"], ["b-1", "b-2"]]


async def test_many_requests_to_a_server_leave_together_and_end_with_its_first_error() -> None:
    asked: list[tuple[str, int]] = []

    async def ask(address: str, number: int) -> int:
        asked.append((address, number))
        await asyncio.sleep(0)
        if address == "dead":
            raise ConnectFailed("nobody there")
        return number * 2

    wanted = {"alive": range(100), "dead": range(1000)}
    answers = await FanOut(8).many(wanted, ask)

    assert answers.done["alive"] == {number: number * 2 for number in range(100)}
    assert list(answers.failed) == ["dead"]
    assert sum(address == "dead" for address, _ in asked) <= WINDOW + 1


async def test_a_mistake_in_the_program_is_raised_and_ends_the_rest() -> None:
    never = asyncio.Event()
    is_cancelled = False

    async def ask(address: str) -> None:
        nonlocal is_cancelled
        if address == "a":
            await asyncio.sleep(0)
            raise ValueError("a bug")
        try:
            await never.wait()
        except asyncio.CancelledError:
            is_cancelled = True
            raise

    with pytest.raises(ValueError, match="a bug"):
        await FanOut(8).each(["a", "b"], ask)
    assert is_cancelled


def test_a_partial_failure_without_anything_done_says_so() -> None:
    error = PartialFailure("deleting", [], {"h:1": CometError("no")})
    assert str(error) == "deleting failed at 1 of 1 servers (h:1: no); done at none"
