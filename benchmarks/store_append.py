"""What a put and a get cost: 1 KB bodies with a unique key, one more key and a tag.

python benchmarks/store_append.py [--messages N] [--queues N] [--directory DIR] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import shutil
import tempfile
import time

from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.model.address import pack_host
from cometmq.model.java_hash import java_hash
from cometmq.store.log.new_messages import NewMessage
from cometmq.store.message_store import MessageStore
from cometmq.store.store_config import FlushConfig, StoreConfig

HOST = pack_host("127.0.0.1", 10911)
BODY = b"x" * 1024
TAGS_CODE = java_hash("TagA")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--queues", type=int, default=4)
    parser.add_argument("--directory", default=None)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="store-append-", dir=arguments.directory)
    profiler = cProfile.Profile() if arguments.profile else None
    try:
        if profiler is not None:
            profiler.enable()
        run(directory, arguments.messages, arguments.queues)
        if profiler is not None:
            profiler.disable()
            pstats.Stats(profiler).sort_stats("tottime").print_stats(18)
    finally:
        shutil.rmtree(directory)


def run(directory: str, message_count: int, queue_count: int) -> None:
    store = MessageStore(
        StoreConfig(root=directory, flush=FlushConfig()),
        store_host=HOST,
        files=SystemFiles(),
        clock=SystemClock(),
    )
    store.load()
    store.start()
    messages = [make(number, queue_count) for number in range(message_count)]
    started = time.perf_counter()
    put = store.put
    for message in messages:
        put(message)
    report("put", message_count, time.perf_counter() - started)
    batches = [messages[at : at + 32] for at in range(0, min(message_count, 32_000), 32)]
    for batch in batches:
        for message in batch:
            message.queue_id = queue_count
    started = time.perf_counter()
    for batch in batches:
        store.put_all(batch)
    report("put_all of 32", len(batches), time.perf_counter() - started)
    measure_get(store, "get of 32 adjacent", queue_count)
    measure_get(store, "get of 32 scattered", 0)
    started = time.perf_counter()
    store.close()
    print(f"{'close':24}{(time.perf_counter() - started) * 1000:10.1f} ms")
    started = time.perf_counter()
    store = MessageStore(
        StoreConfig(root=directory), store_host=HOST, files=SystemFiles(), clock=SystemClock()
    )
    store.load()
    print(f"{'load after clean stop':24}{(time.perf_counter() - started) * 1000:10.1f} ms")
    store.close()


def make(number: int, queue_count: int) -> NewMessage:
    unique_key = f"7F000001{number:024X}"
    key = f"order-{number}"
    properties = f"UNIQ_KEY\x01{unique_key}\x02KEYS\x01{key}\x02TAGS\x01TagA\x02WAIT\x01true\x02"
    return NewMessage(
        topic="BenchmarkTest",
        queue_id=number % queue_count,
        body=BODY,
        properties=properties.encode(),
        tags_code=TAGS_CODE,
        keys=[unique_key, key],
        born_timestamp=1_700_000_000_000,
        born_host=HOST,
    )


def measure_get(store: MessageStore, name: str, queue_id: int) -> None:
    offset = count = 0
    end = store.max_offset("BenchmarkTest", queue_id) - 32
    started = time.perf_counter()
    while offset < end:
        result = store.get("BenchmarkTest", queue_id, offset, 32)
        assert result.count == 32
        offset = result.next_offset
        count += 1
    report(name, max(count, 1), time.perf_counter() - started)


def report(name: str, count: int, seconds: float) -> None:
    print(f"{name:24}{seconds / count * 1e6:10.2f} us   {count / seconds:12,.0f} per second")


if __name__ == "__main__":
    main()
