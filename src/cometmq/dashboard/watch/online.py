"""Who is online of a group: what brokers know, and the proxies of RocketMQ 5, which alone know who is behind them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cometmq.admin.admin import Admin
from cometmq.admin.errors import PartialFailure
from cometmq.admin.groups.connections import merged
from cometmq.base.errors import CometError
from cometmq.client.errors import NoRoute
from cometmq.protocol.bodies.connection import ConsumerConnection
from cometmq.protocol.reply_errors import ConsumerNotOnline


@dataclass(frozen=True, slots=True)
class Online:
    """``connection`` is None if nobody is known; ``failed`` are servers that did not say."""

    connection: ConsumerConnection | None
    failed: Mapping[str, CometError]


async def online(admin: Admin, group: str, proxies: Sequence[str]) -> Online:
    """Raises UsageError: that is no name of a group."""
    found: list[ConsumerConnection] = []
    failed: dict[str, CometError] = {}

    async def ask(address: str | None) -> None:
        try:
            found.append(await admin.connections.consumers(group, address=address))
        except (ConsumerNotOnline, NoRoute):
            return
        except PartialFailure as error:
            failed.update(error.failed)
        except CometError as error:
            if address is None:
                raise
            failed[address] = error

    await asyncio.gather(ask(None), *(ask(address) for address in proxies))
    return Online(merged(found) if found else None, failed)
