"""The dashboard with 1,000 topics, 2,000 groups and three brokers: how fast its pages are, and what 50 tabs cost.

    python benchmarks/dashboard.py [--topics 1000] [--groups 2000] [--brokers 3] [--tabs 50] [--rounds 5]

Name server, brokers and dashboard are processes of ours, filled as in ``benchmarks/admin.py``. A page's time is that of
all API calls that it makes, one after the other, the worst of some rounds. The requests that brokers get for a page are
counted in a dashboard inside this process, with 10 and with 500 rows shown. Each tab follows events and fetches the
overview at each of them. The loss of sends compares sends while the dashboard with its tabs runs and
while it is stopped (SIGSTOP), in turns.

Writes ``results/dashboard.json``, unless there is less of anything than by default.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent)]

from benchmarks.admin import fill  # noqa: E402
from benchmarks.parts.goals import Goal, show_goals  # noqa: E402
from tests.interop.servers import cometmq_commands  # noqa: E402
from tests.interop.systems import Broker, NameServer  # noqa: E402

from cometmq.admin import Admin  # noqa: E402
from cometmq.client import Message  # noqa: E402
from cometmq.client.aio import Producer  # noqa: E402
from cometmq.client.aio.instance.client_instance import ClientInstance  # noqa: E402
from cometmq.dashboard.dashboard_config import DashboardConfig  # noqa: E402
from cometmq.dashboard.server import Dashboard  # noqa: E402
from cometmq.remoting.new_loop import new_event_loop  # noqa: E402

RESULT: Final = HERE / "results" / "dashboard.json"
TOPICS, GROUPS, BROKERS, TABS, ROUNDS = 1000, 2000, 3, 50, 5
PAGE_SECONDS_MAX: Final = 1.0
MEGABYTES_MAX: Final = 80.0
SENDS_LOST_MAX: Final = 0.03
"""What two runs of the same differ by anyway."""
SEND_SECONDS: Final = 3.0
IN_FLIGHT: Final = 64
START_SECONDS_MAX: Final = 60.0

PAGES: Final = {
    "overview": ("/overview", "/history?series=put_tps,get_tps,lag,dead_letters&minutes=180"),
    "cluster": ("/cluster",),
    "broker": ("/brokers/broker-0/0", "/brokers/broker-0/0/settings"),
    "topics": ("/topics?size={rows}",),
    "topics, by messages": ("/topics?size={rows}&sort=-messages&kind=normal",),
    "a topic": ("/topics/topic-0001", "/history?series=topic:topic-0001:tps"),
    "groups": ("/groups?size={rows}",),
    "groups, by lag": ("/groups?size={rows}&sort=-lag&state=lagging",),
    "a group": ("/groups/group-0001", "/history?series=group:group-0001:lag"),
    "messages": ("/messages?topic=topic-0001&size=32",),
    "dead letters": ("/dead-letters",),
    "dead letters of a group": ("/dead-letters/group-0001",),
    "waiting": ("/waiting", "/transactions"),
    "alerts": ("/alerts",),
    "accounts": ("/accounts",),
    "search": ("/search?q=0001",),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--topics", type=int, default=TOPICS)
    parser.add_argument("--groups", type=int, default=GROUPS)
    parser.add_argument("--brokers", type=int, default=BROKERS)
    parser.add_argument("--tabs", type=int, default=TABS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--browse", type=int, help=argparse.SUPPRESS)
    sizes = parser.parse_args()
    if sizes.browse:
        asyncio.run(browse(sizes.browse, sizes.tabs))
        return 0
    with (
        tempfile.TemporaryDirectory(prefix="cometmq-dashboard-") as made,
        asyncio.Runner(loop_factory=new_event_loop) as runner,
    ):
        figures = runner.run(measure(Path(made), sizes))
    for name, seconds in figures["seconds"].items():
        few, many = figures["requests"].get(name, ("", ""))
        print(
            f"{name:28} {seconds * 1000:7.0f} ms   {few} requests to servers, {many} with 500 rows"
        )
    show_goals(figures["goals"])
    given = (sizes.topics, sizes.groups, sizes.brokers, sizes.tabs, sizes.rounds)
    least = (TOPICS, GROUPS, BROKERS, TABS, ROUNDS)
    if all(one >= other for one, other in zip(given, least, strict=True)):
        RESULT.write_text(json.dumps(figures, indent=1) + "\n")
        print(f"written: {RESULT.relative_to(HERE.parent)}", file=sys.stderr)
    return 0


async def measure(directory: Path, sizes: argparse.Namespace) -> dict[str, Any]:
    commands = cometmq_commands()
    with ExitStack() as stack:
        name_server = stack.enter_context(NameServer(commands, directory / "namesrv").running())
        for number in range(sizes.brokers):
            broker = Broker([name_server], directory / f"broker-{number}", f"broker-{number}")
            stack.callback(broker.kill)
            broker.start(commands)
        async with Admin(name_server.address, timeout=30) as admin:
            await fill(admin, sizes)
        process, port, start_seconds = stack.enter_context(
            dashboard(name_server.address, directory)
        )
        await asyncio.to_thread(wait_until_filled, port, sizes.groups)
        seconds = {
            page: await asyncio.to_thread(page_seconds, port, addresses, sizes.rounds)
            for page, addresses in PAGES.items()
        }
        with browser(port, sizes.tabs):
            rates = await send_rates(name_server.address, process, sizes.rounds)
            megabytes = resident_megabytes(process.pid)
        requests = await count_requests(name_server.address, sizes.groups)
    lost = 1 - statistics.median(rates["running"]) / statistics.median(rates["stopped"])
    return {
        "sizes": {key: value for key, value in vars(sizes).items() if key != "browse"},
        "start_seconds": start_seconds,
        "seconds": seconds,
        "requests": requests,
        "megabytes": megabytes,
        "rates": rates,
        "sends_lost": lost,
        "goals": goals(seconds, requests, megabytes, lost, sizes.tabs),
    }


def goals(
    seconds: dict[str, float],
    requests: dict[str, tuple[int, int]],
    megabytes: float,
    lost: float,
    tabs: int,
) -> list[Goal]:
    slowest = max(seconds, key=lambda page: seconds[page])
    growing = [page for page, (few, many) in requests.items() if many > few]
    return [
        Goal(
            what=f"slowest page of the dashboard ({slowest})",
            goal=f"below {PAGE_SECONDS_MAX:g} s",
            measured=f"{seconds[slowest]:.2f} s",
            met=seconds[slowest] < PAGE_SECONDS_MAX,
        ),
        Goal(
            what="pages that ask servers more the more rows they show",
            goal="none",
            measured=", ".join(growing) or "none",
            met=not growing,
        ),
        Goal(
            what=f"memory of the dashboard with {tabs} tabs",
            goal=f"below {MEGABYTES_MAX:g} MB",
            measured=f"{megabytes:.0f} MB",
            met=megabytes < MEGABYTES_MAX,
        ),
        Goal(
            what=f"sends lost to a dashboard with {tabs} tabs",
            goal=f"below {SENDS_LOST_MAX:.0%}",
            measured=f"{lost:.1%}",
            met=lost < SENDS_LOST_MAX,
        ),
    ]


@contextmanager
def dashboard(
    name_server: str, directory: Path
) -> Iterator[tuple[subprocess.Popen[str], int, float]]:
    """A dashboard's process, its port, and the seconds until it answered."""
    began = time.monotonic()
    command = [
        *(sys.executable, "-m", "cometmq.cli", "dashboard", "-n", name_server, "--port", "0"),
        *("--data", str(directory / "dashboard"), "--log-level", "ERROR"),
        *("--set", "requestsPerSecond=100000"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"http://127.0.0.1:(\d+)/", line):
                get(int(found[1]), "/health")
                yield process, int(found[1]), time.monotonic() - began
                return
        raise RuntimeError("the dashboard did not start")
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def get(port: int, address: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", f"/api/v1{address}")
        reply = connection.getresponse()
        body = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"{address} was answered with {reply.status}: {body[:300]!r}")
        return json.loads(body)
    finally:
        connection.close()


def wait_until_filled(port: int, groups: int) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while get(port, "/overview")["totals"]["groups"] < groups:
        if time.monotonic() > deadline:
            raise RuntimeError("the dashboard does not know all groups")
        time.sleep(0.1)


def page_seconds(port: int, addresses: tuple[str, ...], rounds: int) -> float:
    """The worst of some rounds."""
    took = []
    for _ in range(rounds):
        began = time.monotonic()
        for address in addresses:
            get(port, address.format(rows=50))
        took.append(time.monotonic() - began)
    return max(took)


@contextmanager
def browser(port: int, tabs: int) -> Iterator[None]:
    command = [sys.executable, __file__, "--browse", str(port), "--tabs", str(tabs)]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


async def browse(port: int, count: int) -> None:
    """Tabs, in a process of their own, until it is killed."""
    await asyncio.gather(*(tab(port) for _ in range(count)))


async def tab(port: int) -> None:
    """Follow events for ever; at each snapshot, fetch the overview, as the page does."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    try:
        while line := await reader.readline():
            if line.startswith(b"data:") and (found := re.search(rb'"spread_ms":(\d+)', line)):
                await asyncio.sleep(random.random() * int(found[1]) / 1000)
                await fetch(port, "/api/v1/overview")
    finally:
        writer.close()


async def fetch(port: int, address: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(
            f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
        )
        await reader.read()
    finally:
        writer.close()


async def send_rates(
    name_servers: str, process: subprocess.Popen[str], rounds: int
) -> dict[str, list[float]]:
    """Sends per second to one topic, with the dashboard running and stopped in turns."""
    rates: dict[str, list[float]] = {"running": [], "stopped": []}
    async with Producer("bench", name_servers=name_servers) as producer:
        await sends(producer)
        for _ in range(rounds):
            for state, number in (("running", signal.SIGCONT), ("stopped", signal.SIGSTOP)):
                process.send_signal(number)
                rates[state].append(await sends(producer))
        process.send_signal(signal.SIGCONT)
    return rates


async def sends(producer: Producer) -> float:
    count = 0
    end = time.monotonic() + SEND_SECONDS

    async def one() -> None:
        nonlocal count
        while time.monotonic() < end:
            await producer.send(Message(topic="topic-0000", body=b"x" * 1024))
            count += 1

    await asyncio.gather(*(one() for _ in range(IN_FLIGHT)))
    return count / SEND_SECONDS


def resident_megabytes(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS")


async def count_requests(name_servers: str, groups: int) -> dict[str, tuple[int, int]]:
    """Requests to servers for each page with 10 and with 500 rows, without those of the rounds."""
    asked = 0
    call = ClientInstance.call

    async def counted(self: ClientInstance, *given: Any, **named: Any) -> Any:
        nonlocal asked
        asked += 1
        return await call(self, *given, **named)

    config = DashboardConfig(
        name_servers=name_servers,
        listen_port=0,
        sample_interval_ms=600_000,
        requests_per_second=10**6,
    )
    server = Dashboard(config)
    await server.start()
    ClientInstance.call = counted  # type: ignore[method-assign]
    try:
        await asyncio.to_thread(wait_until_filled, server.port, groups)
        before = -1
        while before != asked:  # the first round's last questions
            before = asked
            await asyncio.sleep(0.5)
        found = {}
        for page, addresses in PAGES.items():
            counts = []
            for rows in (10, 500):
                before = asked
                for address in addresses:
                    await asyncio.to_thread(get, server.port, address.format(rows=rows))
                counts.append(asked - before)
            found[page] = (counts[0], counts[1])
        return found
    finally:
        ClientInstance.call = call  # type: ignore[method-assign]
        await server.stop()


if __name__ == "__main__":
    sys.exit(main())
