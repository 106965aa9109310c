"""One pull against a broker that is a function: what is asked for, whom, and how the answer is read."""

from __future__ import annotations

import asyncio

import pytest

from cometmq.client.aio.pull.pull_call import PullCalls, PullResult, PullStatus
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
    """Master and slave of ``b``; each answers with the next of ``replies``."""

    def __init__(self, *replies: Command, known: bool = True) -> None:
        self.addresses = {0: "master:1", 1: "slave:1"} if known else {}
        self.replies = list(replies)
        self.asked: list[tuple[str, dict[str, str], float]] = []
        self.routes = 0

    def read_address(self, broker_name: str, suggested_id: int) -> tuple[str, bool] | None:
        for broker_id in (suggested_id, *self.addresses):
            if broker_id in self.addresses:
                return self.addresses[broker_id], broker_id != 0
        return None

    async def route(self, topic: str, *, fresh: bool = False) -> TopicRoute:
        self.routes += 1
        return TopicRoute()

    async def call(self, address: str, command: Command, timeout: float) -> Command:
        self.asked.append((address, command.ext or {}, timeout))
        return self.replies.pop(0)

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


def test_the_broker_suggested_last_is_asked_and_a_slave_is_told_no_position() -> None:
    brokers = Brokers(_reply(suggested=1), _reply(suggested=0), _reply())

    async def pull_three() -> None:
        calls = PullCalls(brokers, "g")
        for _ in range(3):
            await calls.pull(QUEUE, 5, subscription_of(QUEUE.topic, "*"), commit_offset=4)

    asyncio.run(pull_three())
    assert [address for address, _, _ in brokers.asked] == ["master:1", "slave:1", "master:1"]
    flags = [int(ext["sysFlag"]) & PullFlag.COMMIT_OFFSET for _, ext, _ in brokers.asked]
    assert flags == [1, 0, 1]


def test_a_slave_serves_while_the_master_is_gone() -> None:
    brokers = Brokers(_reply())
    del brokers.addresses[0]
    _pull(brokers)
    assert brokers.asked[0][0] == "slave:1"


def test_a_broker_that_no_route_names_is_looked_for_once() -> None:
    brokers = Brokers(known=False)
    with pytest.raises(NoRoute, match="names broker 'b'"):
        _pull(brokers)
    assert brokers.routes == 1
