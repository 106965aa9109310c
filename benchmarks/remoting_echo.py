"""What remoting costs per small request: an echo server under uvloop, a pipelining client in another process.

    python benchmarks/remoting_echo.py [--seconds 3] [--in-flight 64] [--body 0] [--loop uvloop|asyncio]

Two figures: requests per second over the loopback, and the server's CPU time per request, split into the codec (decode
of the request, encode of the reply, measured alone) and the rest: loop, system calls, connection and dispatcher.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import socket
import time
from collections.abc import Coroutine
from multiprocessing.connection import Connection as Pipe
from typing import Any

import uvloop

from cometmq.protocol.command import Command
from cometmq.protocol.frame import FrameDecoder, encode, encode_bytes
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher
from cometmq.remoting.server import RemotingServer

CODE = 10
EXT = {"a": "ProducerGroup", "b": "TopicTest", "e": "3", "g": "1700000000000"}


def main() -> None:
    arguments = parse_arguments()
    request = Command(CODE, ext=dict(EXT), body=b"x" * arguments.body)
    mine, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    server = context.Process(target=serve_process, args=(theirs, arguments.loop))
    server.start()
    try:
        requests, seconds = drive(mine.recv(), request, arguments.in_flight, arguments.seconds)
    finally:
        mine.send("stop")
    cpu_seconds = mine.recv()
    server.join()
    codec_us = codec_cost_us(request)
    cpu_us = cpu_seconds / requests * 1e6
    print(f"loop {arguments.loop}, {arguments.in_flight} in flight, body of {arguments.body} bytes")
    print(f"  {requests / seconds:>10,.0f} requests/s")
    print(f"  {cpu_us:>10.2f} us server CPU per request")
    print(f"  {codec_us:>10.2f} us of it codec")
    print(f"  {cpu_us - codec_us:>10.2f} us remoting: loop, system calls, connection, dispatcher")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--body", type=int, default=0)
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    return parser.parse_args()


def serve_process(pipe: Pipe, loop: str) -> None:
    work: Coroutine[Any, Any, None] = serve(pipe)
    if loop == "uvloop":
        uvloop.run(work)
    else:
        asyncio.run(work)


async def serve(pipe: Pipe) -> None:
    def echo(connection: Connection, command: Command) -> Command:
        return command.reply(body=command.body)

    dispatcher = Dispatcher()
    dispatcher.add(CODE, echo)
    server = RemotingServer(dispatcher)
    pipe.send(await server.start("127.0.0.1", 0))
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe.fileno(), stopped.set)
    cpu_before = time.process_time()
    await stopped.wait()
    pipe.send(time.process_time() - cpu_before)
    asyncio.get_running_loop().remove_reader(pipe.fileno())
    await server.stop()


def drive(port: int, request: Command, in_flight: int, seconds: float) -> tuple[int, float]:
    """Keep ``in_flight`` requests under way by counting reply bytes: the client must not be the bottleneck."""
    frame = encode_bytes(request)
    reply_bytes = len(encode_bytes(request.reply(body=request.body)))
    answered = 0
    received_bytes = 0
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        started = time.perf_counter()
        sock.sendall(frame * in_flight)
        while time.perf_counter() - started < seconds:
            received_bytes += len(sock.recv(1 << 18))
            whole = received_bytes // reply_bytes
            if whole:
                received_bytes -= whole * reply_bytes
                answered += whole
                sock.sendall(frame * whole)
        return answered, time.perf_counter() - started


def codec_cost_us(request: Command, rounds: int = 300, batch: int = 64) -> float:
    stream = encode_bytes(request) * batch
    decoder = FrameDecoder()
    best = float("inf")
    for _ in range(rounds):
        before = time.perf_counter()
        for command in decoder.feed(stream):
            encode(command.reply(body=command.body))
        best = min(best, time.perf_counter() - before)
    return best / batch * 1e6


if __name__ == "__main__":
    main()
