"""A browser that sends anything, a page of a stranger, half a cluster."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.eventually import eventually
from tests.integration.dashboard.visitor import BY_NAME, dashboard

from cometmq.testing import cluster
from cometmq.testing.cluster import Cluster


@pytest.fixture(scope="module")
def servers() -> Iterator[Cluster]:
    with cluster() as running:
        yield running


JSON = {"Content-Type": "application/json"}


ODD: tuple[tuple[str, str, bytes | None, int], ...] = (
    ("GET", "/api/v1/topics?page=0", None, 400),
    ("GET", "/api/v1/topics?page=x", None, 400),
    ("GET", "/api/v1/topics?page=1&page=2", None, 400),
    ("GET", "/api/v1/topics?nonsense=1", None, 400),
    ("GET", "/api/v1/topics?size=100000", None, 400),
    ("GET", "/api/v1/topics?sort=by_magic", None, 400),
    ("GET", "/api/v1/topics?site=elsewhere", None, 404),
    ("GET", "/api/v1/topics/%00", None, 400),
    ("GET", "/api/v1/topics/" + "x" * 300, None, 400),
    ("GET", "/api/v1/topics/%E4%B8%AD%E6%96%87", None, 404),
    ("GET", "/api/v1/topics/..%2f..%2fetc%2fpasswd", None, 404),
    ("GET", "/web/..%2f..%2fserver.py", None, 404),
    ("GET", "/web/../server.py", None, 404),
    ("GET", "/api/v1/messages", None, 400),
    ("GET", "/api/v1/messages?topic=Orders&sql=a%20%3D", None, 400),
    ("GET", "/api/v1/messages?topic=Orders&cursor=xyz", None, 404),
    ("GET", "/api/v1/messages/abc", None, 400),
    ("GET", "/api/v1/history?series=" + ",".join("abcdefghijklmnopqrstuvwxyz"), None, 400),
    ("GET", "/api/v1/brokers/none/0", None, 404),
    ("GET", "/api/v1/brokers/none/x", None, 400),
    ("POST", "/api/v1/topics", b"{", 400),
    ("POST", "/api/v1/topics", b"[" * 100_000, 400),
    ("POST", "/api/v1/topics", b"\xff\xfe", 400),
    ("POST", "/api/v1/topics", b"null", 400),
    ("POST", "/api/v1/topics", b'{"name": 1}', 400),
    ("POST", "/api/v1/topics", b'{"name": "a b"}', 400),
    ("POST", "/api/v1/topics", b'{"name": "x", "surprise": 1}', 400),
    ("POST", "/api/v1/topics", b'{"name": "x", "read_queues": 1e99}', 400),
    ("POST", "/api/v1/topics", b'{"name": "%RETRY%x"}', 400),
    ("POST", "/api/v1/topics", b" " * (8 * 1024 * 1024 + 1), 413),
    ("POST", "/api/v1/topics/Orders/messages", b'{"encoding": "base64", "body": "x"}', 400),
    ("POST", "/api/v1/topics/Orders/messages", b'{"encoding": "base64", "body": "\\u0094"}', 400),
    ("DELETE", "/api/v1/topics/Orders", b'{"confirm": "other"}', 400),
    ("PUT", "/api/v1/topics", b"{}", 405),
    ("GET", "/api/v2/topics", None, 404),
    ("GET", "/api/v1/topics?page=%201", None, 400),
    ("GET", "/api/v1/messages?topic=Orders&end_ms=null", None, 400),
)


async def test_a_clear_answer(servers: Cluster) -> None:
    async with dashboard(servers.name_servers) as (_, visitor):
        for method, path, body, status in ODD:
            headers = {**(JSON if body else {}), "X-CSRF-Token": visitor.token}
            answer = await visitor.raw(method, path, body, headers)
            assert answer.status == status, (method, path[:100], answer.body[:500])
            if path.startswith("/api"):
                error = json.loads(answer.body)["error"]
                assert error["message"], path
                assert len(error["message"]) < 3000, path


async def test_a_body_must_say_that_it_is_json(servers: Cluster) -> None:
    """A form of a stranger's page can be sent without asking us first, but not as JSON."""
    async with dashboard(servers.name_servers) as (_, visitor):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            answer = await visitor.raw(
                "POST",
                "/api/v1/topics",
                b'{"name": "x"}',
                {"Content-Type": kind, "X-CSRF-Token": visitor.token},
            )
            assert answer.status == 415


