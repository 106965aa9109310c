"""The pytest fixtures, in other people's projects: a pytest of its own runs their tests."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PLAIN = """
from cometmq.client import Message
from cometmq.client.sync import LitePullConsumer, Producer
from cometmq.client import LitePullConfig

def send_and_read(cluster):
    topic = cluster.create_topic("Orders", queues=1)
    with Producer(cluster.group("p"), name_servers=cluster.name_servers) as producer:
        producer.send(Message(topic=topic, body=b"hello"))
    config = LitePullConfig(consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    with LitePullConsumer(
        cluster.group(), name_servers=cluster.name_servers, config=config
    ) as consumer:
        consumer.subscribe(topic)
        assert [message.body for message in consumer.poll(20)] == [b"hello"]
    return topic, cluster.name_servers

seen = []

def test_one(cometmq_cluster):
    seen.append(send_and_read(cometmq_cluster))

def test_two_has_names_and_messages_of_its_own_on_the_same_servers(cometmq_cluster):
    seen.append(send_and_read(cometmq_cluster))
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] == seen[1][1]
    assert cometmq_cluster.topic("Orders") == seen[1][0]
"""

ASYNCIO = """
import asyncio
from cometmq.client import Message, SendStatus
from cometmq.client.aio import Producer

def test_in_an_event_loop(cometmq_cluster):
    async def main():
        topic = cometmq_cluster.create_topic(queues=3)
        async with Producer(cometmq_cluster.group(), name_servers=cometmq_cluster.name_servers) as producer:
            assert len(await producer.fetch_publish_queues(topic)) == 3
            sent = await producer.send(Message(topic=cometmq_cluster.topic("new"), body=b"x"))
            assert sent.status is SendStatus.SEND_OK
    asyncio.run(main())
"""

SETTINGS = """
import pytest

@pytest.fixture(scope="session")
def cometmq_settings():
    return {"brokerName": "of-the-project"}

def test_the_broker_has_the_setting(cometmq_cluster):
    from cometmq.client.sync import Producer
    with Producer(cometmq_cluster.group(), name_servers=cometmq_cluster.name_servers) as producer:
        [queue] = producer.fetch_publish_queues(cometmq_cluster.create_topic(queues=1))
    assert queue.broker_name == "of-the-project"
"""

THREAD_LEFT = """
import threading, time

def test_a_thread_of_the_tests_is_not_the_servers_fault(cometmq_cluster):
    threading.Thread(target=time.sleep, args=(1.0,), daemon=True).start()
    assert cometmq_cluster.broker_address
"""

UNUSED = """
import sys

def test_no_server_and_no_client_is_imported():
    packages = {".".join(name.split(".")[:2]) for name in sys.modules if name.startswith("cometmq")}
    assert packages == {"cometmq", "cometmq.base", "cometmq.testing"}
"""


@pytest.mark.parametrize(
    ("text", "count"), [(PLAIN, 2), (ASYNCIO, 1), (SETTINGS, 1), (THREAD_LEFT, 1), (UNUSED, 1)]
)
def test_a_project_uses_the_fixtures(pytester: pytest.Pytester, text: str, count: int) -> None:
    pytester.makepyfile(text)
    result = pytester.runpytest_subprocess("-W", "error", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=count)


def test_the_fixtures_are_listed_with_what_they_are(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--fixtures", "-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["cometmq_cluster -- *", "    A running name server and broker*"])
