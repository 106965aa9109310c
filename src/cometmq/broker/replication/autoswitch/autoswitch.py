"""What replication under a controller adds to a broker: the epochs of its log, and the set of those who have it all.

``replication_room`` has the links speak these wires. Who is the master is not decided here: ``controller_client`` says
when a reign begins.
"""

from __future__ import annotations

from cometmq.base.errors import UsageError
from cometmq.broker.config.broker_config import BrokerConfig
from cometmq.broker.core import BrokerCore
from cometmq.broker.replication.autoswitch.epoch_file import EpochFile
from cometmq.broker.replication.autoswitch.epoch_follow import Begins, EpochFollow, NeverWere
from cometmq.broker.replication.autoswitch.epochs import Epoch
from cometmq.broker.replication.autoswitch.switch_master import Reign, SwitchWire
from cometmq.broker.replication.autoswitch.switch_wire import MasterFrames, encode_report
from cometmq.broker.replication.autoswitch.sync_state import Proposal, SyncState
from cometmq.broker.replication.ha_wire import SlaveIdentity
from cometmq.broker.replication.slave_link import SlaveWire


class Autoswitch:
    """Raises CorruptFile when the epochs cannot be read."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        config = core.live.current
        path = config.controller.epoch_path or config.store.path("epochFileCheckpoint")
        self.epochs = EpochFile(path, core.files)
        self.epochs.load(core.store.min_physical, core.store.max_physical)
        self.broker_id = 0
        """The permanent one; 0 while the controller has not given it."""
        self.reign = 0
        """The epoch in which this broker was elected last."""
        self._confirmed = 0
        self.sync = SyncState(config.controller.behind_ms_max / 1000)
        self._following = EpochFollow(
            core.store.replica,
            core.store.config.log.file_bytes,
            lambda: self.epochs.table,
            self._identity,
            config.replication.silence_ms / 1000,
        )
        self.slave_wire = SlaveWire(self._following, MasterFrames, encode_report, self._note)
        self._reign = Reign(
            is_master=lambda: not core.live.current.identity.is_slave,
            epochs=lambda: self.epochs.table,
            log_end=lambda: core.store.max_physical,
            confirmed=lambda: self.confirmed,
        )
        core.replicas.awaited = frozenset()
        core.live.on_change(self._apply)

    @property
    def confirmed(self) -> int:
        """Up to where all that count have the log, as far as this broker knows."""
        store = self._core.store
        if self._core.live.current.identity.is_slave:
            return self._following.confirmed
        awaited = self._core.replicas.awaited or frozenset()
        if not awaited:
            return store.max_physical
        copied_to = self._core.replicas.copied_to(1 + len(awaited))
        if copied_to is not None:
            self._confirmed = max(self._confirmed, min(copied_to, store.max_physical))
        return self._confirmed

    def master_wire(self) -> SwitchWire:
        return SwitchWire(self._reign)

    def lead(self) -> None:
        """The reign begins, with the log as it is. Raises DiskFull, UsageError."""
        # Name servers take the topics of the newest reign.
        self._core.topics.begin_state(self.reign)
        store, last = self._core.store, self.epochs.table.last
        if last is None:
            # A log from before the controller is all of the first reign, so that slaves can be given it.
            self.epochs.begin(Epoch(self.reign, store.min_physical))
        elif last.number < self.reign:
            self.epochs.begin(Epoch(self.reign, store.max_physical))

    def cut(self, offset: int) -> None:
        """The log was cut. Raises DiskFull."""
        self.epochs.cut(offset)

    def elected(self, epoch: int, members: frozenset[int], set_epoch: int) -> None:
        """This broker is the master, or is it again. Its reign begins when it leads.

        Raises:
            UsageError: the log knows of later reigns.
        """
        last = self.epochs.table.last_number
        if epoch < last:
            raise UsageError(
                f"the controller counts epoch {epoch}, but this log is from epoch {last}: it is another controller, or "
                f"has lost its data. Restore them; else stop all brokers of this name, choose "
                f"the one with the best log, remove its epochFileCheckpoint, and empty the stores of the others"
            )
        goes_on = epoch == self.reign
        self.reign = epoch
        self._confirmed = 0
        self.sync.begin(self.broker_id, members, set_epoch, goes_on=goes_on)
        self.set_changed()

    def set_changed(self) -> None:
        """Others are waited for than before. Whoever waited for one who need not be waited for has an answer now."""
        self._core.replicas.awaited = self.sync.awaited
        self._core.durability.replicas_changed()

    def look(self, now: float) -> Proposal | None:
        """What a master has to propose to the controller, if anything. To be called every second or so."""
        core = self._core
        proposal = self.sync.look(core.replicas.log_ends, core.store.max_physical, now)
        self.set_changed()
        return proposal

    def tidy(self) -> None:
        """Forget the epochs of files that were deleted. Raises DiskFull."""
        self.epochs.drop_before(self._core.store.min_physical)

    def _identity(self) -> SlaveIdentity:
        config = self._core.live.current
        return SlaveIdentity(
            self.broker_id,
            is_learner=config.controller.is_learner,
            from_last_file=config.replication.from_last_file,
        )

    def _note(self, what: object) -> None:
        match what:
            case Begins(epoch):
                self.epochs.begin(epoch)
            case NeverWere(end):
                self.epochs.cut(end)
            case _:
                raise AssertionError(f"EpochFollow noted {what!r}, which nobody keeps")

    def _apply(self, config: BrokerConfig) -> None:
        self.sync.behind_seconds_max = config.controller.behind_ms_max / 1000

    def __repr__(self) -> str:
        return (
            f"<Autoswitch id={self.broker_id} reign={self.reign} {self.epochs.table} {self.sync}>"
        )
