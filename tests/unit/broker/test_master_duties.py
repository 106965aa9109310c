"""A broker lays down the duties of a master and takes them up again, while messages of every kind wait in it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Any

import pytest
from tests.unit.broker.rig import Rig, pull_ext

from cometmq.base.errors import StoreError
from cometmq.broker.master_duties import Duty, MasterDuties
from cometmq.broker.pop.check_points import Ack, Key
from cometmq.broker.pop.pop_topics import REVIVE_GROUP, SEEN_GROUP
from cometmq.broker.pop.pops import PopRequest
from cometmq.broker.schedule.delayed_forms import waiting_form as delayed_form
from cometmq.broker.timer.timed_forms import waiting_form as timed_form
from cometmq.broker.transaction.transaction_forms import mark_form
from cometmq.model.names import HALF_TOPIC, TIMER_TOPIC
from cometmq.protocol.command import Command
from cometmq.store.log.new_messages import NewMessage
from cometmq.testing.fake_connection import FakeConnection

LATER = 100_000.0
"""Longer than anything waits here, in seconds."""
COMMIT = "8"
RETRY = "%RETRY%CG_P"


class Master(Rig):
    """No master yet; ``start`` and ``stop`` its duties. Producers of half messages are asked on ``asked``."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        super().__init__({"transactionTimeOut": "6000", **(settings or {})}, is_master=False)

    def open(self, **settings: str) -> None:
        super().open(**settings)
        self.flush_on_demand()
        self.asked = self.producer("PG", "asked")
        self.topic("T")
        self.topic("P", 1)

    def put(self, body: bytes, properties: str = "", **fields: str) -> Command:
        text = f"UNIQ_KEY\x01K{body.decode()}\x02{properties}"
        reply = self.send("T", body, i=text, g=str(self.clock.wall_ms()), **fields)
        assert reply is not None
        assert reply.code == 0, reply.remark
        return reply

    def put_delayed(self, body: bytes, level: int = 3) -> None:
        """Level 3 is ten seconds."""
        self.put(body, f"DELAY\x01{level}")

    def put_timed(self, body: bytes, seconds: int = 10) -> None:
        self.put(body, f"TIMER_DELAY_SEC\x01{seconds}")

    def put_half(self, body: bytes) -> dict[str, str]:
        """What ends the transaction."""
        ext = self.put(body, "TRAN_MSG\x01true\x02PGROUP\x01PG", f="4").ext or {}
        return {
            "producerGroup": "PG",
            "tranStateTableOffset": ext["queueOffset"],
            "commitLogOffset": str(int(ext["msgId"][16:], 16)),
            "commitOrRollback": COMMIT,
        }

    async def questions(self) -> list[dict[str, str]]:
        """Transactions are checked; what ends each of those that the producer is asked about."""
        await self.transactions.check_round()
        return [
            {
                "producerGroup": "PG",
                "tranStateTableOffset": (question.ext or {})["tranStateTableOffset"],
                "commitLogOffset": (question.ext or {})["commitLogOffset"],
                "commitOrRollback": COMMIT,
            }
            for question in self.asked.take()
        ]

    def pop(self, invisible_ms: int = 10_000) -> list[Ack]:
        """Take the messages of topic P; what acknowledges each of them."""
        request = PopRequest(
            group="CG",
            topic="P",
            places=[("P", 0)],
            count_max=32,
            invisible_ms=invisible_ms,
        )
        result = self.rooms.pop.pops.pop(request)
        return [
            Ack(Key("CG", "P", 0, popped.offsets[0], result.pop_time), (offset,))
            for popped in result.popped
            for offset in popped.offsets
        ]

    def ack(self, ack: Ack) -> None:
        assert self.rooms.pop.pops.ack(ack)

    def delivered(self) -> Counter[bytes]:
        """What lies in topic T."""
        return Counter(
            record.body for queue_id in range(4) for record in self.records("T", queue_id)
        )

    def revived(self) -> Counter[bytes]:
        """What is to be popped again."""
        return Counter(record.body for record in self.records(RETRY))


