"""A slave in memory that copies the log of a master in memory when a test says so."""

from __future__ import annotations

from tests.unit.broker.rig import Rig

from cometmq.broker.config.config_slices import ASYNC_MASTER, SLAVE


class SlaveRig(Rig):
    """Args: settings: of the slave, on top of those that make it one."""

    def __init__(self, **settings: str) -> None:
        super().__init__({"brokerRole": SLAVE, "brokerId": "1", **settings}, is_master=False)
        self.origin = Rig()
        self.store.follow()
        self.topic("T")

    def copy(self, bytes_max: int | None = None) -> None:
        """Take over what the master has stored, or some bytes of it."""
        source, target = self.origin.store.replica, self.store.replica
        at = target.end
        size = source.end - at if bytes_max is None else bytes_max
        target.append(at, source.read(at, size))
        while target.dispatch():
            pass

    def sent(self, *bodies: bytes) -> None:
        """Messages that the master stores."""
        for body in bodies:
            self.origin.send("T", body)

    def become(self, role: str) -> None:
        """Change the role, as promotion and demotion do."""
        self.live.update({"brokerRole": role})
        if role == SLAVE:
            self.store.follow()
        else:
            self.store.lead()

    def promote(self) -> None:
        self.become(ASYNC_MASTER)
