"""Consumers see a message when it is as safe as the mode promises, and not before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.unit.broker.rig import Rig

from cometmq.broker.replication.ha_wire import SlaveIdentity
from cometmq.protocol.codes import ResponseCode
from cometmq.testing.faulty_files import Outage

MakeRig = Callable[..., Rig]
WAIT_SECONDS = 3.0
MEMBER = SlaveIdentity(broker_id=2, is_learner=False, from_last_file=False)


def bodies(rig: Rig) -> list[bytes]:
    return [record.body for record in rig.records()]


def follow(rig: Rig) -> None:
    """Have a slave that has the whole log."""
    confirm(rig, 0)
    confirm(rig, rig.store.max_physical)


def confirm(rig: Rig, offset: int) -> None:
    rig.core.replicas.reported("slave", "10.0.0.2:1", offset, rig.store.max_physical)
    rig.core.durability.replicas_changed()


def wait_in_vain(rig: Rig) -> None:
    rig.clock.advance(WAIT_SECONDS)
    rig.core.durability.expire(rig.clock.monotonic())


@pytest.fixture
def sync_master(make_rig: MakeRig) -> Rig:
    return make_rig(brokerRole="SYNC_MASTER", slaveTimeout=str(int(WAIT_SECONDS * 1000)))


def test_without_a_promise_a_message_is_seen_at_once(rig: Rig) -> None:
    rig.send()
    assert rig.pull().code == 0
    assert rig.store.watermarks.flushed.waiting == 0


class TestSyncFlush:
    @pytest.fixture
    def rig(self, make_rig: MakeRig) -> Rig:
        return make_rig(flushDiskType="SYNC_FLUSH")

    def test_a_message_is_seen_when_it_is_on_disk(self, rig: Rig) -> None:
        rig.send()
        consumer = rig.make_peer(50000)
        with pytest.raises(AssertionError, match="no answer"):
            rig.pull(sysFlag="6", peer=consumer)
        assert rig.ask(30, {"topic": "T", "queueId": "0"}).ext == {"offset": "0"}
        rig.store.flush()
        assert [reply.code for reply in rig.peer.take()] == [0]
        rig.advance(0)
        (reply,) = consumer.take()
        assert (reply.code, (reply.ext or {})["maxOffset"]) == (0, "1")
        assert rig.ask(30, {"topic": "T", "queueId": "0"}).ext == {"offset": "1"}

    def test_one_that_nobody_waits_for_is_flushed_to_be_seen(self, rig: Rig) -> None:
        rig.flush_on_demand()
        rig.send(i="WAIT\x01false")
        assert rig.pull().code == 0

    def test_what_cannot_be_flushed_is_never_seen(self, rig: Rig) -> None:
        rig.send()
        rig.store._log_flusher.has_failed = True
        with pytest.raises(Exception, match="sync has failed"):
            rig.store.flush()
        rig.clock.advance(60)
        rig.core.durability.expire(rig.clock.monotonic())
        assert [reply.code for reply in rig.peer.take()] == [ResponseCode.FLUSH_DISK_TIMEOUT]
        assert bodies(rig) == []

    @pytest.mark.parametrize("seed", range(20))
    def test_no_consumer_is_past_a_message_that_is_acknowledged_after_a_power_loss(
        self, seed: int
    ) -> None:
        rig = Rig({"flushDiskType": "SYNC_FLUSH"}, seed=seed)
        rig.send(body=b"first")
        rig.store.flush()
        rig.peer.take()
        rig.send(body=b"lost")
        position = int((rig.pull().ext or {})["nextBeginOffset"])
        rig.crash(Outage.POWER_LOSS)
        rig.send(body=b"second")
        rig.store.flush()
        assert rig.peer.take()[-1].code == 0
        offset = next(one.queue_offset for one in rig.records() if one.body == b"second")
        assert position <= offset

    def test_delayed_messages_do_not_wait_for_each_other(self, rig: Rig) -> None:
        rig.flush_on_demand()
        rig.send(i="DELAY\x011")
        rig.advance(2)
        assert bodies(rig) == [b"x"]


class TestSyncMaster:
    def test_a_message_is_seen_when_the_slave_has_it(self, sync_master: Rig) -> None:
        follow(sync_master)
        sync_master.send()
        assert bodies(sync_master) == []
        confirm(sync_master, sync_master.store.max_physical)
        assert bodies(sync_master) == [b"x"]
        assert [reply.code for reply in sync_master.peer.take()] == [0]

    def test_without_a_slave_it_is_seen_at_once(self, sync_master: Rig) -> None:
        reply = sync_master.send()
        assert reply is not None
        assert reply.code == ResponseCode.SLAVE_NOT_AVAILABLE
        assert bodies(sync_master) == [b"x"]

    def test_when_the_slave_is_late_it_is_seen_when_it_is_answered(self, sync_master: Rig) -> None:
        follow(sync_master)
        sync_master.send()
        sync_master.send(body=b"y")
        wait_in_vain(sync_master)
        codes = [reply.code for reply in sync_master.peer.take()]
        assert codes == [ResponseCode.FLUSH_SLAVE_TIMEOUT] * 2
        assert bodies(sync_master) == [b"x", b"y"]

    def test_with_sync_flush_the_disk_alone_is_not_enough(self, make_rig: MakeRig) -> None:
        rig = make_rig(brokerRole="SYNC_MASTER", flushDiskType="SYNC_FLUSH")
        follow(rig)
        rig.send()
        rig.store.flush()
        assert bodies(rig) == []
        confirm(rig, rig.store.max_physical)
        assert bodies(rig) == [b"x"]

    def test_with_sync_flush_the_slave_alone_is_not_enough(self, make_rig: MakeRig) -> None:
        rig = make_rig(brokerRole="SYNC_MASTER", flushDiskType="SYNC_FLUSH")
        follow(rig)
        rig.send()
        confirm(rig, rig.store.max_physical)
        assert bodies(rig) == []
        rig.store.flush()
        assert bodies(rig) == [b"x"]

    def test_with_sync_flush_and_no_slave_the_disk_decides(self, make_rig: MakeRig) -> None:
        rig = make_rig(brokerRole="SYNC_MASTER", flushDiskType="SYNC_FLUSH")
        rig.send()
        assert bodies(rig) == []
        rig.store.flush()
        assert bodies(rig) == [b"x"]

    def test_an_async_master_shows_what_waited(self, sync_master: Rig) -> None:
        follow(sync_master)
        sync_master.send()
        sync_master.live.update({"brokerRole": "ASYNC_MASTER"})
        assert bodies(sync_master) == [b"x"]

    def test_an_async_master_with_sync_flush_waits_for_the_disk_alone(
        self, make_rig: MakeRig
    ) -> None:
        rig = make_rig(brokerRole="SYNC_MASTER", flushDiskType="SYNC_FLUSH")
        follow(rig)
        rig.send()
        rig.live.update({"brokerRole": "ASYNC_MASTER"})
        assert bodies(rig) == []
        rig.store.flush()
        assert bodies(rig) == [b"x"]

    def test_a_role_that_waits_begins_with_the_next_message(self, rig: Rig) -> None:
        rig.send()
        rig.live.update({"brokerRole": "SYNC_MASTER"})
        follow(rig)
        rig.send(body=b"y")
        assert bodies(rig) == [b"x"]
        confirm(rig, rig.store.max_physical)
        assert bodies(rig) == [b"x", b"y"]

    def test_a_slave_does_not_show_what_its_master_may_not_have(self, sync_master: Rig) -> None:
        follow(sync_master)
        sync_master.send()
        sync_master.live.update({"brokerRole": "SLAVE", "brokerId": "1"})
        sync_master.store.follow()
        sync_master.store.watermarks.replicated.abandon()
        wait_in_vain(sync_master)
        assert bodies(sync_master) == []
        sync_master.live.update({"brokerRole": "SYNC_MASTER", "brokerId": "0"})
        sync_master.store.lead()
        assert bodies(sync_master) == [b"x"]

    def test_what_is_still_delivered_when_the_role_has_gone_is_not_shown(
        self, sync_master: Rig
    ) -> None:
        sync_master.send(i="DELAY\x011")
        sync_master.live.update({"brokerRole": "SLAVE", "brokerId": "1"})
        sync_master.advance(2)
        assert sync_master.store.hidden.first is not None
        assert bodies(sync_master) == []


class TestUnderAController:
    """Who may be elected next is told by the set alone: without them a message may be cut off again."""

    @pytest.fixture
    def rig(self, sync_master: Rig) -> Rig:
        sync_master.core.replicas.awaited = frozenset({2})
        return sync_master

    def test_a_message_is_not_seen_before_all_of_the_set_have_it(self, rig: Rig) -> None:
        rig.send()
        wait_in_vain(rig)
        assert [reply.code for reply in rig.peer.take()] == [ResponseCode.FLUSH_SLAVE_TIMEOUT]
        assert bodies(rig) == []
        rig.core.replicas.identified("slave", "10.0.0.2:1", rig.store.max_physical, MEMBER)
        rig.core.durability.replicas_changed()
        assert bodies(rig) == [b"x"]

    def test_it_is_seen_when_the_set_is_without_the_one_that_lacks_it(self, rig: Rig) -> None:
        rig.send()
        wait_in_vain(rig)
        rig.core.replicas.awaited = frozenset()
        rig.core.durability.replicas_changed()
        assert bodies(rig) == [b"x"]

    def test_a_master_that_is_alone_in_the_set_shows_at_once(self, rig: Rig) -> None:
        rig.core.replicas.awaited = frozenset()
        rig.send()
        assert bodies(rig) == [b"x"]