@pytest.fixture
def master() -> Master:
    return Master()


async def test_what_waits_is_delivered_once_after_the_duties_were_laid_down_and_taken_up(
    master: Master,
) -> None:
    await master.duties.start()
    master.put_delayed(b"delayed before", 1)
    master.put_timed(b"timed before", 1)
    master.send("P", b"popped before")
    master.pop(1000)
    master.advance(2)
    before = Counter([b"delayed before", b"timed before"])
    assert (master.delivered(), master.revived()) == (before, Counter([b"popped before"]))
    master.put_delayed(b"delayed")
    master.put_timed(b"timed")
    master.put_half(b"half")
    master.send("P", b"popped")
    master.send("P", b"done")
    handles = master.pop()
    master.advance(5)

    await master.duties.stop()
    master.ack(handles[-1])
    master.put(b"plain")
    master.put_delayed(b"delayed meanwhile")
    master.put_timed(b"timed meanwhile")
    master.put_half(b"half meanwhile")
    log_end = master.store.max_physical
    master.advance(LATER)
    assert master.store.max_physical == log_end, "nobody writes by himself"
    assert master.delivered() == before + Counter([b"plain"])
    assert master.asked.take() == []

    await master.duties.start()
    master.advance(20)
    delayed = [b"delayed", b"delayed meanwhile", b"timed", b"timed meanwhile"]
    assert master.delivered() == before + Counter([b"plain", *delayed])
    for question in await master.questions():
        assert master.ask(37, question).code == 0
    assert await master.questions() == []
    halves = Counter([b"half", b"half meanwhile"])
    assert master.delivered() == before + Counter([b"plain", *delayed]) + halves
    master.advance(LATER)
    assert master.revived() == Counter([b"popped before", b"popped"])
    await master.duties.stop()


@pytest.mark.parametrize("seed", range(20))
async def test_any_number_of_changes_loses_and_doubles_nothing(seed: int) -> None:
    """Stops, starts and kills between sends of every kind."""
    chance = Random(seed)
    master = Master()
    await master.duties.start()
    numbers = count()
    sent: Counter[bytes] = Counter()
    popped: Counter[bytes] = Counter()
    for _ in range(120):
        body = b"%d" % next(numbers)
        match chance.randrange(10):
            case 0 | 1:
                master.put_delayed(body, chance.choice([1, 3, 5]))
                sent[body] += 1
            case 2 | 3:
                master.put_timed(body, chance.choice([1, 10, 700]))
                sent[body] += 1
            case 4:
                master.put_half(body)
                sent[body] += 1
            case 5:
                master.send("P", body)
                popped[body] += 1
                handles = master.pop()
                if handles and chance.random() < 0.5:
                    master.ack(handles[-1])
                    del popped[body]
            case 6 | 7:
                master.advance(chance.choice([0.1, 1, 7, 300]))
            case 8:
                await chance.choice([master.duties.start, master.duties.stop])()
            case _:
                if chance.random() < 0.3:
                    await asyncio.gather(*_kill(master))
                    await master.duties.start()
    await master.duties.start()
    master.advance(LATER)
    for _ in range(2):
        for question in await master.questions():
            assert master.ask(37, question).code == 0
        master.clock.advance(60)
    assert master.delivered() == sent
    assert master.revived() == popped
    assert len(sent) > 30, "the test does too little"
    await master.duties.stop()


def _kill(master: Master) -> list[asyncio.Task[Any]]:
    """End a life without a word; its tasks end with it."""
    mine = asyncio.current_task()
    gone = [task for task in asyncio.all_tasks() if task is not mine]
    for task in gone:
        task.cancel()
    master.store.flush()
    master.crash()
    return [asyncio.create_task(_ended(task)) for task in gone]


async def _ended(task: asyncio.Task[Any]) -> None:
    await asyncio.wait([task])


