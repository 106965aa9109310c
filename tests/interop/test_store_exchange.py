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
from .store_exchange_visit import ENTRIES_PER_FILE, INDEX_ENTRIES_PER_FILE, Visit
from .systems import OURS, ROCKETMQ_4, THEIRS, Broker, NameServer, commands_of

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

EXIT_CODE_MISSING = 3
SMALL_FILES = {
    "mappedFileSizeCommitLog": 64 * 1024,
    "mappedFileSizeConsumeQueue": 20 * ENTRIES_PER_FILE,
    "maxHashSlotNum": 100,
    "maxIndexNum": INDEX_ENTRIES_PER_FILE,
    # A killed broker keeps the positions that it has written.
    "flushConsumerOffsetInterval": 500,
}


class Ending(enum.Enum):
    STOP = "SIGTERM"
    KILL = "SIGKILL, in the middle of sends"
    MOVE_AND_KILL = "the same, after the positions of groups had changed and were on disk"


THEIR = "theirs"
STOP, KILL, MOVE_AND_KILL = Ending

# RocketMQ writes positions for the first time ten seconds after its start, so few chains wait for that.
CHAINS = {
    "theirs-stopped-ours-killed": (
        (THEIR, STOP),
        (OURS, MOVE_AND_KILL),
        (THEIR, KILL),
        (OURS, STOP),
    ),
    "theirs-killed-ours-stopped": (
        (THEIR, MOVE_AND_KILL),
        (OURS, STOP),
        (THEIR, STOP),
        (OURS, KILL),
    ),
    "ours-stopped-first": ((OURS, STOP), (THEIR, KILL), (OURS, STOP)),
    "ours-killed-first": ((OURS, MOVE_AND_KILL), (THEIR, KILL), (OURS, STOP)),
}


@pytest.fixture(scope="module")
def makes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ServerCommands]:
    home = tmp_path_factory.mktemp("homes")
    try:
        return {system: commands_of(system, home / system) for system in (OURS, *THEIRS)}
    except MissingComponent as error:
        pytest.exit(f"interop tests cannot run: {error}", returncode=EXIT_CODE_MISSING)


@pytest.fixture(scope="module")
def name_server(
    makes: dict[str, ServerCommands], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NameServer]:
    with NameServer(makes[OURS], tmp_path_factory.mktemp("namesrv")).running() as running:
        yield running


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("theirs", THEIRS)
def test_store_is_handed_on(
    theirs: str,
    chain: str,
    makes: dict[str, ServerCommands],
    name_server: NameServer,
    tmp_path: Path,
) -> None:
    broker = Broker([name_server], tmp_path, "exchange", **SMALL_FILES)
    book = Book()
    before = STOP
    for number, (who, ending) in enumerate(CHAINS[chain]):
        system = theirs if who == THEIR else who
        visit = Visit(broker, name_server.address, book, number)
        try:
            broker.start(makes[system])
            is_index_kept = system == OURS or before is STOP
            asyncio.run(_make(visit, system, ending, is_index_kept=is_index_kept))
            if ending is STOP:
                broker.stop()
        finally:
            broker.kill()
        before = ending
    # Without this the test would not be about what it says.
    for kind in ("commitlog", "index", "consumequeue/exchange-orders/0"):
        assert len(list((broker.store / kind).iterdir())) > 1, kind
    shutil.rmtree(broker.store)


async def _make(visit: Visit, system: str, ending: Ending, *, is_index_kept: bool) -> None:
    async with visit:
        await visit.check(is_time_exact=system != ROCKETMQ_4, is_index_kept=is_index_kept)
        await visit.add(moves_groups=ending is not KILL)
        if ending is MOVE_AND_KILL:
            await visit.positions_are_on_disk()
        if ending is not STOP:
            await visit.kill_while_sending()
