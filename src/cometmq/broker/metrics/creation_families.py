"""How long it took to create topics and groups for operators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Final

from cometmq.broker.metrics.names import is_system
from cometmq.monitor.family import Family, Histogram, histogram
from cometmq.protocol.codes import RequestCode, ResponseCode
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection
from cometmq.remoting.dispatcher import Dispatcher, Handler

_EDGES_MS: Final = (10.0, 100.0, 1000.0, 3000.0, 5000.0)
_SUCCESS: Final = "success"
_FAILURE: Final = "failure"
_Note = Callable[[Command, str, float], None]


class CreationFamilies:
    def __init__(self) -> None:
        self._topics: dict[tuple[str, str], Histogram] = {}
        self._groups: dict[tuple[str], Histogram] = {}

    @property
    def families(self) -> Sequence[Family]:
        return (
            histogram(
                "rocketmq_topic_create_execution_time",
                ("invocation_status", "is_system"),
                lambda: list(self._topics.items()),
                unit="milliseconds",
                text="The distribution of create topic time",
            ),
            histogram(
                "rocketmq_consumer_group_create_execution_time",
                ("invocation_status",),
                lambda: list(self._groups.items()),
                unit="milliseconds",
                text="The distribution of create subscription time",
            ),
        )

    def watch(self, dispatcher: Dispatcher) -> None:
        dispatcher.wrap(
            RequestCode.UPDATE_AND_CREATE_TOPIC, lambda handler: self._timed(handler, self._topic)
        )
        dispatcher.wrap(
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            lambda handler: self._timed(handler, self._group),
        )

    def _topic(self, command: Command, status: str, milliseconds: float) -> None:
        topic = (command.ext or {}).get("topic", "")
        key = (status, is_system(topic))
        self._topics.setdefault(key, Histogram(_EDGES_MS)).add(milliseconds)

    def _group(self, command: Command, status: str, milliseconds: float) -> None:
        self._groups.setdefault((status,), Histogram(_EDGES_MS)).add(milliseconds)

    @staticmethod
    def _timed(handler: Handler, note: _Note) -> Handler:
        def handle(
            connection: Connection, command: Command
        ) -> Command | bytes | Awaitable[Command | None] | None:
            started = monotonic()
            try:
                result = handler(connection, command)
            except Exception:
                note(command, _FAILURE, (monotonic() - started) * 1000)
                raise
            if isinstance(result, Command):
                note(command, _status(result), (monotonic() - started) * 1000)
            if result is None or isinstance(result, Command | bytes):
                return result
            return finish(result, command, started)

        async def finish(
            pending: Awaitable[Command | None], command: Command, started: float
        ) -> Command | None:
            status = _FAILURE
            try:
                reply = await pending
                status = _status(reply)
                return reply
            finally:
                note(command, status, (monotonic() - started) * 1000)

        return handle


def _status(reply: Command | None) -> str:
    return _SUCCESS if reply is not None and reply.code == ResponseCode.SUCCESS else _FAILURE
