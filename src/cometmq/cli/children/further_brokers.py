"""The further brokers of ``cometmq up --brokers``: each a process, started again when it dies."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, Final, NoReturn

from cometmq.base.errors import CometError, one_line
from cometmq.cli.children.child import Child
from cometmq.cli.children.patience import Patience

log = logging.getLogger("cometmq.up")

STOP_SECONDS_MAX: Final = 60.0


class BrokerLost(CometError):
    """A broker could not be started, or died again and again."""


class FurtherBrokers:
    """``start`` them, ``keep`` them, ``stop`` them.

    Args:
        settings: ``broker.conf`` of each.
    """

    def __init__(self, settings: Iterable[Mapping[str, str]], *, log_level: str) -> None:
        self._brokers = [_BrokerProcess(one, log_level) for one in settings]

    @property
    def names(self) -> list[str]:
        return [broker.name for broker in self._brokers]

    @property
    def addresses(self) -> dict[str, str]:
        """By name, of those that serve."""
        return {broker.name: broker.address for broker in self._brokers if broker.address}

    async def start(self, stop: asyncio.Event) -> None:
        """Returns when all serve, or when ``stop`` is set. Raises BrokerLost."""
        await _all_or_stop([broker.start() for broker in self._brokers], stop)

    async def keep(self, stop: asyncio.Event) -> None:
        """Start again those that die, until ``stop`` is set. Raises BrokerLost: one dies again and again."""
        await _all_or_stop([stop.wait(), *(broker.keep() for broker in self._brokers)], stop)

    async def stop(self) -> None:
        """Returns when all have ended."""
        await asyncio.gather(*(broker.stop() for broker in self._brokers))

    def dump(self) -> None:
        """Have each write down what it is doing, in its store."""
        for broker in self._brokers:
            broker.dump()


class _BrokerProcess:
    def __init__(self, settings: Mapping[str, str], log_level: str) -> None:
        self.name = settings["brokerName"]
        self.address = ""
        """Empty while it does not serve."""
        self._told = {"settings": dict(settings), "log_level": log_level}
        self._child = self._new_child()
        self._patience = Patience()
        self._started_at = 0.0

    async def start(self) -> None:
        if reason := await self._try():
            raise BrokerLost(f"broker {self.name}: {reason}")

    async def keep(self) -> NoReturn:
        reason: str | None = None
        while True:
            if reason is None:
                reason = _death(await self._child.wait())
            self.address = ""
            pause = self._patience.pause_after(monotonic() - self._started_at)
            if pause is None:
                raise BrokerLost(f"broker {self.name} ended again and again: {reason}")
            log.error(
                "broker ended by itself name=%s reason=%s; starting it again in %g s",
                self.name,
                reason,
                pause,
            )
            await asyncio.sleep(pause)
            self._child = self._new_child()
            reason = await self._try()
            if reason is None:
                log.info("broker started again name=%s address=%s", self.name, self.address)

    async def stop(self) -> None:
        self.address = ""
        await self._child.stop()

    def dump(self) -> None:
        if self.address:
            self._child.signal(signal.SIGUSR1)

    async def _try(self) -> str | None:
        """Returns when it serves; or when it has ended, with the reason."""
        self._started_at = monotonic()
        try:
            await self._child.start(self._told, answers=True)
        except OSError as error:
            return one_line(error)
        said = await self._child.answer() or {}
        if "address" in said:
            self.address = said["address"]
            return None
        code = await self._child.wait()
        return str(said.get("error") or _death(code))

    def _new_child(self) -> Child:
        return Child(
            "cometmq.cli.children.broker_child", self.name, stop_seconds_max=STOP_SECONDS_MAX
        )


async def _all_or_stop(works: Sequence[Coroutine[Any, Any, object]], stop: asyncio.Event) -> None:
    """Returns when all are done, or when ``stop`` is set. Raises what the first one raises; ends the others then."""
    ending = asyncio.create_task(stop.wait())
    tasks = [asyncio.create_task(work) for work in works]
    try:
        while not ending.done() and not all(task.done() for task in tasks):
            under_way = [task for task in (ending, *tasks) if not task.done()]
            done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in (ending, *tasks):
            task.cancel()
        await asyncio.gather(ending, *tasks, return_exceptions=True)


def _death(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
