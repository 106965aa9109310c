"""A slave's tables follow those of a master, both in memory: what is asked, what is taken over, what is given back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from tests.unit.broker.rig import Rig

from cometmq.base.errors import ConnectFailed, RemotingError
from cometmq.broker.replication.metadata_sync import MetadataSync
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.messages.properties import TIMER_DELIVER_MS
from cometmq.protocol.bodies.pop import SetMessageRequestModeBody
from cometmq.protocol.command import Command
from cometmq.store.log.new_messages import NewMessage

MASTER = "127.0.0.1:32010"
UNKNOWN_TO_49 = (402, 60, 61)


class Wire:
    """The way from the slave to its master; stands for a ``RemotingClient``."""

    def __init__(self, master: Rig) -> None:
        self.master = master
        self.error: RemotingError | None = None
        self.asked: list[Command] = []
        self.answer: Callable[[Command], Command | None] = lambda command: None
        """Answers in the master's place."""

    @property
    def codes(self) -> list[int]:
        return [command.code for command in self.asked]

    async def call(self, address: str, command: Command, timeout: float = 3.0) -> Command:
        assert address == MASTER
        if self.error is not None:
            raise self.error
        self.asked.append(command)
        if (answer := self.answer(command)) is not None:
            return answer
        (reply,) = self.master.dispatch(command)
        return reply


class Pair:
    def __init__(self) -> None:
        self.master = Rig()
        self.slave = Rig({"brokerRole": "SLAVE", "brokerId": "1"}, is_master=False)
        self.wire = Wire(self.master)
        self.sync = self.new_sync()

    def new_sync(self) -> MetadataSync:
        slave = self.slave
        self.sync = MetadataSync(
            core=slave.core,
            delays=slave.rooms.schedule,
            timers=slave.rooms.timer.timed,
            sinks=slave.rooms.sink.keeper,
            client=self.wire,
        )
        self.sync.follow(MASTER)
        return self.sync

    def round(self) -> None:
        """What the slave does every few seconds."""
        self.wire.asked.clear()
        asyncio.run(self.sync.sync_now())

    def copy_log(self) -> None:
        """What replication of the log does."""
        master, slave = self.master.store, self.slave.store
        start = slave.max_physical
        view = master.log_view(start, master.max_physical - start)
        if view is not None:
            slave.replica.append(start, bytes(view))
            while slave.replica.dispatch():
                pass


@pytest.fixture
def pair() -> Pair:
    return Pair()


@contextmanager
def rocketmq_49(pair: Pair) -> Iterator[None]:
    """Answers of a master that is older: everything at once, and three requests unknown."""

    def answer(command: Command) -> Command | None:
        if command.code in UNKNOWN_TO_49:
            return command.reply(3, f" request type {command.code} not supported")
        if command.code in (21, 201):
            (whole,) = pair.master.dispatch(Command(command.code, opaque=command.opaque))
            whole.ext = {}
            return whole
        return None

    pair.wire.answer = answer
    yield


def test_a_round_asks_in_rocketmqs_order_and_takes_everything_over(pair: Pair) -> None:
    master, slave = pair.master, pair.slave
    master.topic("T", 3, order=True, attributes={"message.type": "FIFO"})
    master.groups.put(SubscriptionGroupConfig(group_name="G", retry_max_times=3))
    master.groups.set_readable("G", "T", False)
    master.offsets.commit("G", "T", 2, 9)
    master.modes.set(SetMessageRequestModeBody(topic="T", consumer_group="G", mode="POP"))
    pair.round()
    assert pair.wire.codes == [21, 43, 45, 201, 402, 61, 60, 28, 29006]
    assert slave.topics.all() == master.topics.all()
    assert slave.topics.version == master.topics.version
    assert slave.groups.all() == master.groups.all()
    assert slave.groups.version == master.groups.version
    assert not slave.groups.is_readable("G", "T")
    assert slave.offsets.query("G", "T", 2) == 9
    assert slave.modes.modes == master.modes.modes


