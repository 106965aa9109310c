"""Calls of etcd from the event loop: one member after the other, in a few threads, each with a deadline.

All state is the event loop's; a thread only carries out one blocking call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from cometmq.base.errors import StoreError
from cometmq.controller.decision_store import StoreAway
from cometmq.controller.etcd.endpoint import Endpoint, EndpointFailed
from cometmq.controller.etcd.etcd_words import Header

THREADS: Final = 4
CALLS_MAX: Final = 256
"""Under way and waiting for a thread. Brokers ask again."""

_TRICKLE_FACTOR: Final = 2.0
"""The library's limit holds for each piece of an answer; a member that sends byte by byte is given up, too."""

_log = logging.getLogger("cometmq.controller")


class Unreachable(StoreAway):
    """No member of etcd has answered. Whether the call was carried out is not known."""


class WithHeader(Protocol):
    @property
    def header(self) -> Header: ...


R = TypeVar("R", bound=WithHeader)


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """``is_repeated``: another member may have carried it out before the one that answered."""

    reply: R
    is_repeated: bool


class EtcdGateway:
    def __init__(self, endpoints: Sequence[Endpoint], timeout_seconds: float) -> None:
        self._endpoints = endpoints
        self._timeout_seconds = timeout_seconds * _TRICKLE_FACTOR
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="cometmq-etcd")
        self._under_way = 0
        self._preferred = 0
        self._cluster: int | None = None
        self._strangers: set[str] = set()

    async def call(self, path: str, words: Mapping[str, Any], shape: type[R]) -> Answer[R]:
        """Ask the member that answered last; the next ones if it does not answer.

        Raises:
            EtcdRefused: nothing was changed.
            Unreachable: nobody knows.
            StoreError: too many calls are under way. Nothing was changed.
        """
        if self._under_way >= CALLS_MAX:
            raise StoreError(f"{CALLS_MAX} calls of etcd are under way already")
        self._under_way += 1
        try:
            return await self._in_turn(path, words, shape)
        finally:
            self._under_way -= 1

    async def close(self) -> None:
        """Does not wait for members that do not answer; their threads end with their deadlines."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for endpoint in self._endpoints:
            endpoint.close()

    async def _in_turn(self, path: str, words: Mapping[str, Any], shape: type[R]) -> Answer[R]:
        first, reasons = self._preferred, []
        for step in range(len(self._endpoints)):
            number = (first + step) % len(self._endpoints)
            try:
                reply = await self._ask(self._endpoints[number], path, words, shape)
            except EndpointFailed as error:
                reasons.append(str(error))
                continue
            self._preferred = number
            return Answer(reply, is_repeated=step > 0)
        raise Unreachable(f"no member of etcd answers: {'; '.join(reasons)}")

    async def _ask(
        self, endpoint: Endpoint, path: str, words: Mapping[str, Any], shape: type[R]
    ) -> R:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                found = await asyncio.get_running_loop().run_in_executor(
                    self._threads, endpoint.post, path, words
                )
        except TimeoutError:
            raise EndpointFailed(f"{endpoint.name} does not answer in time") from None
        try:
            reply = msgspec.convert(found, shape, strict=False)
        except msgspec.ValidationError as error:
            raise EndpointFailed(f"{endpoint.name} answers nonsense: {error}") from None
        self._check_cluster(endpoint, reply.header)
        return reply

    def _check_cluster(self, endpoint: Endpoint, header: Header) -> None:
        """A list with members of two clusters would be two memories, and a group would have two masters."""
        if self._cluster is None:
            self._cluster = header.cluster_id
        if header.cluster_id == self._cluster:
            self._strangers.discard(endpoint.name)
            return
        if endpoint.name not in self._strangers:
            self._strangers.add(endpoint.name)
            _log.error(
                "etcd member of another cluster endpoint=%s cluster=%x expected=%x: it is not asked",
                endpoint.name,
                header.cluster_id,
                self._cluster,
            )
        raise EndpointFailed(f"{endpoint.name} is of another etcd cluster")
