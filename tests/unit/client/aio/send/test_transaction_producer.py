from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.client.aio.send.transaction_producer import (
    TransactionProducer,
    TransactionResult,
    TransactionState,
)
from cometmq.client.producer_config import ProducerConfig
from cometmq.model.messages.message import Message, ReceivedMessage
from cometmq.model.messages.record import encode_record
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import decode_fields
from cometmq.protocol.headers.transaction import EndTransactionHeader

NAME_SERVER = "127.0.0.1:9876"
BROKER = "10.0.0.1:10911"
# Store host 10.0.0.1:10911 and physical offset 4660.
OFFSET_ID = "0A00000100002A9F0000000000001234"
MESSAGE = Message(topic="T", body=b"x")


@pytest.fixture(autouse=True)
def _one_broker(
    remoting: Any, names: Any, make_route: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "cometmq.client.aio.instance.client_instance.RemotingClient",
        lambda *args, **settings: remoting,
    )
    names.routes["T"] = make_route({"a": {0: BROKER}}, 1)
    remoting.servers[NAME_SERVER] = names
    remoting.servers[BROKER] = _stores(0)


def _stores(code: int) -> Any:
    ext = {"msgId": OFFSET_ID, "queueId": "0", "queueOffset": "7", "transactionId": "TX"}
    return lambda request: (
        request.reply(code, ext=dict(ext))
        if request.code == RequestCode.SEND_MESSAGE_V2
        else request.reply()
    )


def _unknown(*arguments: Any) -> TransactionState:
    return TransactionState.UNKNOWN


async def _send(execute: Any, **settings: Any) -> TransactionResult:
    async with TransactionProducer(
        "pg",
        execute=execute,
        check=_unknown,
        name_servers=NAME_SERVER,
        config=ProducerConfig(**settings),
    ) as producer:
        return await producer.send_transaction(MESSAGE, "argument")


def _ends(remoting: Any) -> list[EndTransactionHeader]:
    return [
        decode_fields(EndTransactionHeader, command.ext)
        for command in remoting.sent(RequestCode.END_TRANSACTION, BROKER)
    ]


async def test_the_outcome_names_the_half_message(remoting: Any) -> None:
    result = await _send(lambda message, argument: TransactionState.COMMIT)
    [half] = remoting.sent(RequestCode.SEND_MESSAGE_V2, BROKER)
    assert half.ext["f"] == "4"
    assert "TRAN_MSG\x01true\x02PGROUP\x01pg\x02" in half.ext["i"]
    assert _ends(remoting) == [
        EndTransactionHeader(
            producer_group="pg",
            tran_state_table_offset=7,
            commit_log_offset=0x1234,
            commit_or_rollback=8,
            from_transaction_check=False,
            msg_id=result.sent.message_id,
            transaction_id="TX",
            broker_name="a",
        )
    ]


@pytest.mark.parametrize("code", [10, 11, 12])
async def test_a_half_message_without_confirmation_is_rolled_back(remoting: Any, code: int) -> None:
    remoting.servers[BROKER] = _stores(code)
    result = await _send(lambda *arguments: pytest.fail("must not be executed"))
    assert result.state is TransactionState.ROLLBACK
    assert [end.commit_or_rollback for end in _ends(remoting)] == [12]


@pytest.mark.parametrize("said", [None, "COMMIT", 8, True])
async def test_anything_but_a_state_counts_as_unknown(remoting: Any, said: Any) -> None:
    result = await _send(lambda *arguments: said)
    assert result.state is TransactionState.UNKNOWN
    assert "must return TransactionState" in str(result.error)
    assert [end.commit_or_rollback for end in _ends(remoting)] == [0]


async def test_a_coroutine_hidden_in_a_function_is_awaited() -> None:
    async def commit() -> TransactionState:
        return TransactionState.COMMIT

    assert (await _send(lambda *arguments: commit())).state is TransactionState.COMMIT


def _check_request(number: int) -> Command:
    record = encode_record(
        topic=b"T",
        body=b"half-%d" % number,
        queue_id=0,
        queue_offset=3,
        physical_offset=100,
        flag=0,
        sys_flag=4,
        born_timestamp=1,
        born_host=bytes(8),
        store_timestamp=2,
        store_host=bytes(8),
        reconsume_times=0,
        prepared_transaction_offset=0,
        properties=f"UNIQ_KEY\x01ID{number}\x02PGROUP\x01pg\x02".encode(),
    )
    ext = {"tranStateTableOffset": "55", "commitLogOffset": "66", "transactionId": f"ID{number}"}
    return Command(RequestCode.CHECK_TRANSACTION_STATE, ext, record)


async def test_a_check_is_answered_with_the_brokers_own_offsets(remoting: Any) -> None:
    async def check(message: ReceivedMessage) -> TransactionState:
        if message.body == b"half-1":
            raise ValueError("no idea")
        return TransactionState.ROLLBACK

    async with TransactionProducer(
        "pg", execute=_unknown, check=check, name_servers=NAME_SERVER
    ) as producer:
        for number in range(2):
            await producer._check_transaction(BROKER, _check_request(number))
        while len(_ends(remoting)) < 2:
            await asyncio.sleep(0)
    rolled_back, unknown = _ends(remoting)
    assert rolled_back == EndTransactionHeader(
        producer_group="pg",
        tran_state_table_offset=55,
        commit_log_offset=66,
        commit_or_rollback=12,
        from_transaction_check=True,
        msg_id="ID0",
        transaction_id="ID0",
    )
    assert (unknown.msg_id, unknown.commit_or_rollback) == ("ID1", 0)


async def test_checks_that_wait_are_bounded(
    remoting: Any, caplog: pytest.LogCaptureFixture
) -> None:
    gate = asyncio.Event()

    async def check(message: ReceivedMessage) -> TransactionState:
        await gate.wait()
        return TransactionState.COMMIT

    async with TransactionProducer(
        "pg",
        execute=_unknown,
        check=check,
        name_servers=NAME_SERVER,
        config=ProducerConfig(check_queue_max=2),
    ) as producer:
        for number in range(4):
            await producer._check_transaction(BROKER, _check_request(number))
            # The first one is taken up and waits in the check itself.
            await asyncio.sleep(0)
        assert caplog.text.count("transaction check dropped") == 1
        gate.set()
        while len(_ends(remoting)) < 3:
            await asyncio.sleep(0)
        # What was dropped is asked again by the broker, and answered then.
        await producer._check_transaction(BROKER, _check_request(3))
        await eventually(lambda: len(_ends(remoting)) == 4)


async def test_hooks_see_outcomes(remoting: Any) -> None:
    seen: list[tuple[str, str, bool]] = []

    async with TransactionProducer(
        "pg",
        execute=lambda *arguments: TransactionState.COMMIT,
        check=_unknown,
        name_servers=NAME_SERVER,
    ) as producer:
        producer.add_end_hook(lambda end: seen.append((end.address, end.state, end.is_from_check)))
        await producer.send_transaction(MESSAGE)
        await producer._check_transaction(BROKER, _check_request(0))
        await eventually(lambda: len(seen) == 2)
    assert seen == [(BROKER, "COMMIT", False), (BROKER, "UNKNOWN", True)]
