"""Brokers joining and leaving: keeps the route table up to date, and logs what happened and why.

A broker that is alive keeps its place (``claims``), unless ``brokerTakeoverEnable`` is set.

Called by ``processors`` for broker requests, by ``server`` for lost connections, and by a timer for silent brokers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from cometmq.base.ports import Clock
from cometmq.model.ids import MASTER_ID
from cometmq.namesrv.claims import claimed, is_to_be_asked, keeps_place
from cometmq.namesrv.live_config import LiveConfig
from cometmq.namesrv.liveness import Line, LiveBroker
from cometmq.namesrv.registration import MinIdChange, Registered, Registration
from cometmq.namesrv.route_table import RouteTable
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

_log = logging.getLogger("cometmq.namesrv")

Notify = Callable[[MinIdChange], None]
Ask = Callable[[LiveBroker], bool]


class Membership:
    def __init__(
        self, table: RouteTable, config: LiveConfig, clock: Clock, notify: Notify, ask: Ask
    ) -> None:
        """Args:
        notify: called when the lowest id of a broker name changes.
        ask: probes whether a broker is alive, and calls ``answered`` if so; False if it cannot ask now.
        """
        self._table = table
        self._config = config
        self._clock = clock
        self._notify = notify
        self._ask = ask
        self._scanned_at = clock.monotonic()

    def register(self, registration: Registration) -> Registered:
        """Raises Refused."""
        r = registration
        config = self._config.current
        for owner in self._table.holders(r.broker_name, r.cluster, r.address):
            if owner.is_same(r.broker_name, r.broker_id) or owner.address == r.address:
                _check_signed("register", owner, is_signed=r.is_signed)
        if not config.broker_takeover:
            self._check_claim(r)
        known = self._table.liveness.get(r.cluster, r.address)
        done = self._table.register(
            r,
            self._clock.monotonic(),
            delete_missing_topics=config.delete_missing_topics,
            queues_max=config.topic_queues_max,
        )
        if known is None or known.version != r.version or known.broker_id != r.broker_id:
            _log.info(
                "broker %s cluster=%s name=%s id=%d address=%s topics=%d",
                "registered" if known is None else "changed",
                r.cluster,
                r.broker_name,
                r.broker_id,
                r.address,
                len(r.topics),
            )
            if done.left_out:
                _log.warning(
                    "topics left out name=%s address=%s count=%d first=%s reason=not 0 to %d queues (topicQueuesMax)",
                    r.broker_name,
                    r.address,
                    len(done.left_out),
                    done.left_out[0],
                    config.topic_queues_max,
                )
        if done.min_id_change is not None:
            self._notify(done.min_id_change)
        return done

    def unregister(
        self,
        cluster: str,
        broker_name: str,
        address: str,
        connection: Line | None = None,
        *,
        is_signed: bool = False,
    ) -> None:
        """Raises Refused for another broker that is alive on its connection."""
        for owner in self._table.holders(broker_name, cluster, address):
            if owner.address != address:
                continue
            _check_signed("unregister", owner, is_signed=is_signed)
            is_other = owner.connections[:1] not in ((), (connection,))
            if is_other and not self._config.current.broker_takeover:
                raise _kept("unregister", owner)
        self._remove(cluster, broker_name, address, "unregistered")

    def answered(self, broker: LiveBroker) -> None:
        """It is alive."""
        broker.answered_at = self._clock.monotonic()

    def connection_lost(self, connection: object) -> None:
        for broker in self._table.liveness.hang_up(connection):
            self._remove_live(broker, "connection lost")

    def scan(self) -> None:
        """Remove brokers that have gone silent. Call it every ``scanNotActiveBrokerInterval``."""
        now = self._clock.monotonic()
        late = now - self._scanned_at
        self._scanned_at = now
        # If this process itself was stopped (a suspended machine, a debugger), all brokers seem silent while their
        # registrations wait in our socket buffers. Read those first.
        if late > 3 * self._config.current.scan_interval_ms / 1000:
            _log.warning("scan for silent brokers late seconds=%d: left out once", late)
            return
        for broker in self._table.liveness.silent(now):
            self._remove_live(broker, f"silent for {now - broker.seen_at:.0f} s")
            for connection in broker.connections:
                connection.close("the broker on it has gone silent")

    def _check_claim(self, r: Registration) -> None:
        now = self._clock.monotonic()
        self._check_cluster(r)
        for owner in claimed(self._table, r):
            if is_to_be_asked(owner, now):
                if self._ask(owner):
                    owner.asked_at = now
                raise _kept("register", owner)
            if keeps_place(owner, now):
                raise _kept("register", owner)
            _log.warning(
                "broker moved name=%s id=%d from=%s to=%s silent_seconds=%.0f",
                r.broker_name,
                r.broker_id,
                owner.address,
                r.address,
                now - owner.heard_at,
            )

    def _check_cluster(self, r: Registration) -> None:
        """A slave that would follow the master of another cluster is a mistake in its configuration."""
        for owner in self._table.holders(r.broker_name, r.cluster, r.address):
            is_master = owner.is_same(r.broker_name, MASTER_ID)
            if is_master and r.broker_id != MASTER_ID and owner.cluster != r.cluster:
                raise Refused(
                    ResponseCode.SYSTEM_ERROR,
                    f"register broker failed: the master of {r.broker_name} belongs to the cluster {owner.cluster}, "
                    f"its slave {r.broker_id} to {r.cluster}; set the same brokerClusterName",
                )

    def _remove_live(self, broker: LiveBroker, reason: str) -> None:
        self._remove(broker.cluster, broker.broker_name, broker.address, reason)

    def _remove(self, cluster: str, broker_name: str, address: str, reason: str) -> None:
        if self._table.liveness.get(cluster, address) is not None:
            _log.info(
                "broker removed cluster=%s name=%s address=%s reason=%s",
                cluster,
                broker_name,
                address,
                reason,
            )
        change = self._table.unregister(cluster, broker_name, address)
        if change is not None:
            self._notify(change)


def _check_signed(what: str, owner: LiveBroker, *, is_signed: bool) -> None:
    """Who has come with an account is displaced only by somebody with an account. Raises Refused."""
    if owner.is_signed and not is_signed:
        raise Refused(
            ResponseCode.NO_PERMISSION,
            f"{what} broker failed: {owner.broker_name} id {owner.broker_id} at {owner.address} has registered with an "
            "account; sign with one, too (innerClientAuthenticationCredentials)",
        )


def _kept(what: str, owner: LiveBroker) -> Refused:
    return Refused(
        ResponseCode.SYSTEM_ERROR,
        f"{what} broker failed: {owner.broker_name} id {owner.broker_id} at {owner.address} is alive on the connection"
        " that it registered over; stop that one first (or set brokerTakeoverEnable of the name server)",
    )