def test_with_a_master_of_rocketmq_49_the_same(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair.master.topic("T", 3)
    pair.master.offsets.commit("G", "T", 2, 9)
    with rocketmq_49(pair):
        pair.round()
        taken = pair.slave.topics.change_count, pair.slave.offsets.change_count
        pair.round()
    assert pair.slave.topics.all() == pair.master.topics.all()
    assert pair.slave.offsets.query("G", "T", 2) == 9
    assert (pair.slave.topics.change_count, pair.slave.offsets.change_count) == taken
    assert "not synced" not in caplog.text


def test_a_second_round_changes_nothing_and_carries_no_entries(pair: Pair) -> None:
    pair.master.topic("T")
    pair.round()
    counts = pair.slave.topics.change_count, pair.slave.groups.change_count
    sizes: list[int] = []

    def answer(command: Command) -> Command | None:
        if command.code in (21, 201):
            (reply,) = pair.master.dispatch(command)
            sizes.append(len(reply.body))
            return reply
        return None

    pair.wire.answer = answer
    pair.round()
    assert (pair.slave.topics.change_count, pair.slave.groups.change_count) == counts
    assert len(sizes) == 2
    assert max(sizes) < 120


def test_tables_of_several_pages_are_read_to_their_end(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cometmq.broker.admin.paging.PAGE_MAX", 7)
    for number in range(20):
        pair.master.topic(f"T{number:02}")
    pair.round()
    assert pair.wire.codes.count(21) == (len(pair.master.topics) + 6) // 7
    assert pair.slave.topics.all() == pair.master.topics.all()


async def test_nobody_sees_half_of_a_table(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cometmq.store.meta.config_table.PORTION", 1)
    master, slave = pair.master, pair.slave
    for number in range(5):
        master.topic(f"T{number}")
        master.groups.put(SubscriptionGroupConfig(group_name=f"G{number}"))
    master.groups.set_readable("G0", "T0", False)
    seen: set[tuple[int, int, bool]] = set()

    async def watch() -> None:
        while True:
            seen.add((len(slave.topics), len(slave.groups), slave.groups.is_readable("G0", "T0")))
            await asyncio.sleep(0)

    old = len(slave.topics), len(slave.groups)
    new = len(master.topics), len(master.groups)
    watching = asyncio.create_task(watch())
    await pair.sync.sync_now()
    watching.cancel()
    assert seen == {(*old, True), (new[0], old[1], True), (*new, False)}


def test_what_is_deleted_at_the_master_vanishes_with_its_queues(pair: Pair) -> None:
    master, slave = pair.master, pair.slave
    for topic in ("Stays", "Goes"):
        master.topic(topic)
        master.store.put(NewMessage(topic=topic, queue_id=0, body=b"x", properties=b""))
        master.offsets.commit("G", topic, 0, 1)
    master.groups.put(SubscriptionGroupConfig(group_name="G"))
    pair.copy_log()
    pair.round()
    assert slave.store.max_offset("Goes", 0) == 1
    assert master.ask(215, {"topic": "Goes"}).code == 0
    assert master.ask(207, {"groupName": "G"}).code == 0
    pair.round()
    assert "Goes" not in slave.topics
    assert "G" not in slave.groups
    assert slave.store.max_offset("Goes", 0) == 0
    assert slave.store.max_offset("Stays", 0) == 1
    assert slave.offsets.query("G", "Goes", 0) == -1
    assert slave.offsets.query("G", "Stays", 0) == 1


async def test_between_two_deletions_others_have_their_turn(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To delete a topic is to delete files, and to forget a group is to search all figures for it."""
    master, stats = pair.master, pair.slave.core.stats
    names = [f"Goes{number}" for number in range(3)]
    for name in names:
        master.topic(name)
        master.groups.put(SubscriptionGroupConfig(group_name=name))
    await pair.sync.sync_now()
    for name in names:
        assert master.topics.remove(name)
        assert master.groups.remove(name)
    turns = 0
    seen: list[int] = []

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(stats, "forget_topic", lambda topic: seen.append(turns))
    monkeypatch.setattr(stats, "forget_group", lambda group: seen.append(turns))
    counting = asyncio.create_task(count())
    await pair.sync.sync_now()
    counting.cancel()
    assert len(seen) == len(set(seen)) == 6


def test_queues_of_a_topic_that_only_the_log_knows_yet_stay(pair: Pair) -> None:
    pair.round()
    pair.slave.topic("New")
    pair.master.store.put(NewMessage(topic="New", queue_id=0, body=b"x", properties=b""))
    pair.copy_log()
    pair.round()
    assert "New" not in pair.slave.topics
    assert pair.slave.store.max_offset("New", 0) == 1


def test_the_masters_offsets_win(pair: Pair) -> None:
    pair.master.offsets.commit("G", "T", 0, 5)
    pair.round()
    pair.master.offsets.commit("G", "T", 0, 2)
    pair.round()
    assert pair.slave.offsets.query("G", "T", 0) == 2


def commit(rig: Rig, offset: int, queue_id: int = 0) -> Command:
    fields = {"consumerGroup": "G", "topic": "T", "queueId": str(queue_id)}
    return rig.ask(15, {**fields, "commitOffset": str(offset)})


def test_commits_made_while_the_master_was_away_reach_it(pair: Pair) -> None:
    pair.master.topic("T")
    pair.master.groups.put(SubscriptionGroupConfig(group_name="G"))
    for queue_id in range(3):
        pair.master.offsets.commit("G", "T", queue_id, 5)
    pair.round()
    pair.wire.error = ConnectFailed("no master")
    for queue_id, offset in enumerate((4, 8)):
        assert commit(pair.slave, offset, queue_id).code == 0
    pull = pair.slave.pull("T", 0, sysFlag="5", commitOffset="11", queueId="2", consumerGroup="G")
    assert pull.code in (0, 19)
    pair.round()
    assert pair.sync.stray_count == 3
    pair.wire.error = None
    pair.round()
    assert pair.wire.codes[:5] == [21, 43, 15, 15, 45]
    for rig in (pair.master, pair.slave):
        assert [rig.offsets.query("G", "T", queue_id) for queue_id in range(3)] == [5, 8, 11]
    assert pair.sync.stray_count == 0
    pair.round()
    assert 15 not in pair.wire.codes


def test_they_reach_it_although_the_slave_was_restarted(pair: Pair) -> None:
    pair.master.topic("T")
    pair.round()
    assert commit(pair.slave, 8).code == 0
    asyncio.run(pair.sync.stop())
    asyncio.run(pair.slave.restart())
    pair.new_sync()
    pair.round()
    assert pair.master.offsets.query("G", "T", 0) == 8


def test_a_slave_that_became_the_master_has_nothing_to_give_back(pair: Pair) -> None:
    pair.master.topic("T")
    pair.round()
    assert commit(pair.slave, 8).code == 0
    asyncio.run(pair.sync.stop())
    asyncio.run(pair.slave.restart(brokerRole="ASYNC_MASTER", brokerId="0"))
    pair.new_sync()
    assert commit(pair.slave, 9).code == 0
    assert pair.sync.stray_count == 0
    pair.round()
    assert pair.slave.offsets.query("G", "T", 0) == 9
    # Nor when it is a slave again.
    pair.slave.crash()
    asyncio.run(pair.slave.restart(brokerRole="SLAVE", brokerId="1"))
    assert pair.new_sync().stray_count == 0


def test_nor_has_one_that_became_it_while_it_ran(pair: Pair) -> None:
    pair.master.topic("T")
    pair.round()
    assert commit(pair.slave, 8).code == 0
    identity = replace(pair.slave.live.current.identity, role="ASYNC_MASTER")
    pair.slave.live.current = replace(pair.slave.live.current, identity=identity)
    pair.sync.role_changed(pair.slave.live.current)
    assert pair.sync.stray_count == 0
    pair.round()
    assert pair.slave.offsets.query("G", "T", 0) == 8
    assert pair.master.offsets.query("G", "T", 0) == -1


def test_a_commit_that_the_master_refuses_is_told_once_and_dropped(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair.slave.topic("T")
    assert commit(pair.slave, 8).code == 0
    pair.round()
    pair.round()
    assert caplog.text.count("commits made here not taken count=1") == 1
    assert pair.slave.offsets.query("G", "T", 0) == -1


async def test_commits_that_the_master_does_not_need_are_forgotten_in_portions(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cometmq.broker.replication.metadata_sync.COMMITS_AT_ONCE", 2)
    for queue_id in range(9):
        pair.slave.offsets.commit("G", "T", queue_id, 4)
        pair.master.offsets.commit("G", "T", queue_id, 5)
    left: list[int] = []

    async def watch() -> None:
        while True:
            left.append(pair.sync.stray_count)
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    await pair.sync.sync_now()
    watching.cancel()
    assert sorted(set(left)) == [0, 1, 3, 5, 7, 9]


async def test_a_commit_that_comes_while_the_masters_table_is_taken_over_stays(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cometmq.store.meta.consumer_offsets.PORTION", 1)
    monkeypatch.setattr("cometmq.broker.replication.metadata_sync.COMMITS_AT_ONCE", 1)
    pair.master.topic("T")
    for queue_id in range(4):
        pair.master.offsets.commit(f"G{queue_id}", "T", 0, 5)
    await pair.sync.sync_now()
    pair.master.offsets.commit("G0", "T", 0, 6)

    async def consume() -> None:
        for offset in range(10, 40):
            for queue_id in range(4):
                pair.slave.offsets.commit(f"G{queue_id}", "T", 0, offset)
            await asyncio.sleep(0)

    await asyncio.gather(pair.sync.sync_now(), consume())
    assert [pair.slave.offsets.query(f"G{number}", "T", 0) for number in range(4)] == [39] * 4


def delay(rig: Rig, count: int) -> None:
    for _ in range(count):
        rig.schedule.put(NewMessage(topic="T", queue_id=0, body=b"x", properties=b""), 1)


def test_deliveries_count_once_the_log_has_them(pair: Pair) -> None:
    master, slave = pair.master, pair.slave
    master.topic("T")
    delay(master, 2)
    pair.copy_log()
    master.advance(2)
    assert master.store.max_offset("T", 0) == 2
    pair.round()
    # The copies that were delivered are still on their way. A broker promoted now has to deliver them itself.
    assert slave.schedule.encode() == b'{"offsetTable":{}}'
    pair.copy_log()
    pair.round()
    assert slave.schedule.encode() == master.schedule.encode() == b'{"offsetTable":{1:2}}'
    slave.schedule.resume()
    slave.advance(5)
    assert slave.store.max_offset("T", 0) == 2


def test_a_promoted_slave_delivers_what_its_log_lacks_and_no_more(pair: Pair) -> None:
    master, slave = pair.master, pair.slave
    master.topic("T")
    delay(master, 2)
    pair.copy_log()
    pair.round()
    master.advance(2)
    pair.round()
    slave.schedule.resume()
    slave.advance(5)
    assert slave.store.max_offset("T", 0) == 2


def test_timers_follow_the_log_in_the_same_way(pair: Pair) -> None:
    master, slave = pair.master, pair.slave
    master.topic("T")
    for seconds in (1, 60):
        deliver_ms = master.clock.wall_ms() + seconds * 1000
        master.timed.put(
            NewMessage(
                topic="T",
                queue_id=0,
                body=b"x",
                properties=f"{TIMER_DELIVER_MS}\x01{deliver_ms}\x02".encode(),
            ),
            deliver_ms,
        )
    master.advance(5)
    assert master.store.max_offset("T", 0) == 1
    pair.round()
    assert not slave.files.exists("/store/config/timercheck")
    pair.copy_log()
    pair.round()
    pair.round()
    assert slave.files.read("/store/config/timercheck")[:8] > bytes(8)
    slave.clock.jump((master.clock.wall_ms() - slave.clock.wall_ms()) / 1000)
    slave.timed.resume()
    slave.advance(10)
    assert slave.store.max_offset("T", 0) == 1
    slave.advance(60)
    assert slave.store.max_offset("T", 0) == 2


def test_an_answer_of_the_master_before_is_not_taken_over(pair: Pair) -> None:
    pair.master.topic("T")

    def answer(command: Command) -> Command | None:
        pair.sync.follow(None)
        return None

    pair.wire.answer = answer
    pair.round()
    assert pair.wire.codes == [21]
    assert "T" not in pair.slave.topics


@pytest.mark.parametrize(
    ("code", "body", "reason"),
    [
        (21, b"[]", "expected a JSON object"),
        (21, b'{"dataVersion":{},"topicConfigTable":[]}', "expected a table topicConfigTable"),
        (21, b'{"dataVersion":{},"topicConfigTable":{"../x":{}}}', "cannot be the name"),
        (201, b'{"dataVersion":{},"subscriptionGroupTable":{"g":5}}', "to be an object"),
        (43, b'{"offsetTable":{"T@G":{0:"x"}}}', "Expected `int`"),
        (43, b"\xff", "JSON"),
        (45, b'{"offsetTable":{1:"x"}}', "offsets by delay level"),
        (402, b'{"messageRequestModeMap":5}', "Expected `object`"),
        (60, b"short", "56 bytes"),
        (28, b'{"table":{}}', "end of the log"),
    ],
)
def test_an_answer_that_is_none_is_told_once_and_the_rest_goes_on(
    pair: Pair, code: int, body: bytes, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    pair.master.topic("T")
    pair.master.offsets.commit("G", "T", 0, 5)
    pair.wire.answer = lambda asked: asked.reply(body=body) if asked.code == code else None
    pair.round()
    pair.round()
    told = [record.getMessage() for record in caplog.records if "not synced" in record.message]
    assert len(told) == 1, told
    assert reason in told[0]
    assert pair.wire.codes[-1] == 29006
    if code != 21:
        assert "T" in pair.slave.topics
    if code != 43:
        assert pair.slave.offsets.query("G", "T", 0) == 5


def test_a_master_out_of_reach_is_told_once_and_changes_nothing(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair.master.topic("T")
    pair.round()
    pair.wire.error = ConnectFailed("nobody there")
    pair.round()
    pair.round()
    assert caplog.text.count("nobody there") == 1
    assert "T" in pair.slave.topics


def test_changes_are_for_the_master(pair: Pair) -> None:
    pair.master.topic("T")
    pair.round()
    create = {"topic": "U", "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1"}
    create |= {"perm": "6", "topicFilterType": "SINGLE_TAG", "order": "false"}
    mode = {"topic": "T", "consumerGroup": "G", "mode": "POP"}
    for code, ext, body in (
        (17, create, b""),
        (18, None, {"topicConfigList": [{"topicName": "U"}]}),
        (215, {"topic": "T"}, b""),
        (200, None, {"groupName": "G"}),
        (225, None, {"groupConfigList": [{"groupName": "G"}]}),
        (207, {"groupName": "G"}, b""),
        (401, None, mode),
    ):
        reply = pair.slave.ask(code, ext, body)
        assert (reply.code, reply.remark) == (
            1,
            "Can't modify topic or subscription group from slave broker,"
            " please execute it from master broker.",
        ), code
