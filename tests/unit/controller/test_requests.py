"""Every request to a controller, without a network."""

from __future__ import annotations

import asyncio

import pytest
from tests.controller_conversation import BROKERS, CONTROLLER, Conversation
from tests.unit.controller.memory_controller import MemoryController, address

from cometmq.base.properties_file import parse_properties
from cometmq.protocol import fastjson
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command


@pytest.fixture
def ours() -> MemoryController:
    return MemoryController()


@pytest.fixture
def pair(ours: MemoryController) -> MemoryController:
    """Master 1 and its in-sync slave 2, epoch 1, set epoch 2."""
    ours.join(1)
    ours.elect(1)
    ours.join(2)
    assert ours.alter(1, 1, [1, 2], 1).code == 0
    ours.told()
    return ours


class MemoryStage:
    """Runs the conversation on the test's own event loop."""

    def __init__(self, ours: MemoryController) -> None:
        self.addresses = {one: one for one in (*BROKERS.values(), CONTROLLER)}
        self._ours = ours

    async def ask(self, speaker: int, command: Command) -> Command:
        return await asyncio.to_thread(self._ours.ask, command, self._ours.line(speaker))

    async def beat(self, speaker: int, command: Command) -> None:
        await self.ask(speaker, command)

    async def kill(self, speaker: int) -> None:
        await asyncio.to_thread(self._ours.kill, speaker)

    async def notice(self, listener: int) -> Command:
        sent = self._ours.notices.sent
        found = next(one for one in sent if one[0] == BROKERS[listener])
        sent.remove(found)
        return found[1]


async def test_the_recorded_conversation_is_answered_as_java_answers(
    ours: MemoryController,
) -> None:
    await Conversation(MemoryStage(ours)).play()


def test_a_broker_without_master_is_told_so_and_may_ask_to_be_one(ours: MemoryController) -> None:
    reply = ours.join(1)
    assert (reply.code, reply.ext) == (0, {"clusterName": "HaCluster", "brokerName": "bk"})
    assert ours.elect(1).code == 0
    assert ours.master() == (1, 1, [1], 1)
    assert [to for to, _ in ours.told()] == [BROKERS[1]]


def test_a_second_broker_is_told_who_the_master_is(pair: MemoryController) -> None:
    ext = pair.start(2).ext or {}
    assert ext["masterBrokerId"] == "1"
    assert ext["masterAddress"] == BROKERS[1]
    assert (ext["masterEpoch"], ext["syncStateSetEpoch"]) == ("1", "2")


def test_a_master_that_starts_again_is_elected_anew_or_passed_over(pair: MemoryController) -> None:
    pair.beat(2, epoch=1, maxOffset=500)
    assert "masterBrokerId" not in (pair.start(1).ext or {})
    pair.beat(1, epoch=1, maxOffset=400)
    assert (pair.elect(1).ext or {})["masterBrokerId"] == "2"
    assert pair.master() == (2, 3, [2], 3)


def test_the_same_id_at_two_addresses_is_refused(pair: MemoryController) -> None:
    reply = pair.say(1003, 9, brokerId=2, brokerAddress="10.9.9.9:1")
    assert reply.code == 2014
    assert f"alive at {BROKERS[2]}, so 10.9.9.9:1 cannot be it" in (reply.remark or "")
    assert pair.beat(2, brokerAddr="10.9.9.9:1").code == 2014
    pair.kill(2)
    assert pair.say(1003, 9, brokerId=2, brokerAddress="10.9.9.9:1").code == 0


def test_heartbeats_are_answered(pair: MemoryController) -> None:
    reply = pair.beat(1)
    assert (reply.code, reply.remark) == (0, "Heart beat success")
    assert pair.beat(7).code == 2010


def test_heartbeats_of_strangers_take_no_room(ours: MemoryController) -> None:
    ours.beat(1)
    assert len(ours.controller.liveness) == 0


