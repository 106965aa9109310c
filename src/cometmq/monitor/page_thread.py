"""A page of metrics for programs without an event loop of their own: served by a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Final, Self

from cometmq.base.errors import CometError
from cometmq.model.address import join_address
from cometmq.monitor.family import Family
from cometmq.monitor.metrics import Metrics, Ready
from cometmq.monitor.text_page import PLAIN
from cometmq.remoting.http.exchange import HttpAnswer, HttpRequest, fault
from cometmq.remoting.http.http_port import HttpPort

CONNECTIONS_MAX: Final = 16
SERIES_MAX: Final = 10_000


class PageThread:
    """``with PageThread(families, port=5559) as page``: GET /metrics is answered inside the block.

    Args:
        families: read in the thread, so what they read must bear that.
        host: loopback unless told otherwise; whoever reaches it may read the page.
        port: 0 takes any free one.
    """

    def __init__(
        self,
        families: Sequence[Family],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        common: Mapping[str, str] | None = None,
    ) -> None:
        self._families = families
        self._host = host
        self._port = port
        self._common = dict(common or {})
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self.address = ""
        """Where it is; known inside the block."""

    def __enter__(self) -> Self:
        """Raises RemotingError: the port cannot be had."""
        bound: Future[int] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(bound)), name="cometmq-metrics", daemon=True
        )
        self._thread.start()
        try:
            self.address = join_address(self._host, bound.result())
        except CometError:
            self._thread.join()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._thread is not None
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self, bound: Future[int]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        metrics = Metrics([Ready(*self._families)], common=self._common, series_max=SERIES_MAX)

        async def answer(request: HttpRequest) -> HttpAnswer:
            if request.path != "/metrics":
                return fault(404)
            return HttpAnswer(200, await metrics.page(), PLAIN)

        http = HttpPort(answer, noun="metrics", key="port", connections_max=CONNECTIONS_MAX)
        try:
            port = await http.start(self._host, self._port)
        except CometError as error:
            bound.set_exception(error)
            return
        bound.set_result(port)
        await self._stop.wait()
        await http.stop()