STRANGE: tuple[tuple[dict[str, str], str], ...] = (
    ({"X-CSRF-Token": "guessed"}, "csrf"),
    ({"Origin": "http://evil.example"}, "foreign_page"),
    ({"Origin": "null"}, "foreign_page"),
    ({"Sec-Fetch-Site": "cross-site"}, "foreign_page"),
    ({"Host": "evil.example"}, "foreign_host"),
    ({"Host": "[::1"}, "foreign_host"),
)


async def test_pages_of_strangers(servers: Cluster) -> None:
    async with dashboard(servers.name_servers) as (_, visitor):
        for headers, code in STRANGE:
            given = {**JSON, "X-CSRF-Token": visitor.token, **headers}
            answer = await visitor.raw("POST", "/api/v1/topics", b'{"name": "Evil"}', given)
            assert (answer.status, answer.error) == (403, code), headers


async def test_every_change_needs_the_token(servers: Cluster) -> None:
    async with dashboard(servers.name_servers) as (_, visitor):
        visitor.token = ""
        for route in BY_NAME.values():
            if route.is_change and route.name not in ("log_in", "log_out"):
                names = {part[1:-1]: "x" for part in route.path.split("/") if part[:1] == "{"}
                answer = await visitor.ask(route.name, names, body={} if route.body else None)
                assert answer.error == "csrf", route.name


async def test_requests_are_limited(servers: Cluster) -> None:
    async with dashboard(servers.name_servers, requests_per_second=1) as (_, visitor):
        answers = [await visitor.ask("me") for _ in range(12)]
        assert [answer.status for answer in answers].count(429) >= 1
        assert int(answers[-1].headers["retry-after"]) >= 1


async def test_headers_that_browsers_obey(servers: Cluster) -> None:
    async with dashboard(servers.name_servers) as (_, visitor):
        for path in ("/", "/api/v1/me", "/nothing"):
            headers = (await visitor.raw("GET", path)).headers
            assert "default-src 'self'" in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert "server" not in headers


async def test_half_a_cluster() -> None:
    """What is known is shown, what is missing is named, and nobody waits."""
    async with cluster(masters=2) as servers, dashboard(servers.name_servers) as (_, visitor):
        await visitor.do("create_topic", name="Orders", read_queues=2, write_queues=2)
        await visitor.do("create_group", name="billing")
        reset = {"topic": "Orders", "to": "beginning", "confirm": "billing"}
        await visitor.ask("reset", {"group": "billing"}, body=reset)
        assert (await visitor.get("topics", q="Orders"))["rows"][0]["read_queues"] == 4
        lost = servers.masters[1]
        name_of_lost = lost.live.current.identity.broker_name
        await servers.stop(lost)

        async def is_missed() -> bool:
            return bool((await visitor.get("overview"))["incomplete"])

        await eventually(is_missed, "the dashboard misses the broker")
        topics = await visitor.get("topics", q="Orders")
        assert topics["rows"][0]["read_queues"] == 4
        [gap] = topics["incomplete"]
        assert gap["server"].startswith(name_of_lost)
        assert gap["since_ms"] <= topics["as_of_ms"]
        overview = await visitor.get("overview")
        assert overview["health"] == "bad"
        assert overview["problems"][0]["code"] == "broker_silent"
        assert overview["totals"]["brokers_silent"] == 1
        for name, names in (
            ("groups", {}),
            ("cluster", {}),
            ("dead_letter_groups", {}),
            ("group", {"group": "billing"}),
            ("broker", {"broker": name_of_lost, "id": "0"}),
        ):
            answer = await visitor.ask(name, names)
            assert answer.status == 200, (name, answer.body)
            assert answer.json()["incomplete"], name


async def test_no_name_server_at_all() -> None:
    async with dashboard("127.0.0.1:1") as (_, visitor):
        overview = await visitor.get("overview")

        async def is_said() -> list[Any]:
            found: list[Any] = (await visitor.get("overview"))["problems"]
            return found

        [problem] = await eventually(is_said, "the overview says so")
        assert problem["code"] == "name_server_silent"
        assert overview["totals"]["brokers"] == 0
        assert (await visitor.get("topics"))["rows"] == []
        assert (await visitor.ask("topic", {"topic": "Orders"})).status == 503


