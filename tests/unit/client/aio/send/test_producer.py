"""Decisions of a producer as a whole, with servers that are functions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cometmq.base.errors import CallTimedOut, ConnectFailed, UsageError
from cometmq.client.aio.send.producer import PartlySent, Producer, SendStatus
from cometmq.client.client_config import ClientConfig, Credentials
from cometmq.client.errors import NoRoute
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.messages.message import Message
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import MessageIllegal, SystemBusy
from cometmq.testing.fake_clock import FakeClock

NAME_SERVER = "127.0.0.1:9876"
MESSAGE = Message(topic="T", body=b"x")
BROKERS = {"a": {0: "10.0.0.1:10911"}, "b": {0: "10.0.0.2:10911"}}


class FakeBroker:
    """Answers with the codes of its list, one after another, and with success when they are used up."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.requests: list[Command] = []
        self.on_request: Callable[[], None] = lambda: None

    def __call__(self, request: Command) -> Command:
        if request.code in (RequestCode.HEART_BEAT, RequestCode.UNREGISTER_CLIENT):
            return request.reply()
        self.requests.append(request)
        self.on_request()
        code = self.codes.pop(0) if self.codes else 0
        ext = {"msgId": "0A" * 16, "queueId": "0", "queueOffset": "7"}
        return request.reply(code, ext=ext if code in (0, 10, 11, 12) else None)


@pytest.fixture
def brokers(
    remoting: Any, names: Any, make_route: Any, monkeypatch: pytest.MonkeyPatch
) -> dict[str, FakeBroker]:
    monkeypatch.setattr(
        "cometmq.client.aio.instance.client_instance.RemotingClient",
        lambda *args, **settings: remoting,
    )
    names.routes["T"] = make_route(BROKERS, 2)
    remoting.servers[NAME_SERVER] = names
    made = {"a": FakeBroker(), "b": FakeBroker()}
    for name, broker in made.items():
        remoting.servers[BROKERS[name][0]] = broker
    return made


def _running(*, clock: FakeClock | None = None, **settings: Any) -> Producer:
    config = ProducerConfig(**settings)
    return Producer("pg", name_servers=NAME_SERVER, config=config, clock=clock)


async def test_a_refused_send_goes_to_the_other_broker_under_the_same_id(
    brokers: dict[str, FakeBroker],
) -> None:
    for broker in brokers.values():
        broker.codes = [ResponseCode.SERVICE_NOT_AVAILABLE]

    async with _running() as producer:
        result = await producer.send(MESSAGE)
        assert result.status is SendStatus.SEND_OK
        requests = [request for broker in brokers.values() for request in broker.requests]
        assert len(requests) == 3
        assert {len(broker.requests) for broker in brokers.values()} == {1, 2}
        assert len({(request.ext or {})["i"] for request in requests}) == 1


async def test_all_attempts_fail(brokers: dict[str, FakeBroker]) -> None:
    for broker in brokers.values():
        broker.codes = [ResponseCode.SYSTEM_ERROR] * 9

    async with _running(retries=4) as producer:
        with pytest.raises(Exception, match="SYSTEM_ERROR"):
            await producer.send(MESSAGE)
        assert sum(len(broker.requests) for broker in brokers.values()) == 5


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ResponseCode.MESSAGE_ILLEGAL, MessageIllegal),
        (ResponseCode.SYSTEM_BUSY, SystemBusy),
    ],
)
async def test_some_answers_are_final(
    brokers: dict[str, FakeBroker], code: int, error: type[Exception]
) -> None:
    for broker in brokers.values():
        broker.codes = [code]

    async with _running() as producer:
        with pytest.raises(error):
            await producer.send(MESSAGE)
        assert sum(len(broker.requests) for broker in brokers.values()) == 1


async def test_a_busy_broker_alone_is_left_in_peace(
    brokers: dict[str, FakeBroker], names: Any, make_route: Any
) -> None:
    names.routes["T"] = make_route({"a": BROKERS["a"]}, 2)
    brokers["a"].codes = [ResponseCode.SYSTEM_BUSY]

    async with _running(retried_codes=frozenset({2})) as producer:
        with pytest.raises(SystemBusy):
            await producer.send(MESSAGE)
        assert len(brokers["a"].requests) == 1


