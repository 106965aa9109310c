"""One store directory, served in turn by our broker and by RocketMQ's.

Each broker finds what the ones before it stored, message for message, adds to it, and ends: by SIGTERM or by SIGKILL
in the middle of sends. Files are small, so log, queues and index all go over several files.
"""

from __future__ import annotations

import asyncio
import enum
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from .java import MissingComponent
from .servers import ServerCommands
from .store_exchange_book import Book
from .store_exchange_visit import Visit
from .systems import OURS, ROCKETMQ_4, THEIRS, Broker, NameServer, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

EXIT_CODE_MISSING = 3
SMALL_FILES = {
    "mappedFileSizeCommitLog": 64 * 1024,
    "mappedFileSizeConsumeQueue": 20 * 50,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
    # A killed broker keeps the positions that it has written.
    "flushConsumerOffsetInterval": 500,
}


class Ending(enum.Enum):
    STOP = "stopped"
    KILL = "killed"


THEIR = "theirs"

CHAINS = {
    "theirs-stopped-ours-killed": (
        (THEIR, Ending.STOP),
        (OURS, Ending.KILL),
        (THEIR, Ending.KILL),
        (OURS, Ending.STOP),
    ),
    "theirs-killed-ours-stopped": (
        (THEIR, Ending.KILL),
        (OURS, Ending.STOP),
        (THEIR, Ending.STOP),
        (OURS, Ending.KILL),
    ),
    "ours-stopped-first": ((OURS, Ending.STOP), (THEIR, Ending.KILL), (OURS, Ending.STOP)),
    "ours-killed-first": ((OURS, Ending.KILL), (THEIR, Ending.KILL), (OURS, Ending.STOP)),
}


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ServerCommands]:
    home = tmp_path_factory.mktemp("homes")
    try:
        return {system: commands_of(system, home / system) for system in (OURS, *THEIRS)}
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)


@pytest.fixture(scope="module")
def name_server(
    commands: dict[str, ServerCommands], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NameServer]:
    with NameServer(commands[OURS], tmp_path_factory.mktemp("namesrv")).running() as running:
        yield running


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("theirs", THEIRS)
def test_store_is_handed_on(
    theirs: str,
    chain: str,
    commands: dict[str, ServerCommands],
    name_server: NameServer,
    tmp_path: Path,
) -> None:
    broker = Broker(name_server, tmp_path, "exchange", **SMALL_FILES)
    book = Book()
    visits = [(theirs if who == THEIR else who, ending) for who, ending in CHAINS[chain]]
    for number, (system, ending) in enumerate(visits):
        try:
            broker.start(commands[system])
            asyncio.run(_visit(Visit(broker, name_server.address, book, number), system, ending))
            if ending is Ending.STOP:
                broker.stop()
        finally:
            broker.kill()
    # Without this the test would not be about what it says.
    for kind in ("commitlog", "index", "consumequeue/exchange-orders/0"):
        assert len(list((broker.store / kind).iterdir())) > 1, kind
    shutil.rmtree(broker.store)


async def _visit(visit: Visit, system: str, ending: Ending) -> None:
    async with visit:
        await visit.check(is_time_exact=system != ROCKETMQ_4)
        await visit.add()
        if ending is Ending.KILL:
            await visit.positions_are_on_disk()
            await visit.kill_while_sending()
