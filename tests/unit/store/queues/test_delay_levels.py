from __future__ import annotations

import pytest

from cometmq.base.errors import ConfigError
from cometmq.store.queues.delay_levels import DelayLevels
from cometmq.store.store_config import DELAY_LEVELS

LEVELS = DelayLevels(DELAY_LEVELS)


@pytest.mark.parametrize(
    ("level", "delay_ms"), [(1, 1000), (5, 60_000), (18, 7_200_000), (99, 7_200_000)]
)
def test_the_default_levels(level: int, delay_ms: int) -> None:
    assert LEVELS.delay_ms(level) == delay_ms


def test_an_entry_of_the_schedule_topic_holds_the_time_of_delivery() -> None:
    text = "TAGS\x01TagA\x02DELAY\x013\x02"
    assert LEVELS.tags_code("SCHEDULE_TOPIC_XXXX", text, 5) == 10_005
    assert LEVELS.tags_code("T", text, 5) == 2598919
    assert LEVELS.tags_code("T", "DELAY\x013\x02", 5) == 0


@pytest.mark.parametrize("text", ["", "DELAY\x01x\x02", "DELAY\x010\x02", "DELAY\x01-1\x02"])
def test_without_a_usable_level_the_tag_counts(text: str) -> None:
    tagged = text + "TAGS\x01TagA\x02"
    assert LEVELS.tags_code("SCHEDULE_TOPIC_XXXX", tagged, 5) == 2598919


@pytest.mark.parametrize("text", ["", " ", "1", "s", "1x", "1s,5s", "-1s"])
def test_a_wrong_level_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="messageDelayLevel"):
        DelayLevels(text)
