"""Dead letters that are delivered again, by brokers that take their time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from cometmq.dashboard.bodies.messages import ResendLetters
from cometmq.dashboard.views.dead_letters import RESEND_SECONDS, resend_dead_letters
from cometmq.testing.fake_clock import FakeClock

SECONDS_EACH = 2.0


async def test_a_resend_that_takes_too_long_says_how_far_it_came() -> None:
    clock = FakeClock()

    async def by_id(text: str, topic: str) -> Any:
        clock.advance(SECONDS_EACH)
        return SimpleNamespace(topic=topic)

    async def resend(group: str, letters: Any) -> Any:
        return SimpleNamespace(failed={})

    admin = SimpleNamespace(
        messages=SimpleNamespace(by_id=by_id), dead_letters=SimpleNamespace(resend=resend)
    )
    call: Any = SimpleNamespace(
        names={"group": "billing"},
        body=ResendLetters(ids=[f"letter-{number}" for number in range(20)]),
        desk=SimpleNamespace(clock=clock),
        admin=admin,
    )
    told = await resend_dead_letters(call)
    tried = int(RESEND_SECONDS / SECONDS_EACH) + 1
    assert [place.where for place in told.done] == [f"letter-{n}" for n in range(tried)]
    assert [(one.code, one.params) for one in told.notes] == [
        ("resend_stopped", {"letters": tried, "left": 20 - tried})
    ]