async def test_sends_to_a_given_queue_are_tried_once(brokers: dict[str, FakeBroker]) -> None:
    for broker in brokers.values():
        broker.codes = [ResponseCode.SYSTEM_ERROR]

    async with _running() as producer:
        queue = (await producer.fetch_publish_queues("T"))[0]
        with pytest.raises(Exception, match="SYSTEM_ERROR"):
            await producer.send(MESSAGE, queue=queue)
        with pytest.raises(Exception, match="SYSTEM_ERROR"):
            await producer.send(MESSAGE, selector=lambda queues, message: queues[-1])
        assert [len(broker.requests) for broker in brokers.values()] == [1, 1]


async def test_in_the_background_only_the_network_is_tried_again(
    brokers: dict[str, FakeBroker], remoting: Any
) -> None:
    brokers["b"].codes = [ResponseCode.SYSTEM_ERROR]
    del remoting.servers[BROKERS["a"][0]]

    async with _running() as producer:
        results = await asyncio.gather(
            *(producer.send_soon(MESSAGE) for _ in range(6)), return_exceptions=True
        )
        failed = [result for result in results if isinstance(result, BaseException)]
        assert len(failed) == 1
        assert "SYSTEM_ERROR" in str(failed[0])


@pytest.mark.simulated_time
async def test_in_the_background_a_given_queue_is_kept(
    brokers: dict[str, FakeBroker], remoting: Any
) -> None:
    del remoting.servers[BROKERS["a"][0]]

    async with _running() as producer:
        queue = (await producer.fetch_publish_queues("T"))[0]
        assert queue.broker_name == "a"
        with pytest.raises(ConnectFailed):
            await producer.send_soon(MESSAGE, queue=queue, timeout=1.0)
        assert len(remoting.sent(RequestCode.SEND_MESSAGE_V2, BROKERS["a"][0])) > 1
        assert not brokers["b"].requests


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (10, SendStatus.FLUSH_DISK_TIMEOUT),
        (11, SendStatus.SLAVE_NOT_AVAILABLE),
        (12, SendStatus.FLUSH_SLAVE_TIMEOUT),
    ],
)
async def test_stored_without_confirmation_is_a_result(
    brokers: dict[str, FakeBroker], code: int, status: SendStatus
) -> None:
    for broker in brokers.values():
        broker.codes = [code]

    async with _running() as producer:
        assert (await producer.send(MESSAGE)).status is status


async def test_on_request_it_is_sent_again(brokers: dict[str, FakeBroker]) -> None:
    for broker in brokers.values():
        broker.codes = [10]

    async with _running(retry_another_broker_when_not_stored_ok=True) as producer:
        assert (await producer.send(MESSAGE)).status is SendStatus.SEND_OK
        assert sum(len(broker.requests) for broker in brokers.values()) == 3


async def test_a_weak_result_is_better_than_the_error_after_it(
    brokers: dict[str, FakeBroker],
) -> None:
    async with _running(retry_another_broker_when_not_stored_ok=True) as producer:
        queues = await producer.fetch_publish_queues("T")
        assert len(queues) == 4
        for broker in brokers.values():
            broker.codes = [10, 13]
        assert (await producer.send(MESSAGE)).status is SendStatus.FLUSH_DISK_TIMEOUT


async def test_the_time_limit_covers_all_attempts(brokers: dict[str, FakeBroker]) -> None:
    clock = FakeClock()
    for broker in brokers.values():
        broker.codes = [ResponseCode.SYSTEM_ERROR] * 9
        broker.on_request = lambda: clock.advance(1.6)

    async with _running(clock=clock, retries=5) as producer:
        with pytest.raises(Exception, match="SYSTEM_ERROR"):
            await producer.send(MESSAGE, timeout=3.0)
        assert sum(len(broker.requests) for broker in brokers.values()) == 2


