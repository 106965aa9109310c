"""A broker without network, threads and tasks: its core and its rooms on a fake clock and a disk in memory.

The same composition as ``broker.server``. A request is handed to ``dispatch``, time passes with ``advance``, and a life
ends with ``stop`` or ``crash``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, cast

from cometmq.broker.config.broker_config import BrokerConfig, load_broker_config
from cometmq.broker.config.live_config import LiveConfig
from cometmq.broker.core import open_core
from cometmq.broker.master_duties import Duty, MasterDuties
from cometmq.broker.request_ports import RequestPorts
from cometmq.broker.rooms import Rooms
from cometmq.model.message_queue import MessageQueue
from cometmq.model.messages.record import Record, decode_record
from cometmq.model.topic import TopicConfig
from cometmq.protocol.command import Command
from cometmq.remoting.connection import Connection
from cometmq.remoting.turn import Turn
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.fake_connection import FakeConnection
from cometmq.testing.fake_loop import FakeLoop
from cometmq.testing.faulty_files import FaultyFiles, Outage

SETTINGS: Final = {
    "brokerName": "b49",
    "brokerClusterName": "C49",
    "brokerIP1": "127.0.0.1",
    "listenPort": "32010",
    "storePathRootDir": "/store",
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "100",
    "maxIndexNum": "4000",
    "maxMessageSize": "8192",
}
"""Small files: a test fills them quickly."""


class MemoryBroker:
    """It runs once it is made; ``stop`` and ``open``, or ``crash``, begin its next life on the same disk.

    Args:
        settings: ``broker.conf`` keys on top of ``SETTINGS``.
        clock: instead of one that begins in 2023.
        files: a disk that holds something already; by the same clock.
        seed: what a crash of the disk keeps.
        is_master: whether it takes up the duties of a master by itself.
        config_path: where changes of the settings are written.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        clock: FakeClock | None = None,
        files: FaultyFiles | None = None,
        seed: int = 0,
        is_master: bool = True,
        config_path: str | None = None,
    ) -> None:
        self.clock = clock or FakeClock()
        self.files = files or FaultyFiles(self.clock, seed=seed)
        self.settings = {**SETTINGS, **(settings or {})}
        self.is_master = is_master
        self.peer = FakeConnection()
        """The client that sends a request when a test names no other."""
        self.created: list[str] = []
        self.auto_created: list[str] = []
        self.announced: list[str] = []
        """Topics told to the name servers by an operator's request."""
        self.queues_elsewhere: list[MessageQueue] = []
        """What the name servers know of the queues of all brokers."""
        self._config_path = config_path
        self.open()

    def open(self, **settings: str) -> None:
        """Begin a life, with changed settings if there are any."""
        self.settings.update(settings)
        config = _config(tuple(sorted(self.settings.items())))
        self.loop = FakeLoop(self.clock)
        self.live = LiveConfig(config, clock=self.clock, files=self.files, path=self._config_path)
        self.ports = RequestPorts(config, self.files, self.clock)
        self.live.on_change(lambda changed: self.ports.rates.apply(changed.remoting))
        core = self.core = open_core(
            self.live,
            clock=self.clock,
            files=self.files,
            loop=self.loop,
            port=config.network.listen_port,
            reached=self.ports.reached,
            times=self.ports.times,
        )
        core.creation.created.append(lambda topic: self.created.append(topic.topic_name))
        core.creation.auto_created.append(lambda topic: self.auto_created.append(topic.topic_name))
        self.rooms = Rooms(
            core, saved=self._saved, announce=self._announce, queues_of=self._queues_of
        )
        self.rooms.register(self.ports)
        self.duties = MasterDuties(core, self.master_duties())
        if self.is_master:
            self.duties.resume()

    def master_duties(self) -> Sequence[Duty]:
        """All of them; a test of one duty names that one alone, so that no other moves."""
        return self.rooms.duties

    async def stop(self) -> None:
        """End a life in good order."""
        self.flush_on_demand()
        await self.duties.stop()
        await self._saved()
        self.core.offsets.save_if_changed()
        self.core.store.close()

    async def restart(self, **settings: str) -> None:
        """End a life in good order, and begin the next."""
        await self.stop()
        self.open(**settings)

    def flush_on_demand(self) -> None:
        """From now on the disk has everything as soon as somebody waits for it, as with a flush thread."""
        self.core.store.watermarks.flushed.on_wait(self.core.store.flush)

    def crash(self, outage: Outage = Outage.PROCESS_KILL) -> None:
        """End a life without a word, and begin the next."""
        self.files.crash_now()
        self.files.restart(outage)
        self.open()

    def dispatch(self, command: Command, peer: FakeConnection | None = None) -> list[Command]:
        """What a request makes the broker send to the client at once."""
        return self.dispatch_all([command], peer)

    def dispatch_all(
        self, commands: Sequence[Command], peer: FakeConnection | None = None
    ) -> list[Command]:
        """The same for requests that arrive in one turn of the loop."""
        peer = peer or self.peer
        peer.commands.extend(commands)
        Turn(self.ports.main).run_alone(cast(Connection, peer))
        return peer.take()

    def advance(self, seconds: float) -> None:
        """Let time pass, and what becomes due in it happen at its time."""
        self.loop.advance(seconds)

    def records(self, topic: str, queue_id: int = 0) -> list[Record]:
        """What a queue holds."""
        store = self.core.store
        found = []
        for offset in range(store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)):
            ((place, _, _),) = store.entries(topic, queue_id, offset, 1)
            view = store.record_at(place)
            assert view is not None, (topic, queue_id, offset)
            found.append(decode_record(view))
        return found

    async def _saved(self) -> None:
        core = self.core
        for table in (core.topics, core.groups, core.filters, core.modes):
            if (write := table.unsaved()) is not None:
                write()

    async def _announce(self, configs: list[TopicConfig]) -> None:
        self.announced.extend(config.topic_name for config in configs)

    async def _queues_of(self, topic: str) -> Sequence[MessageQueue]:
        return [queue for queue in self.queues_elsewhere if queue.topic == topic]

    def __repr__(self) -> str:
        return f"<MemoryBroker {self.duties!r} {self.core.store!r}>"


@lru_cache(maxsize=256)
def _config(settings: tuple[tuple[str, str], ...]) -> BrokerConfig:
    """To read the settings takes longer than everything else here; tests begin thousands of lives with the same."""
    return load_broker_config(dict(settings))[0]
