"""Many peers that each do something nearly right: frames that do not end, names without end, pulls that wait.

python -m tests.hostile.crowds NAME_SERVER_PORT BROKER_PORT SCALE
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import struct
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from cometmq.base.errors import CallTimedOut, ConnectionLost, RemotingError
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.protocol.frame import encode_bytes
from cometmq.remoting.client import RemotingClient

FRAME_BYTES: Final = 16 * 1024 * 1024
CLOSE_SECONDS: Final = 20.0


async def all_crowds(name_server: int, broker: int, scale: int) -> None:
    for port in (name_server, broker):
        await asyncio.gather(half_frames(port, 4 * scale), slow_writers(port, 10 * scale))
    await asyncio.gather(
        topic_flood(broker, 200 * scale),
        group_flood(broker, 200 * scale),
        parked_pulls(broker, 200 * scale),
    )


async def half_frames(port: int, count: int) -> None:
    """Each peer sends all but the last byte of a frame of 16 MB, and waits to be cut off."""
    prefix = struct.pack(">iI", FRAME_BYTES - 4, 16)
    part = bytes(1 << 20)
    async with _streams(port, count) as streams:
        for _, writer in streams:
            writer.write(prefix)
        for _ in range(15):
            for _, writer in streams:
                await _write(writer, part)
        await _all_cut_off(streams)


async def slow_writers(port: int, count: int) -> None:
    """Each peer sends a byte from time to time, and never a whole frame."""
    frame = encode_bytes(Command(RequestCode.HEART_BEAT, body=bytes(1000)))
    async with _streams(port, count) as streams:
        closing = asyncio.ensure_future(_all_cut_off(streams))
        for byte in frame:
            for _, writer in streams:
                await _write(writer, bytes((byte,)))
            done, _ = await asyncio.wait({closing}, timeout=0.1)
            if done:
                break
        await closing


async def topic_flood(port: int, count: int) -> None:
    """Sends to topics that nobody has heard of."""
    sends = (
        Command(
            RequestCode.SEND_MESSAGE_V2,
            {
                "a": "p",
                "b": f"Flood-{number}",
                "c": "TBW102",
                "d": "4",
                "e": "0",
                "f": "0",
                "g": "0",
            },
            b"x",
        )
        for number in range(count)
    )
    await _calls(port, sends)


async def group_flood(port: int, count: int) -> None:
    """Heartbeats of groups that nobody has heard of, fifty at a time."""
    beats = (
        Command(
            RequestCode.HEART_BEAT,
            body=json.dumps(
                {
                    "clientID": f"flood-{number}",
                    "consumerDataSet": [
                        {
                            "groupName": f"Flood-{number}-{one}",
                            "consumeType": "CONSUME_PASSIVELY",
                            "messageModel": "CLUSTERING",
                            "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                            "subscriptionDataSet": [],
                        }
                        for one in range(50)
                    ],
                    "producerDataSet": [],
                }
            ).encode(),
        )
        for number in range(count // 50)
    )
    await _calls(port, beats)


async def parked_pulls(port: int, count: int) -> None:
    """Pulls that wait for the next message of the healthy client's own queue, and wake up with it all at once."""
    frames = b"".join(
        encode_bytes(
            Command(
                RequestCode.PULL_MESSAGE,
                {
                    "consumerGroup": "healthy",
                    "topic": "Healthy",
                    "queueId": "0",
                    "queueOffset": str(10**9),
                    "maxMsgNums": "32",
                    "sysFlag": "6",
                    "commitOffset": "0",
                    "suspendTimeoutMillis": "1500",
                    "subscription": "*",
                    "subVersion": "0",
                },
                opaque=number,
            )
        )
        for number in range(count)
    )
    async with _streams(port, 4) as streams:
        for _, writer in streams:
            await _write(writer, frames)
        for reader, _ in streams:
            # Something came back: they are served, at once or when their time is over.
            await asyncio.wait_for(reader.readexactly(4), CLOSE_SECONDS)


async def _calls(port: int, commands: Iterable[Command]) -> None:
    client = RemotingClient()
    try:
        for command in commands:
            try:
                await client.call(f"127.0.0.1:{port}", command, CLOSE_SECONDS)
            except (ConnectionLost, CallTimedOut, RemotingError):
                continue
    finally:
        await client.close()


@asynccontextmanager
async def _streams(
    port: int, count: int
) -> AsyncIterator[list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    async with AsyncExitStack() as stack:
        streams = []
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.transport.abort)
            streams.append((reader, writer))
        yield streams


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    if writer.transport.is_closing():
        return
    writer.write(data)
    try:
        await asyncio.wait_for(writer.drain(), CLOSE_SECONDS)
    except (ConnectionError, TimeoutError):
        pass


async def _all_cut_off(
    streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]],
) -> None:
    """Raises AssertionError when the server keeps one."""

    async def is_cut_off(reader: asyncio.StreamReader) -> bool:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                while await reader.read(1 << 16):
                    pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
        return True

    ends = await asyncio.gather(*(is_cut_off(reader) for reader, _ in streams))
    assert all(ends), f"{ends.count(False)} of {len(ends)} unfinished frames were not cut off"


if __name__ == "__main__":
    # It is told which groups have changed, and does not care.
    logging.disable()
    os.nice(10)
    asyncio.run(all_crowds(*map(int, sys.argv[1:])))