async def test_no_time_is_no_send(brokers: dict[str, FakeBroker]) -> None:
    async with _running() as producer:
        await producer.send(MESSAGE)
        with pytest.raises(CallTimedOut) as raised:
            await producer.send(MESSAGE, timeout=0)
        assert not raised.value.sent


@pytest.mark.simulated_time
async def test_looking_for_a_route_counts_into_the_time_limit(
    brokers: dict[str, FakeBroker], remoting: Any
) -> None:
    async def never(request: Command) -> Command:
        await asyncio.sleep(60)
        raise AssertionError

    remoting.servers[NAME_SERVER] = never

    async with _running() as producer:
        with pytest.raises(CallTimedOut, match="no route of topic 'T' in time"):
            await producer.send(MESSAGE, timeout=0.05)


@pytest.mark.simulated_time
async def test_looking_again_counts_into_the_time_limit(
    brokers: dict[str, FakeBroker], remoting: Any
) -> None:
    async def never(request: Command) -> Command:
        await asyncio.sleep(60)
        raise AssertionError

    async with _running() as producer:
        await producer.send(MESSAGE)
        for addresses in BROKERS.values():
            del remoting.servers[addresses[0]]
        remoting.servers[NAME_SERVER] = never
        async with asyncio.timeout(5):
            with pytest.raises(ConnectFailed):
                await producer.send(MESSAGE, timeout=0.1)


async def test_no_queue_is_left_for_the_next_attempt(
    brokers: dict[str, FakeBroker], remoting: Any, names: Any, make_route: Any
) -> None:
    async with _running() as producer:
        await producer.send(MESSAGE)
        for addresses in BROKERS.values():
            del remoting.servers[addresses[0]]
        names.routes["T"] = make_route({}, 0)
        for _ in range(2):
            with pytest.raises(NoRoute):
                await producer.send(MESSAGE, timeout=0.1)


OLD_MASTER, NEW_MASTER = "10.0.0.1:10911", "10.0.0.3:10911"


class ChangingMaster:
    """A group whose master is replaced while a send looks for it.

    Args:
        looks: how often the name server is asked before it knows the new one; until then it knows of no master.
    """

    def __init__(self, remoting: Any, names: Any, make_route: Any, *, looks: int) -> None:
        self.new = FakeBroker()
        names.routes["T"] = make_route({"a": {0: OLD_MASTER, 2: NEW_MASTER}}, 2)
        self._looks = looks
        self._names, self._make_route = names, make_route
        remoting.servers[NAME_SERVER] = self._look
        remoting.servers[NEW_MASTER] = self.new
        self.is_lost = False

    def _look(self, request: Command) -> Command:
        if self.is_lost:
            self._looks -= 1
            master = {0: NEW_MASTER} if self._looks < 0 else {2: NEW_MASTER}
            self._names.routes["T"] = self._make_route({"a": master}, 2)
        reply: Command = self._names(request)
        return reply


@pytest.mark.simulated_time
@pytest.mark.parametrize("is_refused", [False, True])
@pytest.mark.parametrize("has_queue", [False, True])
async def test_a_send_waits_for_the_next_master(
    brokers: dict[str, FakeBroker],
    remoting: Any,
    names: Any,
    make_route: Any,
    is_refused: bool,
    has_queue: bool,
) -> None:
    group = ChangingMaster(remoting, names, make_route, looks=4)

    async with _running() as producer:
        queue = (await producer.send(MESSAGE)).queue
        group.is_lost = True
        if is_refused:
            brokers["a"].codes = [ResponseCode.SERVICE_NOT_AVAILABLE] * 99
        else:
            del remoting.servers[OLD_MASTER]
        result = await producer.send(MESSAGE, queue=queue if has_queue else None)
        assert result.status is SendStatus.SEND_OK
        assert len(group.new.requests) == 1