async def test_a_disk_that_is_full_at_the_stop_loses_and_doubles_nothing(
    master: Master, caplog: pytest.LogCaptureFixture
) -> None:
    await master.duties.start()
    for number in range(5):
        master.put_delayed(b"delayed %d" % number, 1 + number % 3)
        master.put_timed(b"timed %d" % number, 1 + 5 * number)
    master.advance(6)
    free = master.files.space("/store")[1]
    master.store.flush()
    master.files.set_free(0)
    await master.duties.stop()
    assert "not saved" in caplog.text
    master.files.set_free(free)
    await master.duties.start()
    master.advance(60)
    bodies = [b"%s %d" % (kind, number) for kind in (b"delayed", b"timed") for number in range(5)]
    assert master.delivered() == Counter(bodies)
    await master.duties.stop()


async def test_what_is_sent_while_the_duties_change_is_delivered_once(master: Master) -> None:
    sent: Counter[bytes] = Counter()
    for number in count():
        change = master.duties.stop if number % 2 else master.duties.start
        changing = asyncio.create_task(change())
        for turn in count():
            body = b"%d.%d" % (number, turn)
            master.put_delayed(b"delayed " + body, 1)
            master.put_timed(b"timed " + body, 1)
            sent.update([b"delayed " + body, b"timed " + body])
            if changing.done():
                break
            await asyncio.sleep(0)
        master.advance(0.3)
        if number == 9:
            break
    await master.duties.start()
    master.advance(10)
    assert master.delivered() == sent
    await master.duties.stop()


async def test_to_start_or_stop_twice_is_to_do_it_once(master: Master) -> None:
    await master.duties.stop()
    await asyncio.gather(*(master.duties.start() for _ in range(3)))
    tasks, listeners = asyncio.all_tasks(), list(master.store.arrivals)
    await master.duties.start()
    assert (asyncio.all_tasks(), master.store.arrivals) == (tasks, listeners)
    master.put_delayed(b"x", 1)
    await asyncio.gather(
        master.duties.stop(), master.duties.start(), master.duties.stop(), master.duties.start()
    )
    assert master.store.arrivals == listeners
    master.advance(5)
    assert master.delivered() == Counter([b"x"])
    await asyncio.gather(*(master.duties.stop() for _ in range(3)))
    assert not master.duties.are_running


async def test_a_start_completes_the_table_of_topics(master: Master) -> None:
    """A slave that becomes the master has a log, and a table of another moment."""
    master.put_timed(b"x")
    master.put(b"y")
    for topic in ("T", TIMER_TOPIC):
        master.topics.remove(topic)
    await master.duties.start()
    for topic in ("T", TIMER_TOPIC, "TBW102", "SCHEDULE_TOPIC_XXXX"):
        assert master.topics.get(topic) is not None, topic
    await master.duties.stop()


async def test_what_another_master_did_meanwhile_counts(master: Master) -> None:
    """A slave's log grows without its duties knowing of it."""
    await master.duties.start()
    ends = [master.put_half(b"%d" % number) for number in range(3)]
    master.put_delayed(b"delayed")
    master.put_timed(b"timed")
    master.send("P", b"popped")
    (popped,) = master.pop()
    master.advance(1)
    await master.duties.stop()
    store, deliver_ms = master.store, master.clock.wall_ms() + 5000
    message = NewMessage(topic="T", queue_id=0, body=b"new", properties=b"")
    store.put(mark_form(int(ends[0]["tranStateTableOffset"]), master.clock.wall_ms()))
    store.put(delayed_form(message, 2))
    store.put(timed_form(message, {}, deliver_ms))
    # The new master was told that the message is done, and is done with the queue that says so.
    (point,) = master.rooms.pop.pops.in_flight.points()
    revive_log = master.rooms.pop.pops._log
    (place,) = revive_log.put([revive_log.ack_message(popped, point.revive_queue_id)])
    for group in (REVIVE_GROUP, SEEN_GROUP):
        master.offsets.commit(group, revive_log.topic, point.revive_queue_id, place.queue_offset)
    await master.duties.start()
    master.advance(20)
    assert master.delivered() == Counter({b"delayed": 1, b"timed": 1, b"new": 2})
    for question in await master.questions():
        master.ask(37, question)
    assert master.delivered() == Counter({b"delayed": 1, b"timed": 1, b"new": 2, b"1": 1, b"2": 1})
    assert (master.transactions.open_count, master.revived()) == (0, Counter())
    await master.duties.stop()


