"""Acknowledgements of one turn of the loop: one write, a record and an answer for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.unit.broker.pop.rig import GROUP, INVISIBLE, REVIVE, TOPIC, Out, PopRig

from cometmq.base.errors import DiskFull
from cometmq.broker.pop.ack_processor import PopAckProcessor
from cometmq.broker.pop.check_points import Ack
from cometmq.model.topic import TopicConfig
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import FLAG_ONEWAY, Command
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.turn import Turn
from cometmq.store.log.new_messages import NewMessage, NewMessages, Stored, StoredMessages
from cometmq.store.message_store import MessageStore

ASK = 999


class Consumer:
    """A peer that has popped four messages, and the turns of a broker that it acknowledges them to."""

    def __init__(self, rig: PopRig, peer: Any) -> None:
        self.rig = rig
        self.peer = peer
        for number in range(4):
            rig.put(b"%d" % number)
        self.outs = [out for _, out in rig.pop()]
        self.writes: list[int] = []
        """How many records were appended at a time."""
        self.open_when_asked: list[int] = []
        dispatcher = Dispatcher()
        PopAckProcessor(
            live=rig.live,
            pops=rig.pops,
            store=rig.store,
            topics=rig.topics,
            durability=rig.core.durability,
        ).register(dispatcher)
        dispatcher.add(ASK, self._ask)
        self._turn = Turn(dispatcher)

    def _ask(self, connection: Connection, command: Command) -> Command:
        self.open_when_asked.append(self.open)
        return command.reply()

    @property
    def open(self) -> int:
        return sum(len(point.open) for point in self.rig.pops.in_flight.points())

    def sends(self, *commands: Command) -> dict[int, int]:
        """The codes of the replies by opaque."""
        self.peer.commands.extend(commands)
        self._turn.run_alone(cast(Connection, self.peer))
        return {reply.opaque: reply.code for reply in self.peer.take()}


def ack(out: Out, opaque: int, *, oneway: bool = False) -> Command:
    key, offset = out
    handle = f"{key.start_offset} {key.pop_time} {INVISIBLE} 0 0 b {key.queue_id} {offset}"
    ext = {
        "consumerGroup": GROUP,
        "topic": TOPIC,
        "queueId": str(key.queue_id),
        "extraInfo": handle,
        "offset": str(offset),
    }
    flag = FLAG_ONEWAY if oneway else 0
    return Command(RequestCode.ACK_MESSAGE, ext, opaque=opaque, flag=flag)


@pytest.fixture
def consumer(make_peer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Consumer:
    rig = PopRig()
    rig.topics.put(TopicConfig(topic_name=TOPIC, read_queue_nums=2, write_queue_nums=2))
    consumer = Consumer(rig, make_peer())
    append_each = MessageStore.append_each

    def count(self: MessageStore, new: NewMessages) -> list[StoredMessages | Exception]:
        consumer.writes.append(len(new.topics))
        return append_each(self, new)

    monkeypatch.setattr(MessageStore, "append_each", count)
    return consumer


def revive_tags(rig: PopRig) -> list[str]:
    return [
        record.properties["TAGS"]
        for queue_id in range(8)
        for record in rig.records(REVIVE, queue_id)
    ]


def test_acknowledgements_of_a_turn_are_one_write_and_a_record_each(consumer: Consumer) -> None:
    outs = consumer.outs
    replies = consumer.sends(*(ack(out, at) for at, out in enumerate(outs[:3])))
    assert replies == {0: 0, 1: 0, 2: 0}
    assert consumer.writes == [3]
    assert revive_tags(consumer.rig) == ["ck", "ack", "ack", "ack"]
    assert consumer.open == 1


def test_after_a_crash_they_are_known(consumer: Consumer) -> None:
    rig = consumer.rig
    consumer.sends(*(ack(out, at) for at, out in enumerate(consumer.outs[:3])))
    rig.store.flush()
    rig.crash()
    rig.advance(INVISIBLE / 1000 + 1)
    assert rig.bodies() == [b"3"]


def test_late_and_repeated_ones_are_answered_and_change_nothing(consumer: Consumer) -> None:
    first, second, *_ = consumer.outs
    late = (first[0]._replace(pop_time=1), first[1])
    replies = consumer.sends(ack(first, 1), ack(first, 2), ack(late, 3), ack(second, 4))
    assert replies == {1: 0, 2: 0, 3: 0, 4: 0}
    assert consumer.writes == [2]
    assert consumer.sends(ack(first, 5)) == {5: 0}
    assert consumer.writes == [2], "nothing to write"


def test_what_comes_behind_an_acknowledgement_knows_of_it(consumer: Consumer) -> None:
    first, second, third, _ = consumer.outs
    replies = consumer.sends(ack(first, 1), ack(second, 2), Command(ASK, opaque=3), ack(third, 4))
    assert list(replies) == [1, 2, 3, 4]
    assert consumer.open_when_asked == [2]
    assert consumer.open == 1


def test_a_bad_one_is_refused_alone_and_a_one_way_is_not_answered(consumer: Consumer) -> None:
    first, second, third, _ = consumer.outs
    bad = (second[0], 77)
    replies = consumer.sends(ack(first, 1), ack(bad, 2), ack(third, 3, oneway=True))
    assert replies == {1: 0, 2: ResponseCode.NO_MESSAGE}
    assert consumer.open == 2


def test_one_that_cannot_be_stored_is_refused_with_its_repetition(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *_ = consumer.outs
    append_each = MessageStore.append_each

    def lose_the_first(self: MessageStore, new: NewMessages) -> list[StoredMessages | Exception]:
        return [DiskFull("no space"), *append_each(self, new.slice(1, 2))]

    monkeypatch.setattr(MessageStore, "append_each", lose_the_first)
    replies = consumer.sends(ack(first, 1), ack(second, 2), ack(first, 3))
    assert (replies[1] != 0, replies[2], replies[3]) == (True, 0, replies[1])
    assert consumer.rig.pops.ack(Ack(first[0], (first[1],))) > 0, "it is still out"


def test_a_lone_one_that_cannot_be_stored_is_refused(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: MessageStore, messages: list[NewMessage]) -> list[Stored]:
        raise DiskFull("no space")

    with monkeypatch.context() as patch:
        patch.setattr(MessageStore, "put_all", full)
        assert consumer.sends(ack(consumer.outs[0], 1))[1] != 0
    assert consumer.open == 4
    assert consumer.sends(ack(consumer.outs[0], 2)) == {2: 0}
    assert consumer.open == 3


def test_nobody_waits_in_vain_when_the_store_breaks(
    consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: MessageStore, new: NewMessages) -> list[StoredMessages | Exception]:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(MessageStore, "append_each", broken)
    replies = consumer.sends(*(ack(out, at) for at, out in enumerate(consumer.outs)))
    assert replies == dict.fromkeys(range(4), ResponseCode.SYSTEM_ERROR)
    assert consumer.open == 4
