"""The accounts of RocketMQ 4 (ACL 1) at our broker and at RocketMQ 4.9.7, with the same files.

Clients and tools that are not ours, and our own client, get the same answers of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cometmq.client import Message, ProducerConfig
from cometmq.client.aio import Producer
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import BrokerReplyError

from .account_attempts import PLAIN_ATTEMPTS, shown
from .account_clients import ClientRuns
from .account_own_client import FACES, own_surprises
from .account_requests import differences, run_answers
from .account_servers import OPEN, OPERATOR, Account, Guarded, plain_servers
from .account_tools import odd_lines, own_differences
from .admin_calls import ask_broker
from .conftest import required
from .features import CLIENTS, PLAIN_ACCOUNTS
from .mqadmin_script import OLD, PLAIN_ACCOUNT_SCRIPT
from .own_compare import check
from .systems import OURS, ROCKETMQ_4

# The first test waits for the servers.
pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with required(), plain_servers(tmp_path_factory.mktemp("plain-accounts")) as servers:
        yield servers


@pytest.fixture(scope="module")
def runs(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> ClientRuns:
    return ClientRuns(guarded, PLAIN_ATTEMPTS, tmp_path_factory.mktemp("plain-clients"))


@pytest.mark.parametrize("client", CLIENTS)
def test_client(runs: ClientRuns, client: str, record_property: Record) -> None:
    record_property("scenario", (client, PLAIN_ACCOUNTS))
    with required():
        assert runs.surprises(client) == {}


@pytest.mark.parametrize("face", FACES)
def test_our_client(guarded: Guarded, face: str) -> None:
    assert own_surprises(face, guarded, PLAIN_ATTEMPTS) == {}


@pytest.mark.parametrize("make", [OURS, ROCKETMQ_4])
async def test_an_account_that_is_deleted_loses_its_connection_s_rights(
    guarded: Guarded, make: str
) -> None:
    leaver = Account("leaver-one", "leaver-secret")
    broker = guarded[make]
    message = Message(topic=OPEN, body=b"x")

    operator = broker.remoting(OPERATOR)
    fields = {
        "accessKey": leaver.name,
        "secretKey": leaver.secret,
        "admin": "false",
        "topicPerms": f"{OPEN}=PUB",
    }
    create = Command(RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, fields)
    await ask_broker(operator, broker.address, create)
    config = ProducerConfig(client=broker.client_config(leaver), retries=0)
    async with Producer("leavers", config=config) as producer:
        await producer.send(message)
        delete = Command(RequestCode.DELETE_ACL_CONFIG, {"accessKey": leaver.name})
        await ask_broker(operator, broker.address, delete)
        with pytest.raises(BrokerReplyError) as refused:
            await producer.send(message)
    assert shown(refused.value.remark or "").endswith(f"No acl config for {leaver.name}")
    await operator.close()


def test_every_request_is_refused_as_by_rocketmq_if_asked_for(
    guarded: Guarded, tmp_path: Path
) -> None:
    theirs = run_answers(guarded[ROCKETMQ_4])
    with plain_servers(tmp_path, (OURS,), accessChecks="rocketmq") as loose:
        ours = run_answers(loose[OURS])
    assert differences(ours, theirs) == {}


def test_mqadmin_prints_what_it_prints_for_rocketmq(guarded: Guarded, tmp_path: Path) -> None:
    with required():
        assert odd_lines(PLAIN_ACCOUNT_SCRIPT, OLD[0], guarded, tmp_path) == {}


def test_our_mqadmin_prints_what_rocketmqs_prints(guarded: Guarded, tmp_path: Path) -> None:
    with required():
        found = own_differences(PLAIN_ACCOUNT_SCRIPT, OLD[0], guarded, tmp_path)
    for make, lines in found.items():
        check(make, "plain", lines)
