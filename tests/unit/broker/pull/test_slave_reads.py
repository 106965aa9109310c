"""What a slave answers, request by request: it serves readers, keeps their offsets, and appends nothing itself."""

from __future__ import annotations

import pytest
from tests.unit.broker.pull.slave_rig import SlaveRig
from tests.unit.broker.rig import pull_ext, send_ext

from cometmq.broker.pull.slave_reads import SHORT_HOLD_SECONDS
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.messages.record import decode_records
from cometmq.protocol import fastjson
from cometmq.protocol.bodies.lock import LockBatchReply
from cometmq.protocol.command import Command
from cometmq.testing.fake_connection import FakeConnection

HELD = "6"
BULK_PULL = 29001
NOT_AVAILABLE, SLAVE_NOT_AVAILABLE = 14, 11


@pytest.fixture
def slave() -> SlaveRig:
    return SlaveRig()


def bodies(reply: Command) -> list[bytes]:
    data = b"".join(bytes(part) for part in reply.body_parts or ())
    return [record.body for record in decode_records(data)]


def place(reply: Command) -> tuple[int, str]:
    assert reply.ext is not None
    return reply.code, reply.ext["nextBeginOffset"]


def suggested(reply: Command) -> str:
    assert reply.ext is not None
    return reply.ext["suggestWhichBrokerId"]


def hold(slave: SlaveRig, offset: int, **fields: str) -> FakeConnection:
    """A pull that waits."""
    peer = FakeConnection(41000 + len(slave.long_polling))
    ext = pull_ext("T", offset, sysFlag=HELD, **fields)
    assert slave.dispatch(Command(code=11, ext=ext, opaque=7), peer) == []
    return peer


class TestPulls:
    @pytest.mark.parametrize("code", [11, 361])
    def test_what_was_copied_is_served(self, slave: SlaveRig, code: int) -> None:
        slave.sent(b"0", b"1")
        slave.copy()
        reply = slave.ask(code, pull_ext("T", 0))
        assert place(reply) == (0, "2")
        assert bodies(reply) == [b"0", b"1"]
        assert suggested(reply) == "0"

    @pytest.mark.parametrize("code", [11, 361])
    def test_a_reader_ahead_of_the_slave_keeps_its_offset(self, slave: SlaveRig, code: int) -> None:
        slave.sent(b"0")
        slave.copy()
        assert place(slave.ask(code, pull_ext("T", 5))) == (20, "5")

    def test_so_does_one_of_a_queue_that_has_not_come_yet(self, slave: SlaveRig) -> None:
        assert place(slave.pull("T", 0)) == (19, "0")
        assert place(slave.pull("T", 3)) == (20, "3")

    def test_so_does_one_that_wants_what_the_slave_never_copied(self, slave: SlaveRig) -> None:
        slave.sent(*(b"x" * 4000 for _ in range(20)))
        source = slave.origin.store.replica
        start = slave.origin.live.current.store.log.file_bytes
        slave.store.replica.append(start, source.read(start, source.end - start))
        while slave.store.replica.dispatch():
            pass
        first = slave.store.min_offset("T", 0)
        assert first > 0
        assert place(slave.pull("T", 0)) == (20, "0")
        assert place(slave.pull("T", first)) == (0, str(slave.store.max_offset("T", 0)))

    def test_offsets_are_corrected_if_so_set(self) -> None:
        slave = SlaveRig(offsetCheckInSlave="true")
        slave.sent(b"0")
        slave.copy()
        assert place(slave.pull("T", 5)) == (21, "1")
        assert place(slave.pull("T", -1)) == (21, "0")

    def test_a_bulk_pull_keeps_its_offset_too(self, slave: SlaveRig) -> None:
        slave.sent(b"0")
        slave.copy()
        ext = {
            "consumerGroup": "CG",
            "topic": "T",
            "queueId": "0",
            "maxBytes": "65536",
            "maxCount": "10",
            "subscription": "*",
        }
        assert place(slave.ask(BULK_PULL, {**ext, "offset": "0"})) == (0, "1")
        assert place(slave.ask(BULK_PULL, {**ext, "offset": "5"})) == (20, "5")
        assert place(slave.ask(BULK_PULL, {**ext, "offset": "1"})) == (19, "1")

    def test_a_position_that_comes_with_a_pull_is_kept(self, slave: SlaveRig) -> None:
        slave.sent(b"0", b"1")
        slave.copy()
        slave.pull("T", 1, sysFlag="5", commitOffset="1")
        assert slave.offsets.query("CG", "T", 0) == 1


