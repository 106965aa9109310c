"""How soon consumers go on at the slave when their master is killed under load, and whether anything is lost.

    python benchmarks/fail_over.py [--kills 50] [--rate 1000] [--directory DIR]

Real processes: a name server, a SYNC_MASTER with ASYNC_FLUSH, and its slave. In this process a producer sends so many
1 KB messages a second, and a push consumer takes each message a second after it was sent, so that it is always a
thousand messages behind. The master is killed with SIGKILL. The time runs from the kill to the first message in the
listener that was pulled from the slave; then the master is started again, and killed again when the consumer reads from
it and sends are answered with SEND_OK.

Acknowledged is what was answered with SEND_OK. After each kill the slave's log must reach behind all of it, and in the
end all of it must have been delivered; else the exit code is 1. Goal: nothing lost, and never more than 5 s.

Writes ``results/fail_over.json``, unless there are fewer kills than by default: that is for a first look.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

from benchmarks.compare.stolen import processor_times  # noqa: E402
from benchmarks.parts.sends import SENDERS, Sends, number_of, sending  # noqa: E402
from benchmarks.parts.waiting import WAIT_SECONDS_MAX, until  # noqa: E402
from benchmarks.processes.replica_pair import Progress, make_topic, replica_pair  # noqa: E402
from tests.interop.servers import ServerCommands  # noqa: E402
from tests.interop.systems import Broker  # noqa: E402

from cometmq.client import PushConsumerConfig, ReceivedMessage  # noqa: E402
from cometmq.client.aio import Producer, PushConsumer  # noqa: E402
from cometmq.client.aio.pull.pull_call import PullCalls  # noqa: E402
from cometmq.client.core.broker_order import Place  # noqa: E402
from cometmq.model.message_queue import MessageQueue  # noqa: E402
from cometmq.protocol.codes import ResponseCode  # noqa: E402
from cometmq.protocol.command import Command  # noqa: E402
from cometmq.remoting.new_loop import new_event_loop  # noqa: E402

RESULT: Final = HERE / "results" / "fail_over.json"
GOAL_SECONDS: Final = 5.0
KILLS: Final = 50
TOPIC: Final = "FailOver"
QUEUES: Final = 4
BEHIND_SECONDS: Final = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--rate", type=int, default=1000, help="messages a second")
    parser.add_argument("--directory", type=Path, help="where the stores go while it runs")
    parser.add_argument("--verbose", action="store_true", help="show what the clients log")
    arguments = parser.parse_args()
    # Every kill breaks connections, which is what is wanted here.
    logging.basicConfig(level=logging.INFO if arguments.verbose else logging.CRITICAL)
    with (
        tempfile.TemporaryDirectory(prefix="cometmq-fail-over-", dir=arguments.directory) as made,
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        figures = runner.run(measure(Path(made), arguments.kills, arguments.rate))
    show(figures)
    if arguments.kills >= KILLS:
        RESULT.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"written: {RESULT.relative_to(HERE.parent)}", file=sys.stderr)
    return 1 if figures["lost"] or figures["not_at_slave"] else 0


async def measure(directory: Path, kills: int, rate: int) -> dict[str, Any]:
    times = processor_times()
    settings = {"flushDiskType": "ASYNC_FLUSH", "mappedFileSizeCommitLog": 64 << 20}
    with replica_pair(directory, master_role="SYNC_MASTER", **settings) as pair:
        master, slave, commands = pair.master, pair.slave, pair.commands
        name_servers = pair.name_server.address
        master.start(commands)
        make_topic(master, TOPIC, QUEUES)
        slave.start(commands)
        book = Book(master.address, slave.address)
        watch_pulls(book)
        config = PushConsumerConfig(
            # Few wait in this process: what is delivered after a kill has to come from the slave.
            pull_threshold_for_queue=16,
            pull_batch_size=8,
            consume_thread_max=SENDERS,
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        )
        async with (
            Producer("fail-over", name_servers=name_servers) as producer,
            PushConsumer(
                "fail-over", listener=book.take, name_servers=name_servers, config=config
            ) as consumer,
        ):
            consumer.subscribe(TOPIC)
            async with sending(producer, TOPIC, book, rate):
                seconds = await kill_again_and_again(master, slave, book, kills, commands)
            await until(lambda: not book.missing, "everything delivered", is_needed=False)
    return {
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
        "kills": kills,
        "rate": rate,
        "statuses": dict(book.statuses),
        "acknowledged": len(book.acknowledged),
        "delivered": len(book.delivered),
        "delivered_twice": book.repeated,
        "not_at_slave": book.not_at_slave,
        "lost": len(book.missing),
        "seconds": [round(one, 3) for one in seconds],
        "median_seconds": round(statistics.median(seconds), 3),
        "worst_seconds": round(max(seconds), 3),
        "goal_seconds": GOAL_SECONDS,
        "met": max(seconds) <= GOAL_SECONDS and not book.missing and not book.not_at_slave,
        "stolen_share": round(processor_times().stolen_share_since(times), 4),
    }


def show(figures: dict[str, Any]) -> None:
    statuses = ", ".join(f"{name} {count:,}" for name, count in figures["statuses"].items())
    print(f"{figures['kills']} kills of a SYNC_MASTER at {figures['rate']:,} messages/s")
    print(f"  answers                               {statuses}")
    print(f"  acknowledged                          {figures['acknowledged']:,}")
    print(f"  of these not at the slave at a kill   {figures['not_at_slave']}")
    print(f"  of these never delivered              {figures['lost']}")
    print(f"  delivered more than once              {figures['delivered_twice']:,}")
    print(
        f"  kill to first message of the slave    median {figures['median_seconds']:.2f} s, "
        f"worst {figures['worst_seconds']:.2f} s"
    )
    print(f"  taken by the machine's host           {figures['stolen_share']:.0%}")
    print(
        f"goal: nothing lost, at most {GOAL_SECONDS:g} s: {'met' if figures['met'] else 'MISSED'}"
    )


class Book(Sends):
    """What was sent, what was delivered, and who gave it."""

    def __init__(self, master: str, slave: str) -> None:
        super().__init__()
        self.delivered: set[int] = set()
        self.repeated = 0
        self.not_at_slave = 0
        self.slave_at = 0.0
        """When a message of the slave came first since the last kill."""
        self._master = master
        self._slave = slave
        # Of each queue: who answered last, and what the slave gave since the last kill.
        self._readers: dict[int, str] = {}
        self._from_slave: set[tuple[int, int]] = set()

    @property
    def missing(self) -> set[int]:
        return self.acknowledged.keys() - self.delivered

    @property
    def is_ready(self) -> bool:
        """Whether all is as it was before the last kill."""
        return (
            self.ok_in_a_row >= 2 * SENDERS
            and [*self._readers.values()].count(self._master) == QUEUES
            and len(self.missing) > SENDERS
        )

    def killed(self, slave_end: int) -> None:
        """The master is dead; the slave's log ends there."""
        self.not_at_slave += sum(place >= slave_end for place in self.acknowledged.values())
        self.ok_in_a_row = 0

    def look_out(self) -> None:
        """A kill is about to come."""
        self.slave_at = 0.0
        self._from_slave.clear()
        self._readers.clear()

    def pulled(self, queue_id: int, start: int, stop: int, address: str) -> None:
        self._readers[queue_id] = address
        if address == self._slave:
            self._from_slave.update((queue_id, offset) for offset in range(start, stop))

    async def take(self, message: ReceivedMessage) -> None:
        """The listener."""
        age = time.time() - message.born_timestamp / 1000
        if age < BEHIND_SECONDS:
            await asyncio.sleep(BEHIND_SECONDS - age)
        number = number_of(message.body)
        self.repeated += number in self.delivered
        self.delivered.add(number)
        if not self.slave_at and (message.queue_id, message.queue_offset) in self._from_slave:
            self.slave_at = time.perf_counter()


