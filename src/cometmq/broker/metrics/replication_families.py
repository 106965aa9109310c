"""How far slaves are behind their master, and who knows the broker."""

from __future__ import annotations

from collections.abc import Sequence

from cometmq.broker.core import BrokerCore
from cometmq.broker.registration import Registration
from cometmq.broker.replication.replicas import Replica
from cometmq.broker.replication.replication_room import ReplicationRoom
from cometmq.monitor.family import Family, LabelValues, Value, gauge, single

_SLAVE = ("slave",)


class ReplicationFamilies:
    def __init__(
        self, core: BrokerCore, replication: ReplicationRoom, registration: Registration
    ) -> None:
        self._core = core
        self._replication = replication
        self._registration = registration

    @property
    def families(self) -> Sequence[Family]:
        return (
            gauge(
                "cometmq_replication_lag_bytes",
                _SLAVE,
                lambda: [((name,), float(lag)) for name, lag in self._behind_bytes().items()],
                text="Bytes of the log that a slave of this master does not have yet",
            ),
            gauge(
                "cometmq_replication_lag",
                _SLAVE,
                self._behind_seconds,
                unit="seconds",
                text="Age of the first record that a slave of this master does not have yet",
            ),
            gauge(
                "cometmq_replicas",
                (),
                single(lambda: float(len(self._core.replicas))),
                text="Slaves that are connected",
            ),
            gauge(
                "cometmq_replica_following",
                (),
                self._following,
                text="Whether this slave is connected to its master, and both logs agree",
            ),
            gauge(
                "cometmq_name_server_registered",
                ("name_server",),
                lambda: [
                    ((name,), float(is_known))
                    for name, is_known in self._registration.known.items()
                ],
                text="Whether a name server has this broker",
            ),
        )

    def _following(self) -> list[tuple[LabelValues, Value]]:
        link = self._replication.link
        return [] if link.master is None else [((), float(link.is_following))]

    def _behind_bytes(self) -> dict[str, int]:
        end = self._core.store.max_physical
        return {_name(one): max(end - one.confirmed, 0) for one in self._core.replicas.all}

    def _behind_seconds(self) -> list[tuple[LabelValues, Value]]:
        found: list[tuple[LabelValues, Value]] = []
        store, now_ms = self._core.store, self._core.clock.wall_ms()
        for one in self._core.replicas.all:
            if one.confirmed >= store.max_physical:
                found.append(((_name(one),), 0.0))
            elif (stored_ms := store.record_time(one.confirmed)) > 0:
                found.append(((_name(one),), max(now_ms - stored_ms, 0) / 1000))
            # Else it has said an offset at which no record begins, in the middle of what it copies.
        return found


def _name(replica: Replica) -> str:
    """The id of a broker under a controller, else its host: a port that is new for each connection would pile up."""
    return replica.host if replica.slave is None else str(replica.slave.broker_id)