def test_a_killed_master_is_followed_at_once_by_the_fullest(pair: MemoryController) -> None:
    pair.join(3)
    pair.alter(1, 1, [1, 2, 3], 2)
    pair.beat(2, epoch=1, maxOffset=100)
    pair.beat(3, epoch=1, maxOffset=101)
    pair.kill(1)
    assert pair.master() == (3, 2, [3], 4)
    notice = {
        "masterAddress": address(3),
        "masterBrokerId": "3",
        "masterEpoch": "2",
        "syncStateSetEpoch": "4",
    }
    assert pair.told() == [(BROKERS[2], notice), (address(3), notice)]


def test_a_killed_slave_changes_nothing(pair: MemoryController) -> None:
    pair.kill(2)
    assert pair.master() == (1, 1, [1, 2], 2)
    assert pair.told() == []


def test_notices_can_be_switched_off(pair: MemoryController) -> None:
    pair.ask(Command(code=1009, body=b"notifyBrokerRoleChanged=false"))
    pair.kill(1)
    assert (pair.master(), pair.told()) == ((2, 2, [2], 3), [])


def test_without_a_candidate_there_is_no_master_until_one_returns(pair: MemoryController) -> None:
    pair.join(3)
    pair.kill(2)
    pair.kill(1)
    assert pair.master() == (None, 2, [1, 2], 2)
    for broker, code in ((3, 2012), (-1, 2004)):
        reply = pair.elect(broker)
        assert (reply.code, reply.ext) == (code, {})
        assert "in sync: [1, 2], alive: 3" in (reply.remark or "")
    info = pair.say(1004, 3)
    assert info.ext == {"masterEpoch": "2"}
    pair.start(2)
    assert pair.elect(2).code == 0
    assert pair.master() == (2, 3, [2], 3)


def test_an_unclean_election_says_what_it_costs(pair: MemoryController) -> None:
    pair.join(3)
    pair.kill(2)
    pair.kill(1)
    reply = pair.elect(3, designated=True)
    assert (reply.code, (reply.ext or {})["masterBrokerId"]) == (0, "3")
    assert (reply.remark or "").startswith(
        "acknowledged messages may be lost: named by an operator"
    )


def test_an_unclean_master_by_setting(pair: MemoryController) -> None:
    pair.join(3)
    pair.kill(2)
    pair.kill(1)
    assert pair.ask(Command(code=1009, body=b"enableElectUncleanMaster=true")).code == 0
    pair.run(pair.controller.fail_over.scan_masters)
    assert pair.master() == (3, 3, [3], 3)


def test_unknown_groups(ours: MemoryController) -> None:
    assert ours.say(1004, 1).code == 2008
    assert ours.elect().code == 2010
    assert ours.alter(1, 1, [1], 1).code == 2013
    assert ours.say(1011, 1).code == 2009
    assert ours.ask(Command(code=1006, body=b'["bk"]')).body == b'{"replicasInfoTable":{}}'


def test_another_cluster_cannot_use_the_name(pair: MemoryController) -> None:
    for code, fields in (
        (1012, {}),
        (1013, {"appliedBrokerId": 3, "registerCheckCode": "h:1;1"}),
        (1003, {"brokerId": 1, "brokerAddress": BROKERS[1]}),
        (1002, {"brokerId": 1}),
        (1011, {}),
    ):
        reply = pair.ask(
            Command(
                code=code,
                ext={
                    "clusterName": "Other",
                    "brokerName": "bk",
                    **{key: str(value) for key, value in fields.items()},
                },
            )
        )
        assert reply.code == 2005, code
        assert "belongs to the cluster HaCluster, not to Other" in (reply.remark or "")


def test_who_is_in_sync(pair: MemoryController) -> None:
    pair.join(3)
    pair.kill(2)
    reply = pair.ask(Command(code=1006, body=b'["bk","bk","nope"]'))
    (info,) = fastjson.loads(bytes(reply.body))["replicasInfoTable"].values()
    assert [(one["brokerId"], one["alive"]) for one in info["inSyncReplicas"]] == [
        *[(1, True), (2, False)],
    ]
    assert [one["brokerId"] for one in info["notInSyncReplicas"]] == [3]