async def test_bodies_of_4_mb_and_texts_in_any_script(servers: Cluster) -> None:
    body = bytes(range(256)) * (16 * 1024 - 64)
    async with dashboard(servers.name_servers) as (_, visitor):
        odd = {"topic": "Odd"}
        await visitor.do("create_topic", name="Odd", read_queues=1, write_queues=1)
        sent = await visitor.do(
            "send",
            odd,
            body=b64encode(body).decode(),
            encoding="base64",
            tags="已付款",
            keys=["заказ-17", "שלום"],
            properties={"π": "🙂 <b>\u202e"},
        )
        [row] = (await visitor.get("messages", topic="Odd", property="π=🙂 <b>\u202e"))["rows"]
        assert (row["body_bytes"], row["tags"]) == (len(body), "已付款")
        assert len(row["preview"]) <= 120
        assert (await visitor.get("messages", topic="Odd", tags="已付款"))["rows"] == [row]
        assert (await visitor.get("messages", topic="Odd", key="заказ-17"))["rows"] == [row]
        name = {"id": sent["message_id"]}
        message = await visitor.ask("message", name, odd)
        assert message.json()["body"]["format"] == "hex"
        assert message.json()["body"]["is_cut"]
        assert message.json()["properties"] == {"π": "🙂 <b>\u202e"}
        assert len(message.body) < 200_000
        assert (await visitor.ask("body", name, odd)).body == body


async def test_two_operators_at_once(servers: Cluster) -> None:
    """Whoever changes one thing does not undo what another changes at the same moment."""
    async with dashboard(servers.name_servers) as (_, visitor):
        shared = {"topic": "Shared"}
        for number in range(2, 7):
            await visitor.do("create_topic", name="Shared", read_queues=1, write_queues=1)
            answers = await asyncio.gather(
                visitor.ask("change_topic", shared, body={"read_queues": number}),
                visitor.ask("change_topic", shared, body={"perm": "r"}),
                visitor.ask("change_topic", shared, body={"write_queues": number}),
            )
            assert [answer.status for answer in answers] == [200] * 3
            [one] = (await visitor.get("topic", shared))["definitions"]
            assert (one["read_queues"], one["write_queues"], one["perm"]) == (number, number, "r")
        ended = await asyncio.gather(
            *(visitor.ask("delete_topic", shared, body={"confirm": "Shared"}) for _ in range(2))
        )
        assert 200 in [answer.status for answer in ended]
        assert {answer.status for answer in ended} <= {200, 404}


async def test_streams(servers: Cluster) -> None:
    """New figures and new messages come by themselves; too many streams are refused."""
    async with dashboard(servers.name_servers, streams_max=1) as (server, visitor):
        await visitor.do("create_topic", name="Tail", read_queues=1, write_queues=1)
        path = "/api/v1/events?tail_topic=Tail"
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        seen: list[bytes] = []

        async def read() -> None:
            while line := await reader.readline():
                seen.append(line.strip())

        reading = asyncio.create_task(read())
        await eventually(lambda: seen.count(b"event: snapshot") >= 3, lambda: str(seen))
        assert any(line.startswith(b"content-type: text/event-stream") for line in seen)
        # Each tab is told over what time to spread its questions.
        assert any(b'"spread_ms":20' in line for line in seen)
        assert (await visitor.ask("events")).error == "too_many_streams"
        await visitor.do("send", {"topic": "Tail"}, body="hello", keys=["k-1"])
        await eventually(lambda: b"event: message" in seen, lambda: str(seen))
        [told] = [line for line in seen if b"hello" in line]
        assert json.loads(told.removeprefix(b"data: "))["keys"] == ["k-1"]
        writer.close()
        await eventually(lambda: not len(server.desk.hub), "the stream is forgotten")
        await reading


async def test_the_tail_is_filtered(servers: Cluster) -> None:
    async with dashboard(servers.name_servers) as (server, visitor):
        await visitor.do("create_topic", name="Tailed", read_queues=1, write_queues=1)
        wanted = urlencode({"tail_topic": "Tailed", "tail_property": "a=1", "tail_text": "moon"})
        assert (
            await visitor.ask("events", query={"tail_topic": "Tailed", "tail_property": "a"})
        ).status == 400
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"GET /api/v1/events?{wanted} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        seen: list[bytes] = []

        async def read() -> None:
            while line := await reader.readline():
                seen.append(line.strip())

        reading = asyncio.create_task(read())
        await eventually(lambda: b"event: snapshot" in seen, lambda: str(seen))
        for body, a in (("sun", "1"), ("moon", "2"), ("half moon", "1")):
            await visitor.do("send", {"topic": "Tailed"}, body=body, properties={"a": a})
        await eventually(lambda: b"event: message" in seen, lambda: str(seen))
        told = [line for line in seen if line.startswith(b"data:") and b"preview" in line]
        assert [json.loads(line.removeprefix(b"data: "))["preview"] for line in told] == [
            "half moon"
        ]
        writer.close()
        await reading


async def test_a_cut_stream_does_not_hold_the_end(servers: Cluster) -> None:
    async with dashboard(servers.name_servers) as (server, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await reader.readline()
    await reader.read()
    writer.close()
