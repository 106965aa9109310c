from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.clients.subscription_mismatch import Camp, MismatchLog, find_mismatches
from cometmq.model.subscription import SQL92, TAG, SubscriptionData, build_subscription
from cometmq.testing.fake_clock import FakeClock

MakePeer = Callable[..., Any]


def wish(topic: str, expression: str = "*", kind: str = TAG, version: int = 1) -> SubscriptionData:
    return build_subscription(topic, expression, kind, version=version)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (wish("T", "a || b"), wish("T", "b||a", version=9)),
        (wish("T", "*"), wish("T", "")),
        (wish("T", "a > 1", SQL92), wish("T", "a > 1", SQL92, version=2)),
        # A client that sends the text alone.
        (wish("T", "a"), SubscriptionData(topic="T", sub_string="a")),
    ],
)
def test_members_that_want_the_same_agree(one: SubscriptionData, other: SubscriptionData) -> None:
    assert find_mismatches({"c1": [one], "c2": [other]}) == {}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (wish("T", "a"), wish("T", "b")),
        (wish("T", "a"), wish("T", "a || b")),
        (wish("T", "*"), wish("T", "a")),
        (wish("T", "a", SQL92), wish("T", "a")),
        (wish("T", "a > 1", SQL92), wish("T", "a > 2", SQL92)),
    ],
)
def test_different_wishes_stand_against_each_other(
    one: SubscriptionData, other: SubscriptionData
) -> None:
    found = find_mismatches({"c1": [one], "c2": [other], "c3": [one]})
    assert list(found) == ["T"]
    assert found["T"].camps == (
        Camp(one.expression_type, one.sub_string, ("c1", "c3")),
        Camp(other.expression_type, other.sub_string, ("c2",)),
    )


def test_a_topic_that_a_member_does_not_know_is_a_difference() -> None:
    found = find_mismatches({"c1": [wish("T"), wish("U")], "c2": [wish("T")], "c3": []})
    assert [camp.client_ids for camp in found["T"].camps] == [("c1", "c2"), ("c3",)]
    assert [camp.expression for camp in found["U"].camps] == ["*", None]


def test_retry_topics_do_not_count() -> None:
    push = [wish("T"), wish("%RETRY%g")]
    assert find_mismatches({"push": push, "pull": [wish("T")]}) == {}


def test_each_change_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "cometmq.broker")
    told = MismatchLog()

    def note(*expressions: str) -> list[tuple[str, str]]:
        caplog.clear()
        members = {f"c{n}": [wish("T", text)] for n, text in enumerate(expressions)}
        told.note("g", find_mismatches(members))
        return [(record.levelname, record.getMessage()) for record in caplog.records]

    assert note("a") == []
    ((level, text),) = note("a", "b")
    assert level == "WARNING"
    for part in ("group=g", "topic=T", "'a': c0", "'b': c1"):
        assert part in text
    assert note("a", "b") == []
    # One more on either side is no news.
    assert note("a", "b", "b") == []
    ((level, text),) = note("a", "x", "x")
    assert level == "WARNING"
    assert "'x': c1, c2" in text
    ((level, text),) = note("x", "x")
    assert level == "INFO"
    assert "agree again group=g topic=T" in text
    assert note("x") == note() == []
    assert len(note("a", "b")) == 1


def test_a_line_stays_short() -> None:
    camp = Camp(SQL92, "x" * 1000, tuple(f"c{n}" for n in range(500)))
    assert len(str(camp)) < 300
    assert str(camp).endswith("c0, c1, c2 and 497 more")


class TestRegistry:
    def beat(self, registry: ClientRegistry, peer: Any, client_id: str, *wishes: Any) -> None:
        registry.register_consumer(
            "g",
            peer,
            client_id=client_id,
            language="JAVA",
            version=409,
            consume_type="CONSUME_PASSIVELY",
            message_model="CLUSTERING",
            consume_from_where="CONSUME_FROM_LAST_OFFSET",
            subscriptions=wishes,
        )

    def test_a_group_knows_while_members_differ(self, make_peer: MakePeer) -> None:
        registry = ClientRegistry(FakeClock())
        one, two = make_peer(1), make_peer(2)
        self.beat(registry, one, "one", wish("T", "a"))
        group = registry.consumers["g"]
        assert group.mismatches == {}
        self.beat(registry, two, "two", wish("T", "b"))
        assert list(group.mismatches) == ["T"]
        # Nothing new is looked at again.
        assert group.mismatches is group.mismatches
        self.beat(registry, two, "two", wish("T", "a", version=2))
        assert group.mismatches == {}
        self.beat(registry, one, "one", wish("T", "c", version=3))
        assert list(group.mismatches) == ["T"]
        registry.forget(one)
        assert group.mismatches == {}

    def test_a_client_that_reconnects_counts_by_its_newest_word(self, make_peer: MakePeer) -> None:
        registry = ClientRegistry(FakeClock())
        old, new = make_peer(1), make_peer(2)
        self.beat(registry, old, "one", wish("T", "a"))
        self.beat(registry, new, "one", wish("T", "b"))
        assert registry.consumers["g"].mismatches == {}