def watch_pulls(book: Book) -> None:
    """Messages do not say which broker they were pulled from."""
    ask = PullCalls._ask

    async def asked(self: PullCalls, queue: MessageQueue, *arguments: Any) -> tuple[Command, Place]:
        reply, place = await ask(self, queue, *arguments)
        if reply.code == ResponseCode.SUCCESS and queue.topic == TOPIC:
            start, stop = arguments[1].queue_offset, int((reply.ext or {})["nextBeginOffset"])
            book.pulled(queue.queue_id, start, stop, place.address)
        return reply, place

    PullCalls._ask = asked  # type: ignore[method-assign]


async def kill_again_and_again(
    master: Broker, slave: Broker, book: Book, kills: int, commands: ServerCommands
) -> list[float]:
    seconds: list[float] = []
    for number in range(kills):
        await until(lambda: book.is_ready, "master, slave and clients ready")
        await asyncio.sleep(random.uniform(0.0, 1.0))
        book.look_out()
        begin = time.perf_counter()
        await asyncio.to_thread(master.kill)
        end = (await asyncio.to_thread(Progress.of, slave)).log_end
        book.killed(end)
        await until(lambda: book.slave_at > 0, "a message from the slave", is_needed=False)
        seconds.append(book.slave_at - begin if book.slave_at else WAIT_SECONDS_MAX)
        print(
            f"kill {number + 1:3}: {seconds[-1]:6.3f} s, {len(book.acknowledged):,} acknowledged, "
            f"{len(book.missing):,} of them not delivered yet",
            flush=True,
        )
        await asyncio.to_thread(master.start, commands)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