def test_brokers_are_forgotten(pair: MemoryController) -> None:
    assert pair.say(1011, 0, brokerControllerIdsToClean="2").code == 2009
    pair.kill(2)
    assert pair.say(1011, 0, brokerControllerIdsToClean="2").code == 0
    assert pair.master() == (1, 1, [1], 3)
    assert pair.beat(2).code == 2010
    assert pair.say(1011, 0, isCleanLivingBroker="true").code == 0
    assert pair.say(1004, 1).code == 2008
    # Ids and epochs go on where they were.
    assert (pair.say(1012, 1).ext or {})["nextBrokerId"] == "3"
    pair.join(3)
    pair.elect(3)
    assert pair.master() == (3, 3, [3], 5)
    assert pair.say(1011, 0, brokerControllerIdsToClean="x;2").code == 2009


def test_who_decides(ours: MemoryController) -> None:
    assert ours.ask(Command(code=1005)).ext == {
        "group": "grp1",
        "controllerLeaderId": "n0",
        "controllerLeaderAddress": CONTROLLER,
        "isLeader": "true",
        "peers": f"n0:{CONTROLLER};",
    }


def test_settings_are_shown_and_changed(ours: MemoryController) -> None:
    assert ours.ask(Command(code=1009, body=b"scanInactiveMasterInterval=700")).remark == (
        "stored; takes effect at the next start: scanInactiveMasterInterval"
    )
    shown = parse_properties(bytes(ours.ask(Command(code=1010)).body).decode())
    assert shown["scanInactiveMasterInterval"] == "700"
    assert shown["controllerDLegerGroup"] == "grp1"
    for change, code in (
        (b"configBlackList=x", 16),
        (b"configStorePath=/etc/passwd", 16),
        (b"controllerStorePath=/tmp", 16),
        (b"controllerDLegerPeers=", 16),
        (b"nonsense=1", 1),
        (b"enableElectUncleanMaster=maybe", 1),
    ):
        assert ours.ask(Command(code=1009, body=change)).code == code, change


@pytest.mark.parametrize("code", [1001, 1002, 1003, 1004, 1011, 1012, 1013, 904])
def test_what_cannot_be_read_is_refused(ours: MemoryController, code: int) -> None:
    for ext in (None, {"brokerName": "bk", "brokerId": "x", "appliedBrokerId": "1.5"}):
        reply = ours.ask(Command(code=code, ext=ext, body=b"{"))
        assert reply.code not in (0, 3)
        assert reply.remark


def test_bodies_that_cannot_be_read_are_refused(pair: MemoryController) -> None:
    for code, body in ((1001, b"[1]"), (1001, b""), (1006, b'{"a":1}'), (1006, b"[1]")):
        reply = pair.say(code, 1, body=body, masterBrokerId=1, masterEpoch=1)
        assert (reply.code, "as body" in (reply.remark or "")) == (1, True)


def test_other_requests_are_not_supported(ours: MemoryController) -> None:
    reply = ours.ask(Command(code=1014))
    assert (reply.code, reply.remark) == (3, " request type 1014 not supported")


def test_decisions_that_cannot_be_stored_are_not_made(
    pair: MemoryController, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pair.files, "replace", fail)
    reply = pair.elect(2, designated=True)
    assert (reply.code, "cannot store decisions" in (reply.remark or "")) == (1, True)
    pair.kill(1)
    assert (pair.master(), pair.told()) == ((1, 1, [1, 2], 2), [])
    monkeypatch.undo()
    pair.run(pair.controller.fail_over.scan_masters)
    assert pair.master() == (2, 2, [2], 3)


@pytest.mark.parametrize("code", [0, 3])
def test_a_master_is_prepared_before_another_is_elected_by_an_operator(
    pair: MemoryController, code: int
) -> None:
    """RocketMQ's brokers do not know that request, and are replaced all the same."""
    pair.notices.answers = {BROKERS[1]: code}
    assert pair.elect(2, designated=True).code == 0
    ((asked, command),) = pair.notices.asked
    assert (asked, command.code) == (BROKERS[1], RequestCode.HAND_OVER)
    assert command.ext == {"masterEpoch": "1", "successorId": "2"}
    assert pair.master()[0] == 2


def test_who_cannot_hand_over_is_not_asked(pair: MemoryController) -> None:
    pair.elect(1, designated=True)
    pair.elect(7, designated=True)
    pair.kill(1)
    pair.elect(2, designated=True)
    assert pair.notices.asked == []
