"""A broker without the topics that a master makes by itself, and queues filled at times of the test's choice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.broker.rig import Rig

from cometmq.store.log.new_messages import NewMessage


class AdminRig(Rig):
    def __init__(self, settings: dict[str, str]) -> None:
        super().__init__(settings, is_master=False)

    def add(self, topic: str, queues: int | range, *times: int) -> None:
        """Store a message in each of the queues at these times, in milliseconds; times do not go back in a log."""
        now_ms = self.clock.wall_ms()
        for at in times:
            self.clock.jump((at - self.clock.wall_ms()) / 1000)
            for queue_id in [queues] if isinstance(queues, int) else queues:
                self.store.put(
                    NewMessage(
                        topic=topic, queue_id=queue_id, body=b"x", properties=b"", tags_code=7
                    )
                )
        self.clock.jump((now_ms - self.clock.wall_ms()) / 1000)

    def delay(self, *levels: int) -> None:
        """Store messages of these delay levels."""
        for level in levels:
            self.schedule.put(NewMessage(topic="t", queue_id=0, body=b"x", properties=b""), level)


@pytest.fixture
def make_rig() -> Callable[..., AdminRig]:
    """A broker with settings of its own: ``make_rig(brokerRole="SLAVE")``."""

    def make(**settings: str) -> AdminRig:
        return AdminRig(settings)

    return make
