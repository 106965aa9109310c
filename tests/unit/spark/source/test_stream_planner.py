"""A query's life as the planner sees it, with a client that answers from memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import pytest

from cometmq.base.errors import CometError, ConnectFailed
from cometmq.client.core.broker_order import Place
from cometmq.client.core.queue_answers import Answers, Bounds
from cometmq.client.errors import NoNameServer, NoRoute
from cometmq.client.sync.bulk_client import BulkClient
from cometmq.model.message_queue import MessageQueue
from cometmq.spark.errors import BadOption, DataLost, ReadStalled
from cometmq.spark.source.ranges import Range
from cometmq.spark.source.source_options import read_source_options
from cometmq.spark.source.stream_planner import StreamPlanner
from cometmq.testing.fake_clock import FakeClock


class FakeClient:
    def __init__(self) -> None:
        self.held: dict[MessageQueue, Bounds] = {}
        self.silent: set[str] = set()
        self.is_name_server_up = True
        self.group: dict[MessageQueue, int] = {}
        self.commits: list[dict[MessageQueue, int]] = []
        self.refuses_commits = False
        self.announced: list[tuple[str, tuple[str, ...], str, str | None]] = []
        self.asked = 0
        self.knows_brokers = True

    def topics(self) -> list[str]:
        if not self.is_name_server_up:
            raise NoNameServer("none")
        return sorted({queue.topic for queue in self.held})

    def queues(self, topic: str) -> list[MessageQueue]:
        self.asked += 1
        if not self.is_name_server_up:
            raise NoNameServer("none")
        found = [queue for queue in self.held if queue.topic == topic]
        if not found:
            raise NoRoute(topic)
        return sorted(found)

    def has_brokers(self) -> bool:
        return self.knows_brokers

    def places(self, broker_name: str) -> tuple[Place, ...]:
        return (Place("127.0.0.1:1", True),)

    def bounds(
        self, queues: Iterable[MessageQueue]
    ) -> tuple[dict[MessageQueue, Bounds], dict[MessageQueue, CometError]]:
        bounds, failures = {}, {}
        for queue in queues:
            if queue.broker_name in self.silent:
                failures[queue] = ConnectFailed("nobody there")
            else:
                bounds[queue] = self.held[queue]
        return bounds, cast(dict[MessageQueue, CometError], failures)

    def committed(
        self, group: str, queues: Sequence[MessageQueue]
    ) -> dict[MessageQueue, int | None]:
        return {queue: self.group.get(queue) for queue in queues}

    def commit(
        self, group: str, offsets: Mapping[MessageQueue, int]
    ) -> dict[MessageQueue, CometError]:
        if self.refuses_commits:
            return dict.fromkeys(offsets, ConnectFailed("nobody there"))
        self.commits.append(dict(offsets))
        return {}

    def announce(
        self, group: str, topics: Sequence[str], expression: str, expression_type: str | None
    ) -> None:
        self.announced.append((group, tuple(topics), expression, expression_type))

    def ask(self, queues: Sequence[MessageQueue], *_: object) -> Answers:
        return Answers(failures=dict.fromkeys(queues, ConnectFailed("nobody there")))

    def close(self) -> None:
        pass


class Rig:
    def __init__(self, **options: str) -> None:
        values = {"nameServers": "h:1", **options}
        if "topicPattern" not in values:
            values["topic"] = "orders"
        self.client = FakeClient()
        self.clock = FakeClock()
        self.back_at = float("inf")
        self.planner = StreamPlanner(
            read_source_options(values),
            client=cast(BulkClient, self.client),
            clock=self.clock.monotonic,
            sleep=self._sleep,
        )

    def come_back_in(self, seconds: float, come_back: Callable[[], None]) -> None:
        """What was away is there again after so long."""
        self.back_at = self.clock.monotonic() + seconds
        self.come_back = come_back

    def _sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)
        if self.clock.monotonic() >= self.back_at:
            self.come_back()

    def hold(self, queue: MessageQueue, first: int, end: int) -> None:
        self.client.held[queue] = Bounds(first, end)

    def next(self, start: Any, *, is_limited: bool = True) -> Any:
        return self.planner.next(start, is_limited=is_limited)


A = MessageQueue("one", 0, "orders")
B = MessageQueue("two", 0, "orders")
C = MessageQueue("one", 0, "bills")


def test_a_query_starts_at_the_end_unless_told_otherwise() -> None:
    rig = Rig()
    rig.hold(A, 3, 9)
    assert rig.planner.initial() == {A: 9}
    rig = Rig(startingOffsets="earliest")
    rig.hold(A, 3, 9)
    assert rig.planner.initial() == {A: 3}


def test_a_query_starts_where_the_group_is() -> None:
    rig = Rig(startingOffsets="group", consumerGroup="g")
    rig.hold(A, 3, 9)
    rig.hold(B, 4, 9)
    rig.client.group = {A: 7}
    assert rig.planner.initial() == {A: 7, B: 4}
    rig = Rig(startingOffsets="group", consumerGroup="g", groupFallback="latest")
    rig.hold(A, 3, 9)
    rig.hold(B, 4, 9)
    # Left behind by the group long before this query.
    rig.client.group = {A: 1}
    assert rig.planner.initial() == {A: 3, B: 9}


def test_a_query_starts_at_named_offsets() -> None:
    rig = Rig(startingOffsets='{"orders": {"one": {"0": 5}}}')
    rig.hold(A, 3, 9)
    rig.hold(B, 4, 9)
    assert rig.planner.initial() == {A: 5, B: 4}
    rig = Rig(startingOffsets='{"orders": {"one": {"7": 5}}}')
    rig.hold(A, 3, 9)
    with pytest.raises(BadOption, match=r"got orders/one/7; there are orders/one/0"):
        rig.planner.initial()


def test_a_start_waits_for_a_broker_that_is_away_and_is_not_made_up() -> None:
    rig = Rig()
    rig.hold(A, 3, 9)
    rig.client.silent = {"one"}
    rig.come_back_in(40, rig.client.silent.clear)
    assert rig.planner.initial() == {A: 9}
    rig.client.silent = {"one"}
    rig.come_back_in(70, rig.client.silent.clear)
    with pytest.raises(ReadStalled, match=r"nobody there; waited 60 s \(readTimeout\)"):
        rig.planner.initial()


def test_a_topic_is_waited_for_as_long_as_no_broker_is_known() -> None:
    rig = Rig(startingOffsets="earliest")
    rig.client.knows_brokers = False
    rig.come_back_in(40, lambda: rig.hold(A, 3, 9))
    assert rig.planner.initial() == {A: 3}


def test_a_topic_that_known_brokers_do_not_have_is_named_soon() -> None:
    rig = Rig(startingOffsets="earliest")
    rig.come_back_in(5, lambda: rig.hold(A, 3, 9))
    assert rig.planner.initial() == {A: 3}
    rig = Rig()
    rig.come_back_in(15, lambda: rig.hold(A, 3, 9))
    with pytest.raises(ReadStalled, match="orders; create the topic"):
        rig.planner.initial()
    assert rig.clock.monotonic() < rig.back_at


def test_name_servers_that_are_away_are_waited_for() -> None:
    rig = Rig(startingOffsets="earliest", readTimeout="5s")
    rig.hold(A, 3, 9)
    rig.client.is_name_server_up = False

    def come_back() -> None:
        rig.client.is_name_server_up = True

    rig.come_back_in(4, come_back)
    rig.planner.fix_target()
    assert rig.next(rig.planner.initial()) == {A: 9}


def test_batches_follow_the_queues() -> None:
    rig = Rig()
    rig.hold(A, 0, 9)
    assert rig.next({A: 4}) == {A: 9}
    assert rig.next({A: 9}) == {A: 9}
    assert rig.planner.ranges({A: 4}, {A: 9}) == [Range(A, 4, 9)]
    assert rig.planner.latest == {A: 9}


def test_rows_are_limited_but_not_for_those_who_want_all() -> None:
    rig = Rig(maxRowsPerTrigger="10")
    rig.hold(A, 0, 100)
    rig.hold(B, 0, 5)
    end = rig.next({A: 0, B: 0})
    assert sum(end.values()) == 10
    assert end[B] >= 1
    assert rig.next({A: 0, B: 0}, is_limited=False) == {A: 100, B: 5}


def test_few_rows_wait_for_more_or_for_their_time() -> None:
    rig = Rig(minRowsPerTrigger="10", maxTriggerDelay="60s")
    rig.hold(A, 0, 5)
    assert rig.next({A: 0}) == {A: 0}
    rig.clock.advance(59)
    assert rig.next({A: 0}) == {A: 0}
    rig.clock.advance(1)
    assert rig.next({A: 0}) == {A: 5}
    rig.hold(A, 0, 15)
    assert rig.next({A: 5}) == {A: 15}


def test_rows_of_a_new_queue_are_waited_for_and_taken_with_the_others() -> None:
    rig = Rig(minRowsPerTrigger="10", maxTriggerDelay="60s")
    rig.hold(A, 0, 3)
    rig.hold(B, 0, 7)
    assert rig.next({A: 0}) == {A: 0, B: 0}
    assert rig.next({A: 0, B: 0}) == {A: 3, B: 7}


def test_what_is_finished_is_committed_once_and_again_in_a_while() -> None:
    rig = Rig(consumerGroup="g")
    rig.hold(A, 0, 9)
    rig.next({A: 4})
    assert rig.client.commits == [{A: 4}]
    rig.next({A: 9})
    rig.next({A: 9})
    rig.next({A: 9})
    assert rig.client.commits == [{A: 4}, {A: 9}]
    rig.clock.advance(31)
    rig.next({A: 9})
    assert rig.client.commits == [{A: 4}, {A: 9}, {A: 9}]


def test_a_failed_commit_is_made_up_for() -> None:
    rig = Rig(consumerGroup="g")
    rig.hold(A, 0, 9)
    rig.client.refuses_commits = True
    assert rig.next({A: 4}) == {A: 9}
    rig.client.refuses_commits = False
    rig.next({A: 4})
    assert rig.client.commits == [{A: 4}]


def test_nothing_is_committed_without_a_group_or_when_told_so() -> None:
    for options in ({}, {"consumerGroup": "g", "commitOffsets": "false"}):
        rig = Rig(**options)
        rig.hold(A, 0, 9)
        rig.next({A: 4})
        assert rig.client.commits == []
        assert rig.client.announced == []


def test_brokers_hear_of_the_group_and_of_its_new_topics() -> None:
    rig = Rig(topicPattern=".*", consumerGroup="g", discoveryInterval="5s", tags="a")
    rig.hold(A, 0, 9)
    rig.next({A: 4})
    rig.next({A: 4})
    assert len(rig.client.announced) == 1
    rig.hold(C, 0, 9)
    rig.clock.advance(6)
    rig.next({A: 4})
    assert len(rig.client.announced) == 2
    assert rig.client.announced[-1] == ("g", ("bills", "orders"), "a", "TAG")
    rig.clock.advance(31)
    rig.next({A: 4})
    assert len(rig.client.announced) == 3


def test_new_queues_and_topics_are_found_while_the_query_runs() -> None:
    rig = Rig(topicPattern=".*", discoveryInterval="5s", startingOffsets="latest")
    assert rig.planner.initial() == {}
    rig.hold(A, 2, 9)
    assert rig.next({}) == {}
    rig.clock.advance(5)
    assert rig.next({}) == {A: 2}
    assert rig.next({A: 2}) == {A: 9}
    rig.hold(C, 0, 3)
    rig.clock.advance(5)
    assert rig.next({A: 9}) == {A: 9, C: 0}


def test_routes_are_not_asked_for_at_every_trigger() -> None:
    rig = Rig(discoveryInterval="5s")
    rig.hold(A, 0, 9)
    for _ in range(10):
        rig.next({A: 9})
    assert rig.client.asked == 1


def test_a_query_goes_on_while_servers_are_away() -> None:
    rig = Rig(discoveryInterval="5s")
    rig.hold(A, 0, 9)
    rig.hold(B, 0, 9)
    rig.next({A: 0, B: 0})
    rig.client.silent = {"two"}
    rig.client.is_name_server_up = False
    rig.clock.advance(5)
    assert rig.next({A: 0, B: 4}) == {A: 9, B: 4}
    rig.client.silent = set()
    assert rig.next({A: 9, B: 4}) == {A: 9, B: 9}


def test_available_now_ends_where_it_was_told_to() -> None:
    rig = Rig(maxRowsPerTrigger="6", minRowsPerTrigger="5")
    rig.hold(A, 0, 9)
    rig.planner.fix_target()
    rig.hold(A, 0, 100)
    rig.hold(B, 0, 100)
    assert rig.next({A: 0}) == {A: 6}
    # Fewer rows than the least are taken: no more will come.
    assert rig.next({A: 6}) == {A: 9}
    assert rig.next({A: 9}) == {A: 9}
    assert rig.planner.latest == {A: 100, B: 100}


def test_available_now_waits_for_a_broker_that_is_away() -> None:
    rig = Rig()
    rig.hold(A, 0, 9)
    rig.hold(B, 0, 9)
    rig.client.silent = {"one"}
    rig.come_back_in(20, rig.client.silent.clear)
    rig.planner.fix_target()
    rig.client.silent = {"two"}
    rig.come_back_in(20, rig.client.silent.clear)
    assert rig.next({A: 0, B: 0}) == {A: 9, B: 9}


def test_available_now_does_not_end_early_because_a_broker_is_away() -> None:
    rig = Rig(readTimeout="5s")
    rig.hold(A, 0, 9)
    rig.planner.fix_target()
    rig.client.silent = {"one"}
    with pytest.raises(ReadStalled, match="nobody there; waited 5 s"):
        rig.next({A: 0})


def test_available_now_does_not_end_early_because_sizes_were_not_told() -> None:
    rig = Rig(maxBytesPerTrigger="1k", readTimeout="5s")
    rig.hold(A, 0, 9)
    rig.planner.fix_target()
    with pytest.raises(ReadStalled, match="the brokers of 9 messages do not answer; waited 5 s"):
        rig.next({A: 0})


def test_a_loss_names_queue_wanted_and_available() -> None:
    rig = Rig()
    rig.hold(A, 20, 30)
    with pytest.raises(DataLost) as caught:
        rig.next({A: 5})
    assert "topic=orders broker=one queue=0" in str(caught.value)
    assert "wanted offsets 5 to 30, available are 20 to 30" in str(caught.value)
    rig = Rig(failOnDataLoss="false")
    rig.hold(A, 20, 30)
    assert rig.next({A: 5}) == {A: 30}
