"""How ``async def`` tests are run, and how tests wait."""

from __future__ import annotations

import asyncio

import pytest
from tests.conftest import run_test
from tests.eventually import eventually, wait_until


def test_a_task_that_is_left_fails_the_test() -> None:
    async def leaves_one() -> None:
        asyncio.create_task(asyncio.Event().wait(), name="straggler")  # noqa: RUF006

    with pytest.raises(pytest.fail.Exception, match="straggler"):
        run_test(leaves_one())


def test_a_task_that_was_cancelled_may_come_to_its_end() -> None:
    async def cancels_one() -> None:
        task = asyncio.create_task(asyncio.Event().wait())
        await asyncio.sleep(0)
        task.cancel()

    run_test(cancels_one())


def test_what_a_test_raises_counts_more_than_what_it_leaves() -> None:
    async def fails() -> None:
        asyncio.create_task(asyncio.Event().wait())  # noqa: RUF006
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_test(fails())


async def test_fixtures_come_as_usual(tmp_path: object, request: pytest.FixtureRequest) -> None:
    assert asyncio.get_running_loop().is_running()
    assert request.getfixturevalue("tmp_path") is tmp_path


@pytest.mark.simulated_time
async def test_simulated_time_jumps() -> None:
    await asyncio.sleep(3600)
    assert asyncio.get_running_loop().time() >= 3600


async def test_eventually_gives_what_was_found() -> None:
    answers = iter([None, [], [1]])
    assert await eventually(lambda: next(answers)) == [1]
    later = iter([None, "that"])

    async def ask() -> str | None:
        return next(later)

    assert await eventually(ask) == "that"
    with pytest.raises(AssertionError, match="not within 0 s: rain"):
        await eventually(lambda: False, "rain", 0)


def test_wait_until_gives_what_was_found() -> None:
    answers = iter([0, 3])
    assert wait_until(lambda: next(answers)) == 3
    with pytest.raises(AssertionError, match="not within 0 s: it is dry"):
        wait_until(lambda: None, lambda: "it is dry", 0)
