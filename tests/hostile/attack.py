"""Sends the frames of a seed to a server over several connections, as fast as it takes them.

python -m tests.hostile.attack --port 10911 --seed 7 [--first 0] [--frames 1000] [--seconds 5]

Prints what was sent, as JSON. With ``--first`` and ``--frames`` any part of a longer run is sent again; ``--show``
prints the frames instead of sending them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import sys
import time
from collections import Counter
from random import Random
from typing import Final

from tests.hostile.mutations import Mutations

CONNECTIONS: Final = 16
BATCH_MAX: Final = 32
CONNECTION_FRAMES_MAX: Final = 400
"""A connection is given up after so many frames, so that the parser's state is fresh again and again."""
DRAIN_SECONDS: Final = 5.0
GONE_SECONDS: Final = 20.0
"""A server that cannot be reached for so long has crashed."""


class Attack:
    def __init__(
        self, port: int, seed: int, first: int, frames: int, seconds: float = math.inf
    ) -> None:
        self._port = port
        self._deadline = time.monotonic() + seconds
        self._mutations = Mutations(seed)
        self._next = first
        self._end = first + frames
        self.sent = 0
        self.connections = 0
        self.received_bytes = 0
        self.kinds: Counter[str] = Counter()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(CONNECTIONS):
                group.create_task(self._peer())

    async def _peer(self) -> None:
        while self._next < self._end and time.monotonic() < self._deadline:
            reader, writer = await self._connect()
            self.connections += 1
            reading = asyncio.create_task(self._read(reader))
            try:
                await self._write(writer, reading)
            except (OSError, TimeoutError):
                pass
            finally:
                reading.cancel()
                writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        deadline = asyncio.get_running_loop().time() + GONE_SECONDS
        while True:
            try:
                return await asyncio.open_connection("127.0.0.1", self._port)
            except OSError as error:
                if asyncio.get_running_loop().time() > deadline:
                    raise SystemExit(f"no server any more at frame {self._next}: {error}") from None
                await asyncio.sleep(0.1)

    async def _write(self, writer: asyncio.StreamWriter, reading: asyncio.Task[None]) -> None:
        """Until the server has enough, or this connection had its share."""
        for _ in range(CONNECTION_FRAMES_MAX // BATCH_MAX):
            batch: list[bytes] = []
            size = Random(self._next).randint(1, BATCH_MAX)
            ends = False
            while len(batch) < size and self._next < self._end and not ends:
                frame = self._mutations.frame(self._next)
                self._next += 1
                self.sent += 1
                self.kinds[frame.kind] += 1
                batch.append(frame.data)
                ends = frame.ends_connection
            if not batch:
                return
            writer.write(b"".join(batch))
            async with asyncio.timeout(DRAIN_SECONDS):
                await writer.drain()
            if ends or reading.done() or time.monotonic() > self._deadline:
                return
            await asyncio.sleep(0)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while data := await reader.read(1 << 18):
                self.received_bytes += len(data)
        except OSError:
            pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=10911)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--show", action="store_true")
    wish = parser.parse_args()
    if wish.show:
        mutations = Mutations(wish.seed)
        for number in range(wish.first, wish.first + wish.frames):
            frame = mutations.frame(number)
            print(number, frame.kind, len(frame.data), frame.data[:600])
        return
    # Attackers have machines of their own; here they must not take the servers' processor.
    os.nice(10)
    attack = Attack(wish.port, wish.seed, wish.first, wish.frames, wish.seconds)
    asyncio.run(attack.run())
    json.dump(
        {
            "sent": attack.sent,
            "connections": attack.connections,
            "received_bytes": attack.received_bytes,
            "kinds": dict(attack.kinds),
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
