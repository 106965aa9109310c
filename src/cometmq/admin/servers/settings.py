"""The settings of a server of any kind, over the network."""

from __future__ import annotations

from collections.abc import Mapping

from cometmq.admin.calls import Calls
from cometmq.base.errors import UsageError
from cometmq.base.properties_file import decode_file, parse_properties, render_properties
from cometmq.protocol.codes import RequestCode


async def read_settings(calls: Calls, code: RequestCode, address: str) -> dict[str, str]:
    reply = await calls.ask(address, code)
    return parse_properties(decode_file(bytes(reply.body)))


def check_settings(values: Mapping[str, str]) -> None:
    """Raises UsageError: there is nothing to set."""
    if not values or "" in values:
        raise UsageError(
            f"expected settings such as {{'flushDiskType': 'SYNC_FLUSH'}}, got {dict(values)}"
        )


async def write_settings(
    calls: Calls, code: RequestCode, values: Mapping[str, str], address: str
) -> str:
    """Returns the server's remark."""
    reply = await calls.ask(address, code, body=render_properties(values).encode())
    return reply.remark or ""