async def test_a_writer_of_a_sink_opens_its_lane_again(master: Master) -> None:
    lane = {"sink": "s", "partition": "0", "batch": "1", "writer": "w"}
    mark = "__SINK\x01s/0/1"
    await master.duties.start()
    await master.rooms.sink.keeper.begin()
    assert master.ask(29002, lane).code == 0
    assert master.put(b"row", mark, sink="w").code == 0
    await master.duties.stop()
    for code, ext in ((29002, lane), (29004, {"sink": "s"})):
        reply = master.ask(code, ext)
        assert (reply.code, reply.remark) == (
            14,
            "service not available now: this broker is not the master",
        )
    refused = master.send("T", b"row", i=mark, sink="w")
    assert refused is not None
    assert refused.code == 604
    await master.duties.start()
    await master.rooms.sink.keeper.begin()
    reply = master.ask(29002, lane)
    assert (reply.code, (reply.ext or {})["firstOffset"]) == (0, "0")
    assert master.put(b"row", mark, sink="w").code == 0
    await master.duties.stop()


async def test_who_waits_for_a_message_is_not_concerned(master: Master) -> None:
    await master.duties.start()
    consumer = FakeConnection(50_000)
    ext = pull_ext("T", 0, sysFlag="6")
    assert master.dispatch(Command(code=11, ext=ext, opaque=9), consumer) == []
    await master.duties.stop()
    assert consumer.take() == []
    master.put(b"x")
    master.loop.turn()
    (reply,) = consumer.take()
    assert (reply.code, reply.opaque) == (0, 9)


class Story:
    """Duties that tell what happens to them."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def duty(self, name: str, *, fails: str = "") -> Duty:
        story = self

        class Told:
            def resume(self) -> None:
                self.start()

            def start(self) -> None:
                story.told.append(f"start {name}")
                if fails == "start":
                    raise StoreError(f"{name} cannot")

            async def stop(self) -> None:
                story.told.append(f"stop {name}")
                if fails == "stop":
                    raise StoreError(f"{name} cannot")

        return Told()

    def take(self) -> list[str]:
        told, self.told = self.told, []
        return told


Tell = Callable[[Sequence[Duty]], MasterDuties]


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def duties_of(master: Master, story: Story) -> Tell:
    return lambda duties: MasterDuties(master.core, duties)


async def test_duties_stop_in_the_reverse_order(story: Story, duties_of: Tell) -> None:
    duties = duties_of([story.duty("a"), story.duty("b")])
    await duties.start()
    assert story.take() == ["start a", "start b"]
    await duties.stop()
    assert story.take() == ["stop b", "stop a"]
    await duties.start()
    assert story.take() == ["start a", "start b"]


async def test_one_that_cannot_start_leaves_none_running(story: Story, duties_of: Tell) -> None:
    duties = duties_of([story.duty("a"), story.duty("b", fails="start"), story.duty("c")])
    with pytest.raises(StoreError, match="b cannot"):
        await duties.start()
    assert story.take() == ["start a", "start b", "stop b", "stop a"]
    assert not duties.are_running


async def test_one_that_cannot_stop_keeps_none_of_the_others_running(
    story: Story, duties_of: Tell
) -> None:
    duties = duties_of([story.duty("a"), story.duty("b", fails="stop")])
    await duties.start()
    with pytest.raises(StoreError, match="b cannot"):
        await duties.stop()
    assert story.take() == ["start a", "start b", "stop b", "stop a"]
    assert not duties.are_running


async def test_half_messages_begun_and_ended_while_nobody_checks(master: Master) -> None:
    end = master.put_half(b"x")
    assert master.ask(37, end).code == 0
    assert master.delivered() == Counter([b"x"])
    await master.duties.start()
    assert master.transactions.open_count == 0
    assert master.store.max_offset(HALF_TOPIC, 0) == 1
    await master.duties.stop()
