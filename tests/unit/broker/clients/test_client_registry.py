from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cometmq.broker.clients.client_registry import ClientRegistry
from cometmq.broker.clients.consumer_notifier import ConsumerNotifier
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.subscription import SubscriptionData, build_subscription
from cometmq.testing.fake_clock import FakeClock

MakePeer = Callable[..., Any]


def beat(
    registry: ClientRegistry, peer: Any, client_id: str, *wishes: SubscriptionData, group: str = "g"
) -> bool:
    return registry.register_consumer(
        group,
        peer,
        client_id=client_id,
        language="JAVA",
        version=409,
        consume_type="CONSUME_PASSIVELY",
        message_model="CLUSTERING",
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=wishes,
    )


def wish(topic: str, version: int = 1, expression: str = "*") -> SubscriptionData:
    return build_subscription(topic, expression, version=version)


def test_a_new_client_and_a_new_set_of_topics_count_as_changes(make_peer: MakePeer) -> None:
    registry = ClientRegistry(FakeClock())
    one, two = make_peer(1), make_peer(2)
    assert beat(registry, one, "one", wish("T"))
    assert not beat(registry, one, "one", wish("T"))
    assert beat(registry, two, "two", wish("T"))
    assert beat(registry, two, "two", wish("T"), wish("U"))
    assert beat(registry, two, "two", wish("T"))
    assert registry.consumers["g"].client_ids() == ["one", "two"]


def test_a_newer_subscription_replaces_an_older_one_and_not_the_other_way(
    make_peer: MakePeer,
) -> None:
    registry = ClientRegistry(FakeClock())
    one = make_peer()
    beat(registry, one, "one", wish("T", 5, "A"))
    beat(registry, one, "one", wish("T", 4, "B"))
    group = registry.consumer_group("g")
    assert group is not None
    assert group.subscriptions["T"].sub_string == "A"
    assert not beat(registry, one, "one", wish("T", 6, "B"))
    assert group.subscriptions["T"].sub_string == "B"


def test_the_member_that_came_last_says_how_often_messages_are_tried_again(
    make_peer: MakePeer,
) -> None:
    registry = ClientRegistry(FakeClock())
    one, two, three, stranger = (make_peer(number) for number in range(4))
    for peer, name in ((one, "one"), (two, "two"), (three, "three")):
        beat(registry, peer, name, wish("T"))
    group = registry.consumers["g"]
    assert group.retries_max(stranger, 7) == 7
    assert group.retries_max(one, 16) == 16
    assert group.retries_max(stranger, 7) == 16
    assert group.retries_max(two, 2) == 2
    # A member that came later but has not said anything does not count yet.
    assert group.retries_max(one, 16) == 2
    beat(registry, two, "two", wish("T"))
    assert group.retries_max(one, 16) == 2
    registry.forget(two)
    assert group.retries_max(one, 16) == 16


def test_a_client_on_two_connections_is_listed_once(make_peer: MakePeer) -> None:
    registry = ClientRegistry(FakeClock())
    old, new = make_peer(1), make_peer(2)
    beat(registry, old, "one", wish("T"))
    beat(registry, new, "one", wish("T"))
    group = registry.consumers["g"]
    assert group.client_ids() == ["one"]
    found = group.find("one")
    assert found is not None
    assert found.connection is new
    assert group.find("two") is None


def test_a_closed_connection_leaves_everything(make_peer: MakePeer) -> None:
    registry = ClientRegistry(FakeClock())
    one, two = make_peer(1), make_peer(2)
    beat(registry, one, "one", wish("T"))
    beat(registry, one, "one", wish("T"), group="h")
    beat(registry, two, "two", wish("T"))
    registry.register_producer("p", one, client_id="one", language="JAVA", version=409)
    assert registry.group_count(one) == 3
    assert sorted(registry.forget(one)) == ["g", "h"]
    assert registry.forget(one) == []
    assert registry.group_count(one) == 0
    assert list(registry.consumers) == ["g"]
    assert not registry.producers


def test_unregister_tells_whether_somebody_left(make_peer: MakePeer) -> None:
    registry = ClientRegistry(FakeClock())
    one = make_peer()
    beat(registry, one, "one", wish("T"))
    assert not registry.unregister_consumer("other", one)
    assert registry.unregister_consumer("g", one)
    assert not registry.unregister_consumer("g", one)
    assert list(registry.groups_subscribing("T")) == []


def test_a_silent_client_expires_by_the_clock_that_nobody_sets(make_peer: MakePeer) -> None:
    clock = FakeClock()
    registry = ClientRegistry(clock)
    one, two = make_peer(1), make_peer(2)
    beat(registry, one, "one", wish("T"))
    registry.register_producer("p", two, client_id="two", language="JAVA", version=409)
    clock.jump(10_000)
    clock.advance(100)
    beat(registry, one, "one", wish("T"))
    clock.advance(21)
    assert registry.expired(120) == [two]


def test_every_client_of_a_group_is_notified(make_peer: MakePeer) -> None:
    registry = ClientRegistry(FakeClock())
    one, two, other = make_peer(1), make_peer(2), make_peer(3)
    beat(registry, one, "one")
    beat(registry, two, "two")
    beat(registry, other, "other", group="h")
    ConsumerNotifier(registry, lambda name: None).notify("g")
    for peer in (one, two):
        (notice,) = peer.sent
        assert (notice.code, notice.flag, notice.ext) == (40, 2, {"consumerGroup": "g"})
    assert not other.sent


def test_notices_can_be_switched_off_for_a_group_and_for_all(make_peer: MakePeer) -> None:
    registry = ClientRegistry(FakeClock())
    one = make_peer()
    beat(registry, one, "one")
    quiet = SubscriptionGroupConfig(group_name="g", notify_consumer_ids_changed_enable=False)
    ConsumerNotifier(registry, lambda name: quiet).notify("g")
    ConsumerNotifier(registry, lambda name: None, is_enabled=False).notify("g")
    assert not one.sent
