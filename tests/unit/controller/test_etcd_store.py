"""Decisions in etcd, against a fake with faults: what is refused, what is answered from memory, what the log says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.controller.fake_etcd import FakeEndpoint, FakeEtcd, Stored
from tests.unit.controller.group_of import group_of

from cometmq.base.errors import StoreError
from cometmq.controller.decision_store import NEVER_STORED, Held, StoreAway, look, settle
from cometmq.controller.etcd.endpoint import Endpoint, EndpointFailed
from cometmq.controller.etcd.etcd_config import EtcdConfig
from cometmq.controller.etcd.etcd_side import EtcdSide
from cometmq.controller.etcd.etcd_store import VALUE_BYTES_MAX, EtcdStore, encode
from cometmq.controller.etcd.etcd_words import TxnReply
from cometmq.controller.etcd.gateway import CALLS_MAX, EtcdGateway, Unreachable
from cometmq.controller.etcd.key_values import KeyValues
from cometmq.controller.group import Decision, Group
from cometmq.controller.peers import Peer
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused
from cometmq.testing.fake_clock import FakeClock

GROUP = group_of(3, master=2, in_sync=(1, 2), epoch=4, set_epoch=7)
KEY = "/cometmq/controller/groups/bk"


class Stage:
    """A controller's side of a fake etcd of three members. ``run`` has it look at etcd first."""

    def __init__(self, etcd: FakeEtcd | None = None, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.etcd = etcd or FakeEtcd(self.clock.monotonic)
        self.members = [FakeEndpoint(self.etcd, f"http://e{n}:2379") for n in range(3)]
        self.leads = 0
        self.own = Peer("n0", "127.0.0.1", 9878)
        endpoints: list[Endpoint] = [*self.members]
        self.side = EtcdSide(EtcdConfig(), endpoints, lambda: self.own, self._lead, self.clock)
        self.store = self.side.store

    def _lead(self) -> None:
        self.leads += 1

    def run(self, what: Coroutine[Any, Any, Any] | None = None) -> Any:
        async def both() -> Any:
            await self.side.look()
            return None if what is None else await what

        return asyncio.run(both())

    def down(self, is_down: bool = True) -> None:
        for member in self.members:
            member.is_down = is_down


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.run(stage.store.swap("bk", NEVER_STORED, GROUP))
    return stage


def test_a_controller_sees_what_another_has_stored(stage: Stage) -> None:
    other = Stage(stage.etcd)
    other.run()
    assert other.store.known() == stage.store.known()
    held = other.store.known()["bk"]
    newer = replace(GROUP, sync_state_set_epoch=8)
    assert other.run(other.store.swap("bk", held.version, newer))
    assert stage.store.known()["bk"].group == GROUP
    stage.run()
    assert stage.store.known()["bk"].group == newer


def test_the_next_member_is_asked_when_one_does_not_answer(stage: Stage) -> None:
    stage.members[0].is_down = True
    assert stage.run(stage.store.read("bk")) is not None
    before = stage.members[0].calls
    # And it stays with that one.
    assert stage.run(stage.store.read("bk")) is not None
    assert stage.members[0].calls == before


def test_a_swap_that_one_member_did_and_another_tells(stage: Stage) -> None:
    version = stage.store.known()["bk"].version
    stage.run()
    stage.members[0].loses_reply = True
    newer = replace(GROUP, sync_state_set_epoch=8)
    assert asyncio.run(stage.store.swap("bk", version, newer))
    stage.members[0].loses_reply = False
    held = stage.run(stage.store.read("bk"))
    assert held == stage.store.known()["bk"]
    assert held.group == newer


async def test_a_swap_that_nobody_answers_is_no_refusal(stage: Stage) -> None:
    for member in stage.members:
        member.loses_reply = True
    with pytest.raises(StoreError, match="no member of etcd answers") as caught:
        await stage.store.swap("bk", stage.store.known()["bk"].version, group_of(1))
    assert not isinstance(caught.value, StoreAway)


def test_without_etcd_what_is_known_is_told_and_nothing_is_decided(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    stage.down()
    for _ in range(5):
        stage.run()
    seen = asyncio.run(look(stage.store, "bk"))
    assert (seen.group, seen.is_certain) == (GROUP, False)
    before = sum(member.calls for member in stage.members)
    for broker_name in ("bk", "unknown"):
        with pytest.raises(Refused, match="cannot decide now: no member of etcd") as caught:
            asyncio.run(settle(stage.store, broker_name, epoch_more))
        assert caught.value.code == ResponseCode.CONTROLLER_NOT_LEADER
    with pytest.raises(Refused):
        asyncio.run(look(stage.store, "unknown"))
    assert sum(member.calls for member in stage.members) == before, "brokers were kept waiting"
    stage.down(False)
    stage.run()
    seen = asyncio.run(look(stage.store, "bk"))
    assert (seen.group, seen.is_certain) == (GROUP, True)
    lost = [line for line in caplog.messages if line.startswith("etcd lost")]
    assert len(lost) == 1
    assert "nothing is decided" in lost[0]
    assert caplog.messages[-1].startswith("etcd reached groups=1")


def test_a_full_etcd_refuses_decisions_and_tells_what_is_known(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.run()
    assert stage.side.members.leads
    stage.etcd.is_full = True
    for _ in range(3):
        stage.clock.advance(1)
        with pytest.raises(Refused, match="database space exceeded"):
            stage.run(settle(stage.store, "bk", epoch_more))
    assert stage.run(look(stage.store, "bk")).is_certain
    assert stage.side.members.leads
    assert [line for line in caplog.messages if "takes no decisions" in line] == [
        "etcd takes no decisions reason=etcd refuses: etcdserver: mvcc: database space exceeded"
    ]
    stage.etcd.is_full = False
    assert stage.run(settle(stage.store, "bk", epoch_more)).answer == 8


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[1]",
        encode(GROUP).replace(b'"format":1', b'"format":2'),
        encode(GROUP).replace(b'"master_id":2', b'"master_id":3'),
        encode(GROUP).replace(b'"broker_name":"bk"', b'"broker_name":"other"'),
        encode(replace(GROUP, master_epoch=3)),
        encode(replace(GROUP, sync_state_set_epoch=6)),
        encode(GROUP)[:-1] + b" " * VALUE_BYTES_MAX + b"}",
    ],
)
def test_what_another_program_has_written_changes_nothing(
    stage: Stage, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    stage.etcd.put(KEY, value)
    for _ in range(3):
        seen = stage.run(look(stage.store, "bk"))
        assert (seen.group, seen.is_certain) == (GROUP, False)
        with pytest.raises(Refused, match=f"etcd key {KEY}: "):
            stage.run(settle(stage.store, "bk", epoch_more))
    assert stage.etcd.keys[KEY.encode()].value == value
    assert sum("not understood name=bk" in line for line in caplog.messages) == 1
    # Other groups are not concerned, and it can be put right.
    assert stage.run(stage.store.read("other")) is None
    stage.etcd.put(KEY, encode(GROUP))
    assert stage.run(look(stage.store, "bk")).is_certain


def test_a_value_that_was_never_good_is_refused() -> None:
    stage = Stage()
    stage.etcd.put(KEY, b"nonsense")
    with pytest.raises(Refused, match="not a decision"):
        stage.run(look(stage.store, "bk"))
    assert stage.store.known() == {}


def test_a_key_that_was_removed_is_not_a_new_group(stage: Stage) -> None:
    del stage.etcd.keys[KEY.encode()]
    stage.etcd.revision += 1
    with pytest.raises(Refused, match="removed by another program"):
        stage.run(settle(stage.store, "bk", epoch_more))
    assert stage.run(look(stage.store, "bk")).group == GROUP


def test_an_etcd_from_a_copy_is_not_believed(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    copy = dict(stage.etcd.keys), stage.etcd.revision
    held = stage.store.known()["bk"]
    newer = replace(GROUP, master_id=1, master_epoch=5, sync_state_set_epoch=8)
    assert stage.run(stage.store.swap("bk", held.version, newer))
    stage.run()
    stage.etcd.keys, stage.etcd.revision = copy
    stage.run()
    # It stays so, though the numbers of the copy grow.
    for number in range(20):
        stage.etcd.put(f"/other/{number}", b"")
    stage.run()
    seen = stage.run(look(stage.store, "bk"))
    assert (seen.group, seen.is_certain) == (newer, False)
    with pytest.raises(Refused, match=r"gone back, revision .* restart all controllers"):
        stage.run(settle(stage.store, "bk", epoch_more))
    assert sum("gone back" in line for line in caplog.messages) == 1


def test_a_copy_is_found_by_its_groups_after_others_have_written_to_it(stage: Stage) -> None:
    before = dict(stage.etcd.keys)
    held = stage.store.known()["bk"]
    assert stage.run(stage.store.swap("bk", held.version, replace(GROUP, next_id=5)))
    stage.down()
    stage.run()
    stage.etcd.keys = before
    stage.etcd.revision += 100
    stage.down(False)
    stage.run()
    with pytest.raises(Refused, match=r"gone back, bk of revision \d+ after \d+"):
        stage.run(settle(stage.store, "bk", epoch_more))


def test_a_member_of_another_cluster_is_not_asked(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.members[1].etcd = FakeEtcd(stage.clock.monotonic, cluster_id=8)
    stage.members[0].is_down = True
    for _ in range(2):
        assert stage.run(stage.store.read("bk")) == stage.store.known()["bk"]
        stage.side._gateway._preferred = 0
    assert sum("another cluster" in line for line in caplog.messages) == 1
    assert stage.members[1].etcd.keys == {}


@pytest.mark.parametrize("nonsense", [5, "x", [], {}, {"header": {"cluster_id": "x"}}])
def test_nonsense_is_no_answer(stage: Stage, nonsense: object) -> None:
    stage.members[0].says = nonsense
    assert stage.run(stage.store.read("bk")) == stage.store.known()["bk"]
    for member in stage.members:
        member.says = nonsense
    stage.run()
    assert not asyncio.run(look(stage.store, "bk")).is_certain


def test_an_answer_that_was_overtaken_does_not_count_as_old(stage: Stage) -> None:
    """Several calls are under way, and a later one is answered first."""
    held = stage.store.known()["bk"]
    stage.store._held["bk"] = Held(GROUP, stage.etcd.revision + 5)
    found = stage.etcd.keys[KEY.encode()]
    assert isinstance(found, Stored)
    assert stage.run(stage.store.read("bk")).version == held.version
    assert stage.store.known()["bk"].version == stage.etcd.revision + 5


async def test_calls_are_bounded(stage: Stage) -> None:
    gateway = EtcdGateway(stage.members, 1)
    gateway._under_way = CALLS_MAX
    with pytest.raises(StoreError, match="under way already"):
        await gateway.call("kv/txn", {}, TxnReply)


def epoch_more(group: Group | None) -> Decision[int]:
    assert group is not None
    epoch = group.sync_state_set_epoch + 1
    return Decision(group=replace(group, sync_state_set_epoch=epoch), answer=epoch, line="x")


async def test_members_that_hang_keep_nobody_waiting(stage: Stage) -> None:
    released = threading.Event()

    class Hanging(FakeEndpoint):
        def post(self, path: str, words: Mapping[str, Any]) -> Any:
            released.wait(10)
            raise EndpointFailed("too late")

    gateway = EtcdGateway([Hanging(stage.etcd), Hanging(stage.etcd)], 0.01)
    with pytest.raises(Unreachable, match=r"not answer in time; .* not answer in time"):
        await gateway.call("kv/txn", {}, TxnReply)
    store = EtcdStore(KeyValues(gateway), "/x", 0.01)
    store.take([], 1)
    with pytest.raises(StoreAway, match="etcd does not answer in time"):
        await store.read("bk")
    released.set()
    await gateway.close()