@pytest.mark.simulated_time
async def test_a_topic_that_lost_its_master_is_waited_for(
    brokers: dict[str, FakeBroker], remoting: Any, names: Any, make_route: Any
) -> None:
    group = ChangingMaster(remoting, names, make_route, looks=6)

    async with _running() as producer:
        await producer.send(MESSAGE)
        group.is_lost = True
        del remoting.servers[OLD_MASTER]
        producer._run().routes.doubt(producer._run().routes._topics["T"])  # as another send does
        assert (await producer.send(MESSAGE)).status is SendStatus.SEND_OK


@pytest.mark.simulated_time
@pytest.mark.parametrize("how", ["key", "selector"])
async def test_who_asks_for_a_queue_waits_until_there_are_some(
    brokers: dict[str, FakeBroker], remoting: Any, names: Any, make_route: Any, how: str
) -> None:
    group = ChangingMaster(remoting, names, make_route, looks=6)

    async with _running() as producer:
        await producer.send(MESSAGE)
        group.is_lost = True
        del remoting.servers[OLD_MASTER]
        producer._run().routes.doubt(producer._run().routes._topics["T"])
        if how == "key":
            result = await producer.send(MESSAGE, sharding_key="k")
        else:
            result = await producer.send(MESSAGE, selector=lambda queues, message: queues[0])
        assert result.status is SendStatus.SEND_OK
        assert len(group.new.requests) == 1


async def test_who_wants_no_retries_is_told_at_once(
    brokers: dict[str, FakeBroker], remoting: Any, names: Any, make_route: Any
) -> None:
    group = ChangingMaster(remoting, names, make_route, looks=2)

    async with _running(retries=0) as producer:
        await producer.send(MESSAGE)
        group.is_lost = True
        del remoting.servers[OLD_MASTER]
        with pytest.raises(ConnectFailed):
            await producer.send(MESSAGE)
        assert not group.new.requests


async def test_starting_twice_at_once_is_starting_once(
    brokers: dict[str, FakeBroker], remoting: Any
) -> None:
    producer = Producer("pg", name_servers=NAME_SERVER)
    await asyncio.gather(producer.start(), producer.start())
    await producer.send(MESSAGE)
    await asyncio.gather(producer.close(), producer.close())
    assert remoting.is_closed


async def test_after_a_failure_the_route_is_asked_for_again(
    brokers: dict[str, FakeBroker], remoting: Any, names: Any, make_route: Any
) -> None:
    async with _running() as producer:
        await producer.send(MESSAGE)
        for addresses in BROKERS.values():
            del remoting.servers[addresses[0]]
        names.routes["T"] = make_route({"c": {0: "10.0.0.3:10911"}}, 1)
        remoting.servers["10.0.0.3:10911"] = FakeBroker()
        assert (await producer.send(MESSAGE)).queue.broker_name == "c"


async def test_an_unknown_topic_goes_where_topics_are_created(
    brokers: dict[str, FakeBroker], names: Any, make_route: Any
) -> None:
    names.routes["TBW102"] = make_route(BROKERS, 8)

    async with _running(default_topic_queue_count=3) as producer:
        results = [await producer.send(Message(topic="New", body=b"x")) for _ in range(20)]
        assert {result.queue.queue_id for result in results} == {0, 1, 2}
        assert {result.queue.broker_name for result in results} == {"a", "b"}
        header = brokers["a"].requests[0].ext or {}
        assert (header["b"], header["c"], header["d"]) == ("New", "TBW102", "3")


async def test_a_topic_that_nobody_creates(brokers: dict[str, FakeBroker]) -> None:
    async with _running() as producer:
        with pytest.raises(NoRoute, match="New"):
            await producer.send(Message(topic="New", body=b"x"))


async def test_names_on_the_wire_carry_the_namespace(
    brokers: dict[str, FakeBroker], names: Any
) -> None:
    names.routes["shop%T"] = names.routes.pop("T")

    async with _running(client=ClientConfig(namespace="shop")) as producer:
        result = await producer.send(MESSAGE)
        assert result.queue.topic == "T"
        [request] = [request for broker in brokers.values() for request in broker.requests]
        assert request.ext is not None
        assert (request.ext["a"], request.ext["b"]) == ("shop%pg", "shop%T")