class TestSuggestions:
    """Who is asked next: only a broker with slaveReadEnable sends readers elsewhere."""

    def rig(self, **settings: str) -> SlaveRig:
        slave = SlaveRig(**settings)
        slave.groups.put(
            SubscriptionGroupConfig(
                group_name="CG", broker_id=3, which_broker_when_consume_slowly=2
            )
        )
        slave.sent(b"0", b"1")
        slave.copy()
        return slave

    def test_without_slave_reads_it_is_the_master(self) -> None:
        assert suggested(self.rig(accessMessageInMemoryMaxRatio="0").pull("T")) == "0"

    def test_a_reader_that_lags_goes_where_its_group_says(self) -> None:
        slave = self.rig(slaveReadEnable="true", accessMessageInMemoryMaxRatio="0")
        assert suggested(slave.pull("T")) == "2"

    def test_one_that_does_not_goes_to_the_broker_of_its_group(self) -> None:
        assert suggested(self.rig(slaveReadEnable="true").pull("T")) == "3"

    def test_or_back_to_the_master_when_that_is_there(self) -> None:
        slave = self.rig(slaveReadEnable="true")
        slave.core.master.note(True)
        assert suggested(slave.pull("T")) == "0"

    def test_a_master_sends_only_those_away_that_lag(self) -> None:
        slave = self.rig(slaveReadEnable="true")
        slave.promote()
        slave.core.master.note(True)
        assert suggested(slave.pull("T")) == "3"


class TestHeldPulls:
    def test_a_copied_message_wakes_them(self, slave: SlaveRig) -> None:
        peer = hold(slave, 0)
        slave.sent(b"news")
        assert peer.take() == []
        slave.copy()
        slave.advance(0)
        (reply,) = peer.take()
        assert bodies(reply) == [b"news"]

    def test_half_a_record_does_not(self, slave: SlaveRig) -> None:
        peer = hold(slave, 0)
        slave.sent(b"news")
        slave.copy(20)
        slave.advance(0)
        assert peer.take() == []
        slave.copy()
        slave.advance(0)
        assert len(peer.take()) == 1

    def test_one_ahead_of_the_slave_waits_for_its_message(self, slave: SlaveRig) -> None:
        slave.sent(b"0")
        slave.copy()
        peer = hold(slave, 2)
        slave.sent(b"1")
        slave.copy()
        slave.advance(0)
        assert peer.take() == [], "its message is the one after"
        slave.sent(b"2")
        slave.copy()
        slave.advance(0)
        (reply,) = peer.take()
        assert (place(reply), bodies(reply)) == ((0, "3"), [b"2"])

    def test_and_keeps_its_offset_when_nothing_comes(self, slave: SlaveRig) -> None:
        slave.sent(b"0")
        slave.copy()
        peer = hold(slave, 2)
        slave.advance(16)
        (reply,) = peer.take()
        assert place(reply) == (20, "2")

    def test_they_do_not_stay_long_while_the_master_is_there(self, slave: SlaveRig) -> None:
        slave.core.master.note(True)
        peer = hold(slave, 0)
        slave.advance(SHORT_HOLD_SECONDS / 2)
        assert peer.take() == []
        slave.advance(SHORT_HOLD_SECONDS)
        (reply,) = peer.take()
        assert (place(reply), suggested(reply)) == ((19, "0"), "0")

    def test_they_go_when_the_master_comes(self, slave: SlaveRig) -> None:
        peers = [hold(slave, 0), hold(slave, 7)]
        slave.core.master.note(True)
        slave.advance(0)
        assert [place(*peer.take()) for peer in peers] == [(19, "0"), (20, "7")]
        assert len(slave.long_polling) == 0

    def test_they_stay_when_it_goes(self, slave: SlaveRig) -> None:
        slave.core.master.note(True)
        peer = hold(slave, 0)
        slave.core.master.note(False)
        slave.advance(0)
        assert peer.take() == []

    def test_they_go_when_the_slave_becomes_the_master(self, slave: SlaveRig) -> None:
        slave.sent(b"0")
        slave.copy()
        peer = hold(slave, 7)
        slave.promote()
        slave.advance(0)
        (reply,) = peer.take()
        assert place(reply) == (21, "1"), "the log of a master ends where it ends"

    def test_they_go_when_the_master_becomes_a_slave(self, slave: SlaveRig) -> None:
        slave.promote()
        peer = hold(slave, 0)
        slave.become("SLAVE")
        slave.advance(0)
        assert len(peer.take()) == 1


