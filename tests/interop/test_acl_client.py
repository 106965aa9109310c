"""Our client's signed requests and RocketMQ 4.9.7's own broker with ACL on: what it lets through and what not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator

import pytest

from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.client_config import ClientConfig, Credentials
from cometmq.model.messages.batch import BatchElement, encode_batch
from cometmq.model.messages.properties import render_properties
from cometmq.model.names import AUTO_CREATE_TOPIC
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.fields import encode_fields
from cometmq.protocol.headers.send import SendMessageHeaderV2

from .admin_calls import CALL_SECONDS
from .conftest import required
from .systems import ROCKETMQ_4, Broker, NameServer, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

USER = Credentials(access_key="cometuser", secret_key="cometsecret")
ALLOWED, FORBIDDEN = "Allowed", "Forbidden"
ACCOUNTS = f"""\
accounts:
- accessKey: {USER.access_key}
  secretKey: {USER.secret_key}
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms:
  - {ALLOWED}=PUB|SUB
  groupPerms:
  - readers=SUB
"""


class _Producer:
    group = "senders"

    def topics(self) -> Collection[str]:
        return [ALLOWED]

    async def check_transaction(self, address: str, request: Command) -> None:
        raise AssertionError("nobody sent a half message")

    def reply_arrived(self, request: Command) -> None:
        raise AssertionError("nobody sent a request")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NameServer, Broker]]:
    directory = tmp_path_factory.mktemp("acl")
    with required():
        commands = commands_of(ROCKETMQ_4, directory / "home")
    (directory / "home" / "conf" / "plain_acl.yml").write_text(ACCOUNTS, encoding="utf-8")
    with NameServer(commands, directory / "namesrv").running() as name_server:
        broker = Broker(
            [name_server],
            directory / "broker",
            "broker-acl",
            aclEnable="true",
            mappedFileSizeCommitLog=16 * 1024 * 1024,
        )
        try:
            broker.start(commands)
            yield name_server, broker
        finally:
            broker.kill()


Work = Callable[[ClientInstance], Awaitable[None]]


def _with_instance(
    servers: tuple[NameServer, Broker], work: Work, credentials: Credentials
) -> None:
    async def main() -> None:
        instance = ClientInstance(
            ClientConfig(name_servers=servers[0].address, credentials=credentials)
        )
        try:
            await work(instance)
        finally:
            await instance.release()

    asyncio.run(main())


def _send(topic: str, body: bytes, *, batch: bool = False) -> Command:
    header = SendMessageHeaderV2(
        producer_group="senders",
        topic=topic,
        default_topic=AUTO_CREATE_TOPIC,
        queue_id=0,
        born_timestamp=1,
        properties=render_properties({"schlüssel": "值😀", "KEYS": "a b"}),
        batch=batch,
    )
    code = RequestCode.SEND_BATCH_MESSAGE if batch else RequestCode.SEND_MESSAGE_V2
    return Command(code, encode_fields(header), body)


def test_signed_requests_of_all_kinds_are_taken(servers: tuple[NameServer, Broker]) -> None:
    address = servers[1].address

    async def work(instance: ClientInstance) -> None:
        for command in (
            _send(ALLOWED, b"plain"),
            _send(ALLOWED, bytes(range(256)) * 100),
            _send(ALLOWED, encode_batch([BatchElement(0, b"one", b"")]), batch=True),
            Command(RequestCode.GET_MAX_OFFSET, {"topic": ALLOWED, "queueId": "0"}),
        ):
            reply = await instance.call(address, command, CALL_SECONDS)
            assert reply.code == ResponseCode.SUCCESS, (command, reply)
        # A request that is sent again is signed anew.
        again = _send(ALLOWED, b"again")
        for _ in range(2):
            assert (await instance.call(address, again, CALL_SECONDS)).code == ResponseCode.SUCCESS

    _with_instance(servers, work, USER)


def test_heartbeats_are_signed_too(servers: tuple[NameServer, Broker]) -> None:
    async def work(instance: ClientInstance) -> None:
        instance.add_producer(_Producer())
        await instance.start()
        await instance.route(AUTO_CREATE_TOPIC)
        await instance.heartbeat()
        assert instance.broker_version(servers[1].name) > 0

    _with_instance(servers, work, USER)


@pytest.mark.parametrize(
    ("credentials", "topic"),
    [
        (USER, FORBIDDEN),
        (Credentials(access_key=USER.access_key, secret_key="other-secret"), ALLOWED),
        (Credentials(access_key="stranger", secret_key=USER.secret_key), ALLOWED),
        (Credentials(), ALLOWED),
    ],
    ids=["forbidden topic", "wrong secret", "unknown account", "unsigned"],
)
def test_what_is_not_allowed_is_refused(
    servers: tuple[NameServer, Broker], credentials: Credentials, topic: str
) -> None:
    async def work(instance: ClientInstance) -> None:
        reply = await instance.call(servers[1].address, _send(topic, b"x"), CALL_SECONDS)
        assert reply.code != ResponseCode.SUCCESS
        assert "AclException" in (reply.remark or ""), reply

    _with_instance(servers, work, credentials)
