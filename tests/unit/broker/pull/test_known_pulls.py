"""A pull whose header came before is answered as any other, whatever has changed since."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, cast

import pytest
from tests.unit.broker.rig import pull_ext

from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.topic import TopicConfig
from cometmq.native.choice import twin
from cometmq.native.cut_pull import PULL, CutPull
from cometmq.protocol.command import BINARY, Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.frame import FRAME_BYTES_MAX, FrameDecoder, decode_bytes, encode_bytes
from cometmq.protocol.header_json import decode_header
from cometmq.protocol.headers.pull import PullMessageHeader
from cometmq.testing.fake_connection import FakeConnection

pytestmark = pytest.mark.skipif(twin("pulls") is None, reason="cometmq was installed without twins")

HEARD = "0"
SUSPEND, COMMIT = "6", "5"


def request(offset: int = 0, opaque: int = 9, **fields: str) -> Command:
    return pull_with(fields, offset, opaque)


def pull_with(fields: dict[str, str], offset: int = 0, opaque: int = 9) -> Command:
    return Command(11, pull_ext("T", offset) | fields, opaque=opaque, language="JAVA")


def cut(rig: Any, data: bytes) -> CutPull | None:
    found: CutPull | None = rig.ports.main.cut(data, 0, FRAME_BYTES_MAX)
    return found


def arrive(rig: Any, *commands: Command, peer: FakeConnection | None = None) -> list[Command]:
    """What the requests are answered with, coming as bytes."""
    data = b"".join(map(encode_bytes, commands))
    return cast(
        "list[Command]",
        rig.dispatch_all(list(FrameDecoder().feed(data, rig.ports.main.cut)), peer),
    )


def learn(rig: Any, **fields: str) -> None:
    """Have the header of such pulls known."""
    pull = encode_bytes(pull_with(fields))
    cut(rig, pull)
    assert cut(rig, pull) is not None


def assert_alike(rig: Any, **fields: str) -> Command:
    """A known pull is answered as one that is decoded."""
    command = pull_with(fields)
    assert cut(rig, encode_bytes(command)) is not None
    (reply,) = arrive(rig, command)
    (expected,) = rig.dispatch(command)
    assert decode_bytes(encode_bytes(reply)) == decode_bytes(encode_bytes(expected))
    return reply


@pytest.fixture
def known(rig: Any) -> Any:
    """A broker that knows the pulls of a reader."""
    for body in (b"0", b"1", b"2"):
        rig.send("T", body, i="TAGS\x01A" if body == b"1" else "")
    rig.pull("T")
    learn(rig)
    return rig


class TestCut:
    def test_numbers_are_all_that_may_differ(self, known: Any) -> None:
        pull = cut(known, encode_bytes(request(5, 77, queueId="3", commitOffset="2")))
        assert pull is not None
        assert (pull.code, pull.flag) == (PULL, 0)
        numbers = pull.queue_id, pull.queue_offset, pull.commit_offset, pull.opaque
        assert numbers == (3, 5, 2, 77)
        assert pull.header() == encode_bytes(request(5, 77, queueId="3", commitOffset="2"))[8:]
        assert cut(known, encode_bytes(request(topic="U"))) is None

    @pytest.mark.parametrize(
        "command",
        [
            request(-1),
            request(queueId="01"),
            request(queueId="2147483648"),
            request(queueOffset="+1"),
            request(queueOffset="1" * 19),
            request(commitOffset=""),
            request(opaque=-1),
            Command(11, {"queueId": "0"}),
            Command(12, pull_ext("T", 0)),
            Command(11, pull_ext("T", 0), b"body"),
            Command(11, pull_ext("T", 0), flag=2),
            Command(11, pull_ext("T", 0), encoding=BINARY),
            request(consumerGroup="x" * 2000),
            request(topic="%RETRY%CG"),
        ],
    )
    def test_what_is_unusual_is_left_to_the_decoder(self, known: Any, command: Command) -> None:
        for _ in range(3):
            assert cut(known, encode_bytes(command)) is None

    def test_only_whole_frames(self, known: Any) -> None:
        data = encode_bytes(request())
        assert all(cut(known, data[:size]) is None for size in range(len(data)))
        assert known.ports.main.cut(data, 0, len(data) - 4) is not None
        assert known.ports.main.cut(data, 0, len(data) - 5) is None

    @pytest.mark.parametrize(
        "header",
        [
            b'{"code":11,"extFields":{"queueId":"0","queueOffset":"0","commitOffset":"0"},"opaque":5',
            b'{"code":11,"queueId":"0","queueOffset":"0","commitOffset":"0","opaque":5}',
            b'{"code":11,"extFields":{"queueId":"0","queueOffset":"0","commitOffset":"0"},"opaque":"5"}',
            b'{"code":11,"code":12,"extFields":{"consumerGroup":"g","topic":"T","queueId":"0","queueOffset":"0",'
            b'"maxMsgNums":"1","sysFlag":"4","commitOffset":"0"},"opaque":5}',
            b'{"code":11,"queueId":"0","extFields":{"consumerGroup":"g","topic":"T","queue\\u0049d":"1",'
            b'"queueOffset":"0","maxMsgNums":"1","sysFlag":"4","commitOffset":"0"},"opaque":5}',
            b'{"code":11,"extFields":{"consumerGroup":"g","topic":"T","queueId":"0","queueId":"1","queueOffset":"0",'
            b'"maxMsgNums":"1","sysFlag":"4","commitOffset":"0"},"opaque":5}',
        ],
    )
    def test_numbers_that_mean_something_else(self, known: Any, header: bytes) -> None:
        length, size = len(header) + 4, len(header)
        data = length.to_bytes(4, "big") + size.to_bytes(4, "big") + header
        for _ in range(3):
            assert cut(known, data) is None

    def test_a_header_with_something_new_each_time_is_not_kept(self, known: Any) -> None:
        for number in range(3):
            assert cut(known, encode_bytes(request(Signature=str(number)))) is None

    def test_damaged_frames(self, known: Any) -> None:
        """What is cut is what a decoder reads, and nothing behind the data is looked at."""
        random, whole = Random(5), encode_bytes(request(1, 1234, queueId="2", commitOffset="3"))
        cut_count = 0
        for _ in range(5000):
            data = bytearray(whole)
            for _ in range(random.choice((1, 1, 2, 5))):
                at = random.randrange(len(data))
                data[at : at + random.choice((0, 1, 2))] = random.choice(
                    (b"", b"0", b"7", b'"', b",", b"\0", b"\xff", b":", b"}")
                )
            if (pull := cut(known, bytes(data))) is None:
                continue
            cut_count += 1
            command = decode_bytes(bytes(data[: pull.end]))
            assert command == decode_header(pull.header(), b"")
            header = decode_fields(PullMessageHeader, command.ext)
            assert (header.queue_id, header.queue_offset) == (pull.queue_id, pull.queue_offset)
            assert (header.commit_offset, command.opaque) == (pull.commit_offset, pull.opaque)
        assert cut_count

    def test_no_pulls_on_the_port_that_does_not_serve_them(self, known: Any) -> None:
        data = encode_bytes(request())
        (one,) = FrameDecoder().feed(data, known.ports.vip.cut)
        assert isinstance(one, Command)


class TestAnswer:
    @pytest.mark.parametrize("offset", ["0", "2", "3", "4"])
    @pytest.mark.parametrize("queue_id", ["0", "1", "7", "99"])
    def test_whatever_is_found(self, known: Any, queue_id: str, offset: str) -> None:
        assert_alike(known, queueId=queue_id, queueOffset=offset)

    @pytest.mark.parametrize(
        "fields",
        [
            {"subscription": "A"},
            {"subscription": "B"},
            {"subscription": "n > 1", "expressionType": "SQL92"},
            {"maxMsgNums": "1"},
            {"maxMsgBytes": "1"},
            {"sysFlag": "20"},
            {"sysFlag": COMMIT, "commitOffset": "2"},
        ],
    )
    def test_whatever_is_wanted(self, known: Any, fields: dict[str, str]) -> None:
        learn(known, **fields)
        assert_alike(known, **fields)

    def test_what_is_counted(self, known: Any) -> None:
        known.ports.times.is_on = True
        before = known.stats.group_get("T", "CG").count
        learn(known, sysFlag=COMMIT)
        assert_alike(known, sysFlag=COMMIT, commitOffset="2")
        assert known.stats.group_get("T", "CG").count == before + 6
        assert known.offsets.query("CG", "T", 0) == 2
        assert known.offsets.pull_offset("CG", "T", 0) == 3
        counted = {key: sum(times.counts) for key, times in known.ports.times.table.items()}
        assert counted == {(11, 0, False): 2}

    def test_it_waits(self, known: Any) -> None:
        learn(known, sysFlag=SUSPEND)
        peer = FakeConnection(40001)
        assert arrive(known, request(3, 5, sysFlag=SUSPEND), peer=peer) == []
        known.send("T", b"3")
        known.advance(0)
        (reply,) = peer.take()
        assert (reply.code, reply.opaque, (reply.ext or {})["nextBeginOffset"]) == (0, 5, "4")

    def test_several_in_one_turn(self, known: Any) -> None:
        replies = arrive(known, *(request(number % 3, number) for number in range(7)))
        assert [reply.opaque for reply in replies] == [*range(7)]
        assert [len(reply.body) for reply in replies[:3]] == sorted(
            (len(reply.body) for reply in replies[:3]), reverse=True
        )

    def test_a_filter_function_is_asked_as_ever(self, known: Any) -> None:
        fields = {"subscription": "f", "expressionType": "PYTHON"}
        learn(known, **fields)
        assert assert_alike(known, **fields).code == 1


def new_group(rig: Any, **fields: Any) -> None:
    rig.groups.put(SubscriptionGroupConfig(group_name="CG", **fields))


CHANGES: dict[str, Callable[[Any], object]] = {
    "topic deleted": lambda rig: rig.topics.remove("T"),
    "topic unreadable": lambda rig: rig.topics.put(TopicConfig(topic_name="T", perm=2)),
    "fewer queues": lambda rig: rig.topics.put(TopicConfig(topic_name="T", read_queue_nums=0)),
    "messages gone": lambda rig: rig.store.delete_topic("T"),
    "group may not consume": lambda rig: new_group(rig, consume_enable=False),
    "group reads elsewhere": lambda rig: (
        rig.groups.put(SubscriptionGroupConfig(group_name="CG", broker_id=3)),
        rig.live.update({"slaveReadEnable": "true"}),
    ),
    "broker unreadable": lambda rig: rig.live.update({"brokerPermission": "2"}),
    "group reset": lambda rig: rig.offsets.reset("CG", "T", 0, 1),
    "another message": lambda rig: rig.send("T"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_since(known: Any, change: str) -> None:
    reply = assert_alike(known)
    CHANGES[change](known)
    if change == "group reset":
        (reply,) = arrive(known, request())
        assert (reply.code, (reply.ext or {})["nextBeginOffset"]) == (21, "1")
        return
    assert decode_bytes(encode_bytes(assert_alike(known))) != decode_bytes(encode_bytes(reply))


def test_a_group_that_is_gone_comes_into_being_again_or_does_not(known: Any) -> None:
    assert_alike(known)
    known.groups.remove("CG")
    assert arrive(known, request())[0].code == 0
    assert "CG" in known.groups
    known.live.update({"autoCreateSubscriptionGroup": "false"})
    known.groups.remove("CG")
    assert assert_alike(known).code == 26


def test_lite_pulls_switched_off(known: Any) -> None:
    learn(known, sysFlag="20")
    assert assert_alike(known, sysFlag="20").code == 0
    known.live.update({"litePullMessageEnable": "false"})
    assert assert_alike(known, sysFlag="20").code == 16


class TestHeartbeats:
    def test_the_subscription_is_the_groups(self, known: Any) -> None:
        learn(known, sysFlag=HEARD, subVersion="5")
        fields = {"sysFlag": HEARD, "subVersion": "5"}
        assert assert_alike(known, **fields).code == 24
        peer = FakeConnection(40001)
        known.beat(peer, "c1", "CG", T="*")
        everything = assert_alike(known, **fields)
        assert everything.code == 0
        known.clients.unregister_consumer("CG", peer)
        assert assert_alike(known, **fields).code == 24
        known.beat(peer, "c1", "CG", T="A")
        assert len(assert_alike(known, **fields).body) < len(everything.body)

    def test_a_newer_one_than_known(self, known: Any) -> None:
        known.beat(FakeConnection(40001), "c1", "CG", T="*")
        learn(known, sysFlag=HEARD, subVersion="6")
        assert assert_alike(known, sysFlag=HEARD, subVersion="6").code == 25

    def test_broadcasting_forbidden(self, known: Any) -> None:
        new_group(known, consume_broadcast_enable=False)
        learn(known, sysFlag=HEARD)
        known.consumer("CG", "c1", "T")
        assert assert_alike(known, sysFlag=HEARD).code == 0
        known.consumer("CG", "c1", "T", model="BROADCASTING")
        assert assert_alike(known, sysFlag=HEARD).code == 16


def test_a_guard_that_is_not_idle_sees_every_pull(known: Any) -> None:
    seen: list[Command] = []
    known.ports.guard(lambda _, command: seen.append(command))
    assert_alike(known)
    assert [command.code for command in seen] == [11, 11]


def test_messages_that_are_hidden(make_rig: Callable[..., Any]) -> None:
    rig = make_rig(flushDiskType="SYNC_FLUSH")
    rig.send("T")
    learn(rig)
    assert assert_alike(rig).code != 0
    rig.store.flush()
    rig.advance(0)
    rig.peer.take()
    assert assert_alike(rig).code == 0