QUEUE = {"topic": "T", "queueId": "0"}


class TestOtherReads:
    def test_positions_are_kept_and_told(self, slave: SlaveRig) -> None:
        group = {**QUEUE, "consumerGroup": "CG"}
        assert slave.ask(15, {**group, "commitOffset": "4"}).code == 0
        assert slave.ask(14, group).ext == {"offset": "4"}

    def test_bounds_and_times_are_those_of_what_was_copied(self, slave: SlaveRig) -> None:
        slave.sent(b"0", b"1")
        slave.copy()
        assert slave.ask(30, QUEUE).ext == {"offset": "2"}
        assert slave.ask(31, QUEUE).ext == {"offset": "0"}
        assert slave.ask(29, {**QUEUE, "timestamp": "1"}).ext == {"offset": "0"}
        stored = slave.records("T")[0].store_timestamp
        assert slave.ask(32, QUEUE).ext == {"timestamp": str(stored)}

    def test_messages_are_found_by_key_and_by_place(self, slave: SlaveRig) -> None:
        slave.sent(b"0")
        slave.copy()
        by_key = {"topic": "T", "key": "K1", "maxNum": "4", "beginTimestamp": "0"}
        assert bodies(slave.ask(12, {**by_key, "endTimestamp": str(1 << 62)})) == [b"0"]
        assert bodies(slave.ask(33, {"offset": "0"})) == [b"0"]

    def test_consumers_are_known_and_listed(self, slave: SlaveRig) -> None:
        assert slave.beat(FakeConnection(42000), "c1", "CG", T="*").code == 0
        assert slave.json(38, {"consumerGroup": "CG"}) == {"consumerIdList": ["c1"]}

    def test_queues_are_locked(self, slave: SlaveRig) -> None:
        queue = {"topic": "T", "brokerName": "b49", "queueId": 0}
        for client, granted in (("c1", 1), ("c2", 0)):
            wish = {"consumerGroup": "CG", "clientId": client, "mqSet": [queue]}
            reply = slave.ask(41, None, wish)
            assert len(LockBatchReply.decode(reply.body).lock_ok_mq_set) == granted


POP = {
    "consumerGroup": "CG",
    "topic": "T",
    "queueId": "-1",
    "maxMsgNums": "8",
    "invisibleTime": "10000",
    "pollTime": "15000",
    "initMode": "0",
}
HANDLE = {**QUEUE, "consumerGroup": "CG", "extraInfo": "0 1 10000 0 0 b49 0", "offset": "0"}
ACK = {"c": "CG", "t": "T", "r": "0", "so": 0, "q": 0, "rq": 0, "pt": 1, "it": 10000, "b": "AQ=="}
END = {
    "producerGroup": "PG",
    "tranStateTableOffset": "0",
    "commitLogOffset": "0",
    "commitOrRollback": "8",
}
SEND = send_ext("T")
SEND_V1 = {
    "producerGroup": "PG",
    "topic": "T",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "4",
    "queueId": "0",
    "sysFlag": "0",
    "bornTimestamp": "1700000000123",
    "flag": "0",
}
CREATE = {
    "topic": "New",
    "defaultTopic": "TBW102",
    "readQueueNums": "4",
    "writeQueueNums": "4",
    "perm": "6",
    "topicFilterType": "SINGLE_TAG",
}

