"""Name servers that fail, come back and are exchanged, and the HTTP service that knows them."""

from __future__ import annotations

import asyncio
import http.server
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.eventually import eventually

from cometmq.client.aio.instance.address_service import ANSWER_BYTES_MAX, fetch_name_servers
from cometmq.client.aio.instance.client_instance import ClientInstance
from cometmq.client.client_config import ClientConfig
from cometmq.client.errors import AddressServiceFailed, NoNameServer
from cometmq.model.names import AUTO_CREATE_TOPIC
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command

pytestmark = pytest.mark.timeout(180)

PATH = "/rocketmq/nsaddr"


class AddressServer:
    """Answers every request with ``answer``, piece by piece with a pause after each."""

    def __init__(self) -> None:
        self.status = 200
        self.answer: list[bytes] = []
        self.pause_seconds = 0.0
        self.paths: list[str] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.paths.append(self.path)
                self.send_response(outer.status)
                self.end_headers()
                try:
                    for part in outer.answer:
                        self.wfile.write(part)
                        self.wfile.flush()
                        time.sleep(outer.pause_seconds)
                except OSError:
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def service() -> Iterator[AddressServer]:
    server = AddressServer()
    yield server
    server.close()


async def test_the_service_answers_with_addresses(service: AddressServer) -> None:
    service.answer = [b"10.0.0.1:9876;", b"10.0.0.2:9876\n"]
    found = await fetch_name_servers(service.address, PATH, 3.0)
    assert found == ["10.0.0.1:9876", "10.0.0.2:9876"]
    assert service.paths == [PATH]


@pytest.mark.parametrize(
    ("status", "answer", "complaint"),
    [
        (404, [b"10.0.0.1:9876"], "status 404"),
        (200, [], "empty answer"),
        (200, [b"<html>"], "expected an address"),
        (200, [b"\xff\xfe"], "decode"),
        (200, [b"a" * (ANSWER_BYTES_MAX + 1)], "more than"),
    ],
)
async def test_what_is_no_list_of_addresses_is_refused(
    service: AddressServer, status: int, answer: list[bytes], complaint: str
) -> None:
    service.status, service.answer = status, answer
    with pytest.raises(AddressServiceFailed, match=complaint):
        await fetch_name_servers(service.address, PATH, 3.0)


async def test_nobody_listening_is_a_failure_too() -> None:
    with pytest.raises(AddressServiceFailed, match=r"127\.0\.0\.1:1.*refused"):
        await fetch_name_servers("127.0.0.1:1", PATH, 3.0)


async def test_a_service_that_drips_is_given_up_in_time(service: AddressServer) -> None:
    service.answer, service.pause_seconds = [b"1"] * 400, 0.1
    begin = time.monotonic()
    with pytest.raises(AddressServiceFailed, match=r"within 0\.3 s"):
        await fetch_name_servers(service.address, PATH, 0.3)
    assert time.monotonic() - begin < 20.0


@pytest.fixture
def two_name_servers(makers: Any, tmp_path: Any) -> Iterator[tuple[Any, Any]]:
    """Two name servers with a broker that knows both."""
    from tests.interop.systems import Broker, NameServer

    one, other = (NameServer(makers, tmp_path / name) for name in ("one", "other"))
    with one.running(), other.running():
        broker = Broker(
            [one, other],
            tmp_path / "broker",
            "broker-n",
            mappedFileSizeCommitLog=16 * 1024 * 1024,
        )
        try:
            broker.start(makers)
            yield one, other
        finally:
            broker.kill()


async def test_name_servers_fail_one_by_one_and_come_back(
    two_name_servers: tuple[Any, Any],
) -> None:
    one, other = two_name_servers

    instance = ClientInstance(ClientConfig(name_servers=f"{one.address};{other.address}"))
    route = await instance.route(AUTO_CREATE_TOPIC)
    await asyncio.to_thread(one.kill)
    assert await instance.route(AUTO_CREATE_TOPIC, fresh=True) is route
    assert await instance.route("broker-n", fresh=True) is not None
    await asyncio.to_thread(other.kill)
    assert await instance.route(AUTO_CREATE_TOPIC, fresh=True) is route
    with pytest.raises(NoNameServer):
        await instance.route("SELF_TEST_TOPIC")
    # The broker can still be worked with.
    [address] = route.broker_datas[0].broker_addrs.values()
    request = Command(RequestCode.GET_MAX_OFFSET, {"topic": AUTO_CREATE_TOPIC, "queueId": "0"})
    assert (await instance.call(address, request, 5.0)).code == ResponseCode.SUCCESS
    await asyncio.to_thread(one.start)
    # It knows nothing yet, but it is asked.
    reply, asked = await instance._name_servers.ask(
        Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "unknown"})
    )
    assert (reply.code, asked) == (ResponseCode.TOPIC_NOT_EXIST, one.address)
    await instance.release()


async def test_name_servers_are_exchanged_while_clients_run(
    two_name_servers: tuple[Any, Any], service: AddressServer
) -> None:
    one, other = two_name_servers
    service.answer = [one.address.encode()]

    config = ClientConfig(address_service=service.address, unit_name="u", address_service_millis=50)
    instance = ClientInstance(config)
    await instance.start()
    route = await instance.route(AUTO_CREATE_TOPIC)
    assert f"name_servers={one.address}" in repr(instance)
    service.answer = [other.address.encode()]
    await eventually(lambda: f"name_servers={other.address}" in repr(instance))
    await asyncio.to_thread(one.kill)
    assert await instance.route(AUTO_CREATE_TOPIC, fresh=True) is route
    # An outage of the service changes nothing.
    service.status = 500
    seen = len(service.paths)
    await eventually(lambda: len(service.paths) > seen + 1)
    assert f"name_servers={other.address}" in repr(instance)
    await instance.release()
    assert set(service.paths) == {f"{PATH}-u?nofix=1"}
