"""The rules of retries and dead letters, with our client: who sets the limit, what stays, what is made when."""

from __future__ import annotations

from dataclasses import replace

from tests.eventually import eventually

from cometmq.client import Message, Outcome, PushConsumerConfig, ReceivedMessage
from cometmq.client.aio import Producer, PullConsumer, PushConsumer
from cometmq.model.message_queue import MessageQueue
from cometmq.testing.cluster import Cluster, cluster

from .raw_client import RawClient

GROUP = "Workers"
RETRY = f"%RETRY%{GROUP}"
DEAD = f"%DLQ%{GROUP}"
SETTINGS = {"messageDelayLevel": " ".join(["1s"] * 18)}
TOPIC_NOT_EXIST = 17


class Worker:
    """A consumer that takes note, and fails as long as ``verdict`` says so."""

    def __init__(self, servers: Cluster, retries_max: int, *topics: str) -> None:
        self.taken: list[ReceivedMessage] = []
        self.verdict: Outcome | None = Outcome.later()
        config = replace(
            PushConsumerConfig(),
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
            rebalance_interval_ms=500,
            max_reconsume_times=retries_max,
        )
        self.consumer = PushConsumer(
            GROUP, listener=self._take, name_servers=servers.name_servers, config=config
        )
        for topic in topics:
            self.consumer.subscribe(topic)

    async def _take(self, message: ReceivedMessage) -> Outcome | None:
        self.taken.append(message)
        return self.verdict

    def queues(self, topic: str) -> list[MessageQueue]:
        return [queue for queue in self.consumer.queues if queue.topic == topic]


async def true_in_the_end(condition: object, what: str) -> None:
    assert callable(condition)

    await eventually(lambda: condition(), what, 30)


async def test_the_limit_of_the_consumer_that_started_last_counts_for_all() -> None:
    async with (
        cluster(settings=SETTINGS) as servers,
        RawClient(servers.broker_address) as raw,
        Producer("boss", name_servers=servers.name_servers) as producer,
    ):
        await raw.create_topic("Jobs", 2)
        patient, strict = Worker(servers, 16, "Jobs"), Worker(servers, 0, "Jobs")
        async with patient.consumer:
            async with strict.consumer:
                await true_in_the_end(
                    lambda: len(patient.queues("Jobs")) == len(strict.queues("Jobs")) == 1,
                    "a queue each",
                )
                (mine,) = patient.queues("Jobs")
                await producer.send(Message(topic="Jobs", body=b"first"), queue=mine)
                (letter,) = await raw.read_until(1, DEAD)
                assert (letter.body, letter.reconsume_times) == (b"first", 1)
                assert [message.body for message in patient.taken] == [b"first"]
            # The strict one is gone, and with it its setting.
            await true_in_the_end(
                lambda: len(patient.queues("Jobs")) == 2 and patient.queues(RETRY), "its queues"
            )
            await producer.send(Message(topic="Jobs", body=b"second"), queue=mine)
            await true_in_the_end(
                lambda: [m.reconsume_times for m in patient.taken if m.body == b"second"] == [0, 1],
                "a retry",
            )
            patient.verdict = None
        assert len(await raw.read(DEAD)) == 1


async def test_dead_letters_have_a_topic_from_the_first_one_on_and_one_for_all_topics() -> None:
    async with (
        cluster(settings=SETTINGS) as servers,
        RawClient(servers.broker_address) as raw,
        Producer("boss", name_servers=servers.name_servers) as producer,
    ):
        for topic in ("Jobs", "Tasks"):
            await raw.create_topic(topic, 2)
        worker = Worker(servers, 1, "Jobs", "Tasks")
        async with worker.consumer:
            await true_in_the_end(lambda: worker.queues(RETRY), "the retry topic")
            await producer.send(Message(topic="Jobs", body=b"easy"))
            await true_in_the_end(lambda: len(worker.taken) == 1, "a first try")
            worker.verdict = None
            await true_in_the_end(lambda: len(worker.taken) == 2, "a second try")
            # Retries alone make no topic for dead letters.
            assert (await raw.ask(351, {"topic": DEAD})).code == TOPIC_NOT_EXIST
            worker.verdict = Outcome.later()
            for topic in ("Jobs", "Tasks"):
                await producer.send(Message(topic=topic, body=b"hopeless"))
            letters = await raw.read_until(2, DEAD)
        assert {letter.properties["RETRY_TOPIC"] for letter in letters} == {"Jobs", "Tasks"}
        topics = bytes((await raw.ask(21)).body)
        assert topics.count(b'"%DLQ%') == 2, "its key and its name, once"


async def test_a_message_keeps_its_id_from_the_first_try_to_the_dead_letters_and_can_be_sent_again() -> (
    None
):
    async with (
        cluster(settings=SETTINGS) as servers,
        RawClient(servers.broker_address) as raw,
        Producer("boss", name_servers=servers.name_servers) as producer,
    ):
        await raw.create_topic("Jobs", 2)
        worker = Worker(servers, 2, "Jobs")
        async with worker.consumer:
            await true_in_the_end(lambda: worker.queues(RETRY), "the retry topic")
            sent = await producer.send(
                Message(topic="Jobs", body=b"job", tags="t", keys=["k"], properties={"p": "v"})
            )
            await raw.read_until(1, DEAD, 20)
            (letter,) = await letters_of(servers)
            tries = worker.taken
            assert [message.reconsume_times for message in tries] == [0, 1, 2]
            for message in (*tries, letter):
                assert message.message_id == sent.message_id
                assert (message.body, message.tags, message.keys) == (b"job", "t", ["k"])
                assert message.properties["p"] == "v"
            assert len({message.offset_id for message in (*tries, letter)}) == 4
            assert tries[0].offset_id == sent.offset_id
            for message in (*tries[1:], letter):
                assert message.properties["ORIGIN_MESSAGE_ID"] == sent.offset_id

            worker.verdict = None
            again = Message(
                topic=letter.properties["RETRY_TOPIC"], body=letter.body, keys=letter.keys
            )
            resent = await producer.send(again)
            await true_in_the_end(lambda: len(tries) == 4, "what was sent again")
            assert (tries[3].message_id, tries[3].reconsume_times) == (resent.message_id, 0)
            assert tries[3].keys == ["k"]
        assert len(await raw.read(DEAD)) == 1


async def letters_of(servers: Cluster) -> list[ReceivedMessage]:
    async with PullConsumer("reader", name_servers=servers.name_servers) as reader:
        (queue,) = await reader.queues(DEAD)
        return list((await reader.pull(queue, 0)).messages)