WRITES: list[tuple[str, int, int, dict[str, str] | None, object]] = [
    ("send", 10, NOT_AVAILABLE, SEND_V1, b"x"),
    ("send", 310, NOT_AVAILABLE, SEND, b"x"),
    ("batch", 320, NOT_AVAILABLE, {**SEND, "m": "true"}, b"x"),
    ("reply", 324, NOT_AVAILABLE, SEND_V1, b"x"),
    ("send back", 36, NOT_AVAILABLE, {"offset": "0", "group": "CG", "delayLevel": "0"}, b""),
    ("recall", 370, NOT_AVAILABLE, {"topic": "T", "recallHandle": "x"}, b""),
    ("end", 37, SLAVE_NOT_AVAILABLE, END, b""),
    ("check anew", 323, SLAVE_NOT_AVAILABLE, {"msgId": "0" * 32}, b""),
    ("pop", 200050, NOT_AVAILABLE, POP, b""),
    ("peek", 200052, NOT_AVAILABLE, POP, b""),
    ("notification", 200054, NOT_AVAILABLE, POP, b""),
    ("ack", 200051, NOT_AVAILABLE, HANDLE, b""),
    ("acks", 200151, NOT_AVAILABLE, None, {"acks": [ACK]}),
    ("invisible", 200053, NOT_AVAILABLE, {**HANDLE, "invisibleTime": "1"}, b""),
    ("create topic", 17, 1, CREATE, b""),
    ("delete topic", 215, 1, {"topic": "T"}, b""),
    ("create group", 200, 1, None, {"groupName": "G"}),
    ("delete group", 207, 1, {"groupName": "CG"}, b""),
    ("clone", 314, 1, {"srcGroup": "CG", "destGroup": "D", "topic": "T", "offline": "true"}, b""),
    ("request mode", 401, 1, None, {"topic": "T", "consumerGroup": "CG", "mode": "POP"}),
]


@pytest.mark.parametrize(
    ("code", "expected", "ext", "body"),
    [row[1:] for row in WRITES],
    ids=[f"{row[0]} {row[1]}" for row in WRITES],
)
class TestWrites:
    def ask(
        self, rig: SlaveRig, code: int, ext: dict[str, str] | None, body: object
    ) -> list[Command]:
        if ext is POP:
            ext = {**POP, "bornTime": str(rig.clock.wall_ms())}
        content = body if isinstance(body, bytes) else fastjson.dumps(body)
        return rig.dispatch(Command(code=code, ext=ext, body=content, opaque=7))

    def test_a_slave_refuses_and_changes_nothing(
        self,
        slave: SlaveRig,
        code: int,
        expected: int,
        ext: dict[str, str] | None,
        body: object,
    ) -> None:
        slave.sent(b"0")
        slave.copy()
        slave.offsets.commit("CG", "T", 0, 1)
        end, topics, groups = slave.store.max_physical, slave.topics.names(), len(slave.groups)
        (reply,) = self.ask(slave, code, ext, body)
        assert reply.code == expected, reply.remark
        assert reply.remark is not None
        assert slave.store.max_physical == end
        assert (slave.topics.names(), len(slave.groups)) == (topics, groups)
        assert slave.offsets.offsets("D", "T") == {}

    def test_by_its_role_of_the_moment(
        self,
        slave: SlaveRig,
        code: int,
        expected: int,
        ext: dict[str, str] | None,
        body: object,
    ) -> None:
        """The same broker as a master says something else."""
        slave.sent(b"0")
        slave.copy()
        slave.promote()
        slave.duties.resume()
        for reply in self.ask(slave, code, ext, body):
            assert reply.code not in (NOT_AVAILABLE, SLAVE_NOT_AVAILABLE), reply.remark
            assert "slave" not in (reply.remark or "")


def test_pops_that_wait_are_refused_when_the_master_becomes_a_slave(slave: SlaveRig) -> None:
    slave.promote()
    slave.duties.resume()
    peer = FakeConnection(43000)
    ext = {**POP, "bornTime": str(slave.clock.wall_ms())}
    assert slave.dispatch(Command(code=200050, ext=ext, opaque=7), peer) == []
    slave.become("SLAVE")
    slave.advance(0)
    (reply,) = peer.take()
    assert reply.code == NOT_AVAILABLE
