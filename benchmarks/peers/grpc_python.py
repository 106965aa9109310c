"""The cases of clients.py with RocketMQ's own Python client (gRPC): ENDPOINT SECONDS ROUNDS MESSAGES, a JSON line each.

Runs in an environment of its own that has rocketmq-python-client; nothing of CometMQ is imported. It has no batches,
and instead of pulling it receives messages and acknowledges each.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
)

SEND_TOPIC = "ClientSend"
PUSH_TOPIC = "ClientConsume"
PULL_TOPIC = "ClientPull"
LATENCY_TOPIC = "ClientConsumeLatency"
BODY = b"x" * 1024
IN_FLIGHT = 64
WAIT_SECONDS_MAX = 60.0
INVISIBLE_SECONDS = 60
WARM, LATENCY_MESSAGES = 20, 300


def main(endpoint: str, seconds: float, rounds: int, messages: int) -> None:
    config = ClientConfiguration(endpoint, Credentials(), request_timeout=10)
    producer = Producer(config, (SEND_TOPIC, LATENCY_TOPIC))
    producer.startup()
    best("send-64", rounds, lambda: send_in_flight(producer, seconds))
    best("send-1", rounds, lambda: send(producer, seconds))
    push(config, seconds, messages)
    receive(config, seconds)
    latency(config, producer)
    producer.shutdown()


def message(topic: str, key: str = "") -> Message:
    made = Message()
    made.topic = topic
    made.body = BODY
    made.tag = "t"
    if key:
        made.keys = key
    return made


def send_in_flight(producer: Producer, seconds: float) -> int:
    free = threading.Semaphore(IN_FLIGHT)
    count = 0
    futures = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        free.acquire()
        future = producer.send_async(message(SEND_TOPIC))
        future.add_done_callback(lambda _: free.release())
        futures.append(future)
    for future in futures:
        future.result(WAIT_SECONDS_MAX)
        count += 1
    return count


def send(producer: Producer, seconds: float) -> int:
    count = 0
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        producer.send(message(SEND_TOPIC))
        count += 1
    return count


class Tally(MessageListener):
    """Ends when so many messages came, or so many seconds after the first."""

    def __init__(self, messages: int, seconds: float) -> None:
        self._messages = messages
        self._seconds = seconds
        self._lock = threading.Lock()
        self.count = 0
        self.first_at = self.cpu_at = 0.0
        self.ended = threading.Event()

    def consume(self, message: Message) -> ConsumeResult:
        with self._lock:
            if not self.count:
                self.first_at, self.cpu_at = time.perf_counter(), time.process_time()
            self.count += 1
            if self.count >= self._messages or time.perf_counter() - self.first_at >= self._seconds:
                self.ended.set()
        return ConsumeResult.SUCCESS


def push(config: ClientConfiguration, seconds: float, messages: int) -> None:
    tally = Tally(messages, 2 * seconds)
    consumer = PushConsumer(config, "grpc-push", tally, {PUSH_TOPIC: FilterExpression()})
    consumer.startup()
    if not tally.ended.wait(WAIT_SECONDS_MAX):
        raise RuntimeError(f"only {tally.count} messages came")
    elapsed = time.perf_counter() - tally.first_at
    tell("push", tally.count / elapsed, (time.process_time() - tally.cpu_at) / tally.count * 1e6)
    consumer.shutdown()


def receive(config: ClientConfiguration, seconds: float) -> None:
    consumer = SimpleConsumer(
        config, "grpc-simple", {PULL_TOPIC: FilterExpression()}, await_duration=5
    )
    consumer.startup()
    deadline = time.perf_counter() + WAIT_SECONDS_MAX
    while not consume(consumer):
        if time.perf_counter() > deadline:
            raise RuntimeError("no message came")
    count = 0
    started, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() < started + 2 * seconds:
        count += consume(consumer)
    elapsed = time.perf_counter() - started
    tell("lite-pull", count / elapsed, (time.process_time() - cpu) / count * 1e6)
    consumer.shutdown()


def consume(consumer: SimpleConsumer) -> int:
    try:
        received = consumer.receive(32, INVISIBLE_SECONDS)
    except Exception as error:  # noqa: BLE001 - the first one may come before the proxy knows the client
        print(f"receive failed: {error}", file=sys.stderr)
        time.sleep(0.2)
        return 0
    for each in received:
        consumer.ack(each)
    return len(received)


def latency(config: ClientConfiguration, producer: Producer) -> None:
    sent: dict[str, float] = {}
    times: list[float] = []
    is_served = threading.Event()

    class Note(MessageListener):
        def consume(self, message: Message) -> ConsumeResult:
            now = time.perf_counter()
            is_served.set()
            times.extend(now - sent[key] for key in message.keys if key in sent)
            return ConsumeResult.SUCCESS

    consumer = PushConsumer(config, "grpc-latency", Note(), {LATENCY_TOPIC: FilterExpression()})
    consumer.startup()
    deadline = time.perf_counter() + WAIT_SECONDS_MAX
    while not is_served.wait(0.5):
        producer.send(message(LATENCY_TOPIC, "start"))
        if time.perf_counter() > deadline:
            raise RuntimeError("no message came")
    for number in range(-WARM, LATENCY_MESSAGES):
        key = f"grpc-{number}"
        if number >= 0:
            sent[key] = time.perf_counter()
        producer.send(message(LATENCY_TOPIC, key))
        time.sleep(0.01)
    while len(times) < LATENCY_MESSAGES:
        if time.perf_counter() > deadline:
            raise RuntimeError(f"only {len(times)} messages came")
        time.sleep(0.01)
    times.sort()
    p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
    print(json.dumps({"case": "latency", "p50_ms": p50 * 1000, "p99_ms": p99 * 1000}), flush=True)
    consumer.shutdown()


def best(name: str, rounds: int, work: Callable[[], int]) -> None:
    found = (0.0, 0.0)
    for _ in range(rounds):
        cpu, started = time.process_time(), time.perf_counter()
        count = work()
        elapsed = time.perf_counter() - started
        found = max(found, (count / elapsed, (time.process_time() - cpu) / count * 1e6))
    tell(name, *found)


def tell(name: str, rate: float, cpu_us: float) -> None:
    print(json.dumps({"case": name, "rate": rate, "cpu_us": cpu_us}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
