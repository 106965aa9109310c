"""One pull against a broker that is a function: what is asked for, whom, and how the answer is read."""

from __future__ import annotations

import asyncio

import pytest

from cometmq.base.errors import ConnectFailed, ConnectionLost, TooManyInFlight
from cometmq.client.aio.pull.pull_call import PullCalls, PullResult, PullStatus
from cometmq.client.core.broker_order import Place
from cometmq.client.errors import NoRoute
from cometmq.model.flags import PullFlag
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.record import encode_record
from cometmq.model.route import TopicRoute
from cometmq.model.subscription import Sql, SubscriptionData, subscription_of
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import BrokerReplyError

QUEUE = MessageQueue("b", 1, "ns%T")


class Brokers:
    """Master and slave of ``b``; each answers with the next of ``replies``, or raises it."""

    def __init__(self, *replies: Command | Exception, known: bool = True) -> None:
        self.addresses = {0: "master:1", 1: "slave:1"} if known else {}
        self.replies = list(replies)
        self.dead: list[str] = []
        self.new_route: dict[int, str] | None = None
        self.asked: list[tuple[str, dict[str, str], float]] = []
        self.routes = 0

    def read_place(self, broker_name: str, suggested_id: int) -> Place | None:
        places = [
            Place(self.addresses[broker_id], broker_id == 0)
            for broker_id in (suggested_id, *self.addresses)
            if broker_id in self.addresses
        ]
        alive = [place for place in places if place.address not in self.dead]
        return next(iter(alive or places), None)

    def unreachable(self, address: str) -> None:
        self.dead.append(address)

    async def route(self, topic: str, *, fresh: bool = False) -> TopicRoute:
        self.routes += 1
        if self.new_route is not None:
            self.addresses = self.new_route
        return TopicRoute()

    async def call(self, address: str, command: Command, timeout: float) -> Command:
        self.asked.append((address, command.ext or {}, timeout))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def broker_version(self, broker_name: str) -> int:
        return 409

    def unwrap_topic(self, name: str) -> str:
        return name.removeprefix("ns%")


def _record(offset: int, tags: str) -> bytes:
    return encode_record(
        topic=b"ns%T",
        queue_id=1,
        queue_offset=offset,
        physical_offset=offset * 1000,
        flag=0,
        sys_flag=0,
        born_timestamp=1,
        born_host=bytes(8),
        store_timestamp=2,
        store_host=bytes(8),
        reconsume_times=0,
        prepared_transaction_offset=0,
        body=b"body",
        properties=f"TAGS\x01{tags}\x02".encode(),
    )


def _reply(
    code: int = ResponseCode.SUCCESS, body: bytes = b"", *, suggested: int = 0, next_offset: int = 9
) -> Command:
    ext = {
        "suggestWhichBrokerId": str(suggested),
        "nextBeginOffset": str(next_offset),
        "minOffset": "3",
        "maxOffset": "12",
    }
    return Command(code, ext, body)


def _pull(
    brokers: Brokers, subscription: SubscriptionData | None = None, **options: object
) -> PullResult:
    calls = PullCalls(brokers, "g")
    wish = subscription or subscription_of(QUEUE.topic, "*", version=77)
    return asyncio.run(calls.pull(QUEUE, 5, wish, **options))  # type: ignore[arg-type]


def test_messages_come_with_the_bounds_of_their_queue_and_their_bare_topic() -> None:
    brokers = Brokers(_reply(body=_record(5, "a") + _record(8, "b")))
    result = _pull(brokers)
    assert result.status is PullStatus.FOUND
    assert [message.queue_offset for message in result.messages] == [5, 8]
    assert (result.next_offset, result.min_offset, result.max_offset) == (9, 3, 12)
    message = result.messages[0]
    assert (message.topic, message.broker_name) == ("T", "b")
    assert (message.properties["MIN_OFFSET"], message.properties["MAX_OFFSET"]) == ("3", "12")
    assert message.tags == "a"


def test_a_tag_with_the_same_hash_is_not_taken() -> None:
    brokers = Brokers(_reply(body=_record(5, "Aa") + _record(6, "BB")))
    result = _pull(brokers, subscription_of(QUEUE.topic, "BB"))
    assert [message.tags for message in result.messages] == ["BB"]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ResponseCode.PULL_NOT_FOUND, PullStatus.NO_NEW_MSG),
        (ResponseCode.PULL_RETRY_IMMEDIATELY, PullStatus.NO_MATCHED_MSG),
        (ResponseCode.PULL_OFFSET_MOVED, PullStatus.OFFSET_ILLEGAL),
    ],
)
def test_nothing_found_is_a_result(code: ResponseCode, status: PullStatus) -> None:
    result = _pull(Brokers(_reply(code)))
    assert (result.status, result.messages, result.next_offset) == (status, [], 9)


def test_a_refusal_is_an_error() -> None:
    with pytest.raises(BrokerReplyError, match="answered 16"):
        _pull(Brokers(Command(ResponseCode.NO_PERMISSION, {})))


