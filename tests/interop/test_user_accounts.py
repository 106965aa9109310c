"""The users and acls of RocketMQ 5 (ACL 2) at our broker and at RocketMQ 5.5.0.

Clients and tools that are not ours, and our own client, get the same answers of both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cometmq.client import Message, ProducerConfig
from cometmq.client.aio import Producer
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import BrokerReplyError

from .account_attempts import USER_ATTEMPTS
from .account_clients import ClientRuns
from .account_own_client import FACES, own_surprises
from .account_requests import differences, run_answers
from .account_servers import OPEN, OPERATOR, Account, Guarded, user_servers
from .account_tools import odd_lines, own_differences
from .admin_calls import ask_broker
from .conftest import required
from .features import CLIENTS, USER_ACCOUNTS
from .mqadmin_script import NEW, USER_ACCOUNT_SCRIPT
from .own_compare import check
from .systems import OURS, ROCKETMQ_5

# The first test waits for the servers.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with required(), user_servers(tmp_path_factory.mktemp("user-accounts")) as servers:
        yield servers


@pytest.fixture(scope="module")
def runs(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> ClientRuns:
    return ClientRuns(guarded, USER_ATTEMPTS, tmp_path_factory.mktemp("user-clients"))


@pytest.mark.parametrize("client", CLIENTS)
def test_client(runs: ClientRuns, client: str, record_property: Record) -> None:
    record_property("scenario", (client, USER_ACCOUNTS))
    with required():
        assert runs.surprises(client) == {}


@pytest.mark.parametrize("face", FACES)
def test_our_client(guarded: Guarded, face: str) -> None:
    assert own_surprises(face, guarded, USER_ATTEMPTS) == {}


@pytest.mark.parametrize("make", [OURS, ROCKETMQ_5])
async def test_a_user_that_is_disabled_loses_its_connection_s_rights(
    guarded: Guarded, make: str
) -> None:
    leaver = Account("leaver-one", "leaver-secret")
    broker = guarded[make]
    message = Message(topic=OPEN, body=b"x")
    header = {"username": leaver.name}

    def change(code: RequestCode, **fields: str) -> Command:
        return Command(code, header, json.dumps(fields).encode())

    operator = broker.remoting(OPERATOR)
    create = change(RequestCode.AUTH_CREATE_USER, password=leaver.secret, userType="Super")
    await ask_broker(operator, broker.address, create)
    config = ProducerConfig(client=broker.client_config(leaver), retries=0)
    async with Producer("leavers", config=config) as producer:
        await producer.send(message)
        disable = change(RequestCode.AUTH_UPDATE_USER, userStatus="disable")
        await ask_broker(operator, broker.address, disable)
        with pytest.raises(BrokerReplyError) as refused:
            await producer.send(message)
    assert refused.value.remark == f"User:{leaver.name} is disabled."
    await operator.close()


def test_every_request_is_refused_as_by_rocketmq_if_asked_for(
    guarded: Guarded, tmp_path: Path
) -> None:
    theirs = run_answers(guarded[ROCKETMQ_5])
    with user_servers(tmp_path, (OURS,), accessChecks="rocketmq") as loose:
        ours = run_answers(loose[OURS])
    assert differences(ours, theirs) == {}


def test_mqadmin_prints_what_it_prints_for_rocketmq(guarded: Guarded, tmp_path: Path) -> None:
    with required():
        assert odd_lines(USER_ACCOUNT_SCRIPT, NEW[0], guarded, tmp_path) == {}


def test_our_mqadmin_prints_what_rocketmqs_prints(guarded: Guarded, tmp_path: Path) -> None:
    with required():
        found = own_differences(USER_ACCOUNT_SCRIPT, NEW[0], guarded, tmp_path)
    for make, lines in found.items():
        check(make, "users", lines)
