"""Every request that a broker serves, at both ports, from everybody who may not send it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.integration.raw_client import RawClient
from tests.integration.servers import running_broker
from tests.integration.signing_client import SigningClient
from tests.integration.test_access_accounts import ROOT, SETTINGS, make_user
from tests.integration.test_access_plain import ACL, PREFIX

from cometmq.broker.server import Broker
from cometmq.native.send_run import RUN
from cometmq.protocol.codes import RequestCode

NO_PERMISSION, SYSTEM_ERROR = 16, 1

FIELDS = {
    **dict.fromkeys(("topic", "b", "parentTopic"), "T"),
    **dict.fromkeys(("group", "consumerGroup", "groupName", "sink", "a"), "g"),
    **dict.fromkeys(("compareGroup", "srcGroup", "destGroup", "producerGroup"), "g"),
}
BODIES: dict[int, object] = {
    18: {"topicConfigList": [{"topicName": "T"}]},
    34: {"clientID": "c", "consumerDataSet": [{"groupName": "g"}], "producerDataSet": []},
    **{code: {"clientId": "c", "consumerGroup": "g", "mqSet": []} for code in (41, 42)},
    46: {"clientId": "c", "group": "g", "subscriptionData": {"topic": "T", "subString": "*"}},
    200: {"groupName": "g"},
    225: {"groupConfigList": [{"groupName": "g"}]},
    **{code: {"topic": "T", "consumerGroup": "g", "clientId": "c"} for code in (400, 401)},
    200151: {
        "acks": [
            {"c": "g", "t": "T", "so": 0, "q": 0, "rq": 0, "pt": 0, "it": 0, "b": "AQ=="},
        ]
    },
}
BY_RECORD = {RequestCode.VIEW_MESSAGE_BY_ID}
"""Any account may send it: what it needs follows from the record. Other tests have it."""


@asynccontextmanager
async def ports(directory: Path, **settings: str) -> AsyncIterator[tuple[Broker, list[str]]]:
    """A broker, and the addresses of its main and its VIP port."""
    async with running_broker(directory, **settings) as broker:
        vip = await broker._ports.listen(broker._ports.vip, 0)
        yield broker, [broker.address, f"127.0.0.1:{vip}"]


def codes(broker: Broker) -> list[int]:
    found = broker._ports.main.codes
    assert broker._ports.vip.codes <= found
    assert len(found) > 80
    return sorted(found)


async def refusals(client: RawClient, broker: Broker) -> dict[int, tuple[int, str | None]]:
    """What the client is answered, by request code; what the port does not serve is left out."""
    served = broker._ports.main if client.address == broker.address else broker._ports.vip
    found: dict[int, tuple[int, str | None]] = {}
    for code in sorted(served.codes):
        reply = await client.ask(code, FIELDS, BODIES.get(code, b""))
        found[code] = (reply.code, reply.remark)
    return found


async def test_users_that_are_missing_wrong_disabled_and_gone(tmp_path: Path) -> None:
    async with ports(tmp_path, **SETTINGS) as (broker, addresses):
        codes(broker)
        async with SigningClient(broker.address, "root", ROOT) as root:
            await make_user(root, "bob")
            for address in addresses:
                async with RawClient(address) as stranger:
                    answers = await refusals(stranger, broker)
                    assert set(answers.values()) == {(NO_PERMISSION, "username cannot be null.")}
                async with SigningClient(address, "bob", "wrong") as impostor:
                    answers = await refusals(impostor, broker)
                    assert set(answers.values()) == {(NO_PERMISSION, "check signature failed.")}
                async with SigningClient(address, "bob", "bob-pw") as bob:
                    allowed = {
                        code: answer
                        for code, answer in (await refusals(bob, broker)).items()
                        if answer[0] != NO_PERMISSION and code not in BY_RECORD
                    }
                    assert allowed == {}
                    await root.ask(3002, {"username": "bob"}, {"userStatus": "disable"})
                    answers = await refusals(bob, broker)
                    assert set(answers.values()) == {(NO_PERMISSION, "User:bob is disabled.")}
                    await root.ask(3003, {"username": "bob"})
                    answers = await refusals(bob, broker)
                    assert set(answers.values()) == {(NO_PERMISSION, "User:bob is not found.")}
                await make_user(root, "bob")


async def test_accounts_of_rocketmq_4_that_are_missing_wrong_and_gone(tmp_path: Path) -> None:
    file = tmp_path / "home" / "conf" / "plain_acl.yml"
    file.parent.mkdir(parents=True)
    file.write_text(ACL.replace("defaultGroupPerm: SUB", "defaultGroupPerm: DENY"))
    settings = {"aclEnable": "true", "rocketmqHome": str(tmp_path / "home")}
    name, secret = "normal-user", "normal-secret"
    async with ports(tmp_path / "store", **settings) as (broker, addresses):
        codes(broker)
        async with SigningClient(broker.address, "admin-user", "admin-secret") as admin:
            for address in addresses:
                async with RawClient(address) as stranger:
                    answers = await refusals(stranger, broker)
                    said = f"{PREFIX}No accessKey is configured"
                    assert set(answers.values()) == {(SYSTEM_ERROR, said)}
                async with SigningClient(address, name, "wrong-secret") as impostor:
                    answers = await refusals(impostor, broker)
                    said = f"{PREFIX}Check signature failed for accessKey={name}"
                    assert set(answers.values()) == {(SYSTEM_ERROR, said)}
                async with SigningClient(address, name, secret) as normal:
                    allowed = {
                        code: remark
                        for code, (_, remark) in (await refusals(normal, broker)).items()
                        if not str(remark).startswith(PREFIX) and code not in BY_RECORD
                    }
                    assert allowed == {}
                    if address == addresses[-1]:
                        assert (await admin.ask(51, {"accessKey": name})).code == 0
                        answers = await refusals(normal, broker)
                        said = f"{PREFIX}No acl config for {name}"
                        assert set(answers.values()) == {(SYSTEM_ERROR, said)}


@pytest.mark.parametrize("code", [99, 12345, -1, RUN])
async def test_what_nobody_serves_is_not_served(tmp_path: Path, code: int) -> None:
    async with ports(tmp_path, **SETTINGS) as (_, addresses):
        for address in addresses:
            async with RawClient(address) as stranger:
                assert (await stranger.ask(code)).code == 3
