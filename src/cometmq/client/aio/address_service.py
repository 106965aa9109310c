"""Asks the HTTP address service for the name servers: ``GET /rocketmq/nsaddr`` -> ``10.0.0.1:9876;10.0.0.2:9876``."""

from __future__ import annotations

import asyncio
import socket
from http.client import HTTPConnection, HTTPException
from typing import Final

from cometmq.base.errors import UsageError
from cometmq.client.core.name_server_choice import SERVICE_PORT, parse_service_answer
from cometmq.client.errors import AddressServiceFailed
from cometmq.model.address import split_address

ANSWER_BYTES_MAX: Final = 64 * 1024


async def fetch_name_servers(service: str, path: str, timeout: float) -> list[str]:
    """The addresses that the service at ``host[:port]`` answers with.

    Raises:
        AddressServiceFailed: no answer within ``timeout`` seconds, or none that is a list of addresses.
    """
    where = f"http://{service}{path}"
    try:
        host, port = split_address(service if ":" in service else f"{service}:{SERVICE_PORT}")
        connection = HTTPConnection(host, port, timeout=timeout)
        async with asyncio.timeout(timeout):
            try:
                text = await asyncio.to_thread(_get, connection, path)
            finally:
                # Ends the thread, too, when time is over: its own limit is for each single read.
                _hang_up(connection)
        return parse_service_answer(text)
    except TimeoutError:
        raise AddressServiceFailed(f"{where} did not answer within {timeout:g} s") from None
    except (OSError, HTTPException, UsageError, ValueError) as error:
        raise AddressServiceFailed(f"{where}: {error}") from error


def _get(connection: HTTPConnection, path: str) -> str:
    try:
        connection.request("GET", path, headers={"Accept": "text/plain", "Connection": "close"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise HTTPException(f"status {answer.status} where 200 was expected")
        content = answer.read(ANSWER_BYTES_MAX + 1)
        if len(content) > ANSWER_BYTES_MAX:
            raise HTTPException(f"an answer of more than {ANSWER_BYTES_MAX} bytes")
        return content.decode()
    finally:
        connection.close()


def _hang_up(connection: HTTPConnection) -> None:
    if connection.sock is not None:
        try:
            connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            # Closed meanwhile, which is as good.
            pass
