"""The members of a consumer group: the combined knowledge of several brokers.

A broker knows the clients whose heartbeat it has received. One that was started a moment ago knows only some of the
group, and a client that trusted it alone would take the queues of all the others. RocketMQ's client asks one broker.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from cometmq.base.errors import RemotingError
from cometmq.protocol.bodies.heartbeat import ConsumerList
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.reply_errors import BrokerReplyError, error_for

ASKED_BROKERS_MAX: Final = 4
"""If a topic is on more brokers, this many of them are asked, chosen at random."""

Call = Callable[[str, Command, float], Awaitable[Command]]


async def ask_members(
    call: Call, addresses: Sequence[str], group: str, seconds: float
) -> list[str]:
    """The client ids that at least one of the asked brokers knows, each once.

    Args:
        addresses: all brokers that could be asked, at least one.
        seconds: timeout of each call.

    Raises:
        BrokerReplyError: no broker that answered knows a consumer of the group.
        RemotingError: no broker answered.
    """
    asked = list(addresses)
    random.shuffle(asked)
    failure: RemotingError | None = None
    while asked:
        chosen, asked = asked[:ASKED_BROKERS_MAX], asked[ASKED_BROKERS_MAX:]
        answers = await asyncio.gather(
            *(_ask(call, address, group, seconds) for address in chosen), return_exceptions=True
        )
        members: dict[str, None] = {}
        refusal: BrokerReplyError | None = None
        for answer in answers:
            if isinstance(answer, list):
                members.update(dict.fromkeys(answer))
            elif isinstance(answer, BrokerReplyError):
                refusal = answer
            elif isinstance(answer, RemotingError):
                failure = answer
            else:
                raise answer
        if members:
            return list(members)
        if refusal is not None:
            raise refusal
        if any(isinstance(answer, list) for answer in answers):
            return []
    assert failure is not None, "somebody was asked"
    raise failure


async def _ask(call: Call, address: str, group: str, seconds: float) -> list[str]:
    request = Command(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
    reply = await call(address, request, seconds)
    if reply.code != ResponseCode.SUCCESS:
        raise error_for(reply, address)
    return ConsumerList.decode(reply.body).consumer_id_list