def test_a_subscription_travels_with_the_pull_or_is_named_by_its_version() -> None:
    brokers = Brokers(_reply(), _reply(), _reply())
    _pull(brokers)
    _pull(brokers, send_subscription=False)
    _pull(brokers, subscription_of(QUEUE.topic, Sql("a > 1"), version=78))
    with_text, by_version, condition = (ext for _, ext, _ in brokers.asked)
    assert (with_text["subscription"], with_text["subVersion"]) == ("*", "0")
    assert "subscription" not in by_version
    assert by_version["subVersion"] == "77"
    assert (condition["subscription"], condition["expressionType"]) == ("a > 1", "SQL92")
    assert condition["subVersion"] == "78"
    assert int(with_text["sysFlag"]) == PullFlag.SUBSCRIPTION
    assert int(by_version["sysFlag"]) == 0


def test_waiting_and_committing_are_flags_with_their_values() -> None:
    brokers = Brokers(_reply())
    _pull(brokers, wait_seconds=15.0, commit_offset=4, send_subscription=False, is_lite=True)
    ((address, ext, timeout),) = brokers.asked
    assert address == "master:1"
    assert int(ext["sysFlag"]) == PullFlag.SUSPEND | PullFlag.COMMIT_OFFSET | PullFlag.LITE_PULL
    assert (ext["suspendTimeoutMillis"], ext["commitOffset"]) == ("15000", "4")
    assert timeout > 15 + 5


async def test_the_broker_suggested_last_is_asked_and_a_slave_is_told_no_position() -> None:
    brokers = Brokers(_reply(suggested=1), _reply(suggested=0), _reply())

    calls = PullCalls(brokers, "g")
    for _ in range(3):
        await calls.pull(QUEUE, 5, subscription_of(QUEUE.topic, "*"), commit_offset=4)
    assert [address for address, _, _ in brokers.asked] == ["master:1", "slave:1", "master:1"]
    flags = [int(ext["sysFlag"]) & PullFlag.COMMIT_OFFSET for _, ext, _ in brokers.asked]
    assert flags == [1, 0, 1]


def test_a_slave_serves_while_the_master_is_gone() -> None:
    brokers = Brokers(_reply())
    del brokers.addresses[0]
    _pull(brokers)
    assert brokers.asked[0][0] == "slave:1"


class TestFailOver:
    """The master does not answer."""

    LOST = ConnectionLost("the connection was closed")

    def test_its_slave_is_asked_in_the_same_pull(self) -> None:
        brokers = Brokers(self.LOST, _reply(body=_record(5, "a")))
        result = _pull(brokers, commit_offset=4)
        assert [message.queue_offset for message in result.messages] == [5]
        assert [address for address, _, _ in brokers.asked] == ["master:1", "slave:1"]
        assert brokers.asked[0][1]["queueOffset"] == brokers.asked[1][1]["queueOffset"] == "5"
        flags = [int(ext["sysFlag"]) & PullFlag.COMMIT_OFFSET for _, ext, _ in brokers.asked]
        assert flags == [1, 0]

    def test_so_is_a_broker_that_only_a_fresh_route_names(self) -> None:
        brokers = Brokers(self.LOST, _reply())
        del brokers.addresses[1]
        brokers.new_route = {2: "other:1"}
        _pull(brokers)
        assert [address for address, _, _ in brokers.asked] == ["master:1", "other:1"]

    def test_without_another_broker_the_pull_fails(self) -> None:
        brokers = Brokers(self.LOST)
        del brokers.addresses[1]
        with pytest.raises(ConnectionLost):
            _pull(brokers)
        assert brokers.routes == 1

    def test_if_the_other_fails_too_the_pull_fails(self) -> None:
        with pytest.raises(ConnectFailed):
            _pull(Brokers(self.LOST, ConnectFailed("nobody there")))

    def test_too_many_calls_of_our_own_are_no_reason_to_go_elsewhere(self) -> None:
        brokers = Brokers(TooManyInFlight("the limit is reached"))
        with pytest.raises(TooManyInFlight):
            _pull(brokers)
        assert brokers.dead == []


def test_a_slave_that_lacks_the_offset_is_not_asked_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("cometmq.client.aio.pull.pull_call.asyncio.sleep", sleep)
    absent = _reply(ResponseCode.PULL_RETRY_IMMEDIATELY, next_offset=5)
    further = _reply(ResponseCode.PULL_RETRY_IMMEDIATELY, next_offset=6)
    for reply, is_master, wait_seconds in (
        (further, False, 15.0),
        (absent, True, 15.0),
        (absent, False, 0.0),
    ):
        brokers = Brokers(reply)
        if not is_master:
            del brokers.addresses[0]
        _pull(brokers, wait_seconds=wait_seconds)
    assert pauses == []
    brokers = Brokers(absent)
    del brokers.addresses[0]
    assert _pull(brokers, wait_seconds=15.0).next_offset == 5
    assert pauses == [1.0]


def test_a_broker_that_no_route_names_is_looked_for_once() -> None:
    brokers = Brokers(known=False)
    with pytest.raises(NoRoute, match="names broker 'b'"):
        _pull(brokers)
    assert brokers.routes == 1