async def test_a_failing_broker_is_avoided_when_faults_are_tracked(
    brokers: dict[str, FakeBroker],
) -> None:
    clock = FakeClock()
    brokers["a"].codes = [ResponseCode.SYSTEM_ERROR]

    async with _running(clock=clock, latency_fault=True) as producer:
        while not brokers["a"].requests:
            await producer.send(MESSAGE)
        for _ in range(10):
            assert (await producer.send(MESSAGE)).queue.broker_name == "b"
        clock.advance(10.0)
        for _ in range(4):
            await producer.send(MESSAGE)
        assert len(brokers["a"].requests) > 1


async def test_what_was_sent_is_told_when_the_rest_fails(brokers: dict[str, FakeBroker]) -> None:
    messages = [Message(topic="T", body=str(number).encode()) for number in range(5)]

    async with _running(batch_count_max=2) as producer:
        # One list for both: whichever is asked second refuses.
        brokers["a"].codes = brokers["b"].codes = [0, ResponseCode.MESSAGE_ILLEGAL]
        with pytest.raises(PartlySent, match="3 messages were not sent after 1 batches") as raised:
            await producer.send_all(messages)
        assert len(raised.value.results) == 1
        assert raised.value.unsent == messages[2:]
        assert isinstance(raised.value.__cause__, MessageIllegal)


async def test_a_hook_that_fails_does_not_touch_the_send(
    brokers: dict[str, FakeBroker], caplog: pytest.LogCaptureFixture
) -> None:
    class Hook:
        def before(self, context: Any) -> None:
            raise ValueError("broken hook")

        def after(self, context: Any) -> None:
            raise ValueError("broken hook")

    async with _running() as producer:
        producer.add_send_hook(Hook())
        assert (await producer.send(MESSAGE)).status is SendStatus.SEND_OK
    assert caplog.text.count("send hook failed") == 2


async def test_a_hook_sees_every_attempt(brokers: dict[str, FakeBroker]) -> None:
    seen: list[tuple[str, str]] = []
    for broker in brokers.values():
        broker.codes = [ResponseCode.SYSTEM_ERROR]

    class Hook:
        def before(self, context: Any) -> None: ...

        def after(self, context: Any) -> None:
            seen.append((context.address, type(context.error).__name__))

    async with _running() as producer:
        producer.add_send_hook(Hook())
        await producer.send(MESSAGE)
    assert [error for _, error in seen] == ["SystemFault", "SystemFault", "NoneType"]
    assert seen[0][0] != seen[1][0]


async def test_closing_waits_for_sends_in_the_background(
    brokers: dict[str, FakeBroker], remoting: Any
) -> None:
    gate = asyncio.Event()

    async def slow(request: Command) -> Command:
        await gate.wait()
        return brokers["a"](request)

    for addresses in BROKERS.values():
        remoting.servers[addresses[0]] = slow

    producer = Producer("pg", name_servers=NAME_SERVER)
    await producer.start()
    future = producer.send_soon(MESSAGE)
    closing = asyncio.create_task(producer.close())
    await asyncio.sleep(0)
    gate.set()
    await closing
    assert (await future).status is SendStatus.SEND_OK


async def test_signed_requests_are_signed_anew_for_each_attempt(
    brokers: dict[str, FakeBroker],
) -> None:
    for broker in brokers.values():
        broker.codes = [ResponseCode.SYSTEM_ERROR]

    async with _running(
        client=ClientConfig(credentials=Credentials(access_key="user", secret_key="secret-12"))
    ) as producer:
        await producer.send(MESSAGE)
        signatures = {
            (request.ext or {})["Signature"]
            for broker in brokers.values()
            for request in broker.requests
        }
        assert len(signatures) >= 2


def test_the_group_name_is_checked() -> None:
    for group in ("", "a b", "DEFAULT_PRODUCER"):
        with pytest.raises(UsageError):
            Producer(group, name_servers=NAME_SERVER)
