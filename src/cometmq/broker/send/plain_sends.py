"""Plain sends by the compiled twin: what it is told about topics and properties, and what is asked of it.

A send is plain when its header, topic and properties ask for nothing that needs a decision of its own; ``native.sends``
says exactly when. What is decided here is decided once for each topic and each text that properties have in common, by
the code that decides for single sends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from cometmq.broker.send.send_properties import remembered
from cometmq.broker.send.send_target import SendTargets
from cometmq.broker.send.stored_form import StoredForm
from cometmq.model.messages.record_layout import topic_field
from cometmq.model.names import is_brokers_own
from cometmq.native.choice import twin
from cometmq.native.send_run import SendRun
from cometmq.protocol.refusal import Refused
from cometmq.remoting.connection import Connection
from cometmq.store.index.index_files import key_prefix
from cometmq.store.log.plain_messages import PlainMessages

_twin = twin("sends")

cut_run: Callable[[bytes, int, int], SendRun | None] | None = _twin.cut_run if _twin else None
"""Cuts runs of sends out of what a connection received; None without the twin."""


class PreparedRun(SendRun, Protocol):
    def prepare(self, start: int, stop: int, known: Any, /) -> int:
        """Where the plain ones among the sends from ``start`` to ``stop`` end."""
        ...


class PlainSends(PlainMessages, Protocol):
    """The plain sends of a turn."""

    def add(
        self, connection: Connection, run: SendRun, start: int, stop: int, is_awaited: bool, /
    ) -> None:
        """Sends of a run that were prepared. ``is_awaited``: replies wait until the messages are safe."""
        ...

    def commands(self) -> list[tuple[Connection, bytes]]:
        """Each send as its connection and its frame."""
        ...

    def count_puts(self) -> None:
        """Count the messages in the tallies of their topics."""
        ...

    def requests(self, held: bool, /) -> dict[int, int]:
        """How many requests of each code have a reply that waits until the messages are safe, or one that does not."""
        ...

    def answers(
        self, pieces: tuple[bytes, ...], id_prefix: bytes, code: int, held: bool, /
    ) -> list[tuple[Connection, bytes]]:
        """The replies to each connection, in one piece: those that wait, or the others."""
        ...


def no_sends() -> PlainSends:
    assert _twin is not None, "plain sends need the twin"
    made: PlainSends = _twin.PlainSends()
    return made


class KnownSends:
    """What is known of topics and properties, for ``PreparedRun.prepare``."""

    def __init__(
        self, targets: SendTargets, form: StoredForm, body_bytes_max: int, batch_count_max: int
    ) -> None:
        self._targets = targets
        self._version = -1
        assert _twin is not None, "plain sends need the twin"
        self._known = _twin.Known(
            self._learner(form, is_element=False),
            self._learner(form, is_element=True),
            self._decide,
            body_bytes_max,
            batch_count_max,
        )

    def prepare(self, run: PreparedRun, start: int, stop: int) -> int:
        if self._version != self._targets.version:
            self._version = self._targets.version
            self._known.forget_destinations()
        return run.prepare(start, stop, self._known)

    def _decide(self, name: bytes) -> object | None:
        topic = name.decode()
        target = self._targets.known(topic)
        if (
            target is None
            or target.is_retry
            or target.write_queue_count == 0
            or is_brokers_own(topic)
        ):
            return None
        assert _twin is not None
        made: object = _twin.Destination(
            topic,
            topic_field(name),
            key_prefix(topic),
            target.queue_count,
            target.tally.row,
            target.fifo_tally.row,
        )
        return made

    @staticmethod
    def _learner(form: StoredForm, *, is_element: bool) -> Callable[[bytes], object | None]:
        def learn(rest: bytes) -> object | None:
            try:
                known = remembered(rest.decode(), form, is_element=is_element)
            except Refused:
                return None
            if known is None or not known.is_plain:
                return None
            said = known.properties
            assert _twin is not None
            made: object = _twin.Shape(
                known.before,
                known.middle,
                known.after,
                said.tags_code,
                said.is_wait,
                said.is_ordered,
            )
            return made

        return learn
