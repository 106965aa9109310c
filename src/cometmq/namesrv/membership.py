"""Brokers coming and going: keeps the route table in step and says in the log what happened, and why.

Called by ``processors`` for what brokers send, by ``server`` for lost connections and by the clock for silence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from cometmq.base.ports import Clock
from cometmq.namesrv.live_config import LiveConfig
from cometmq.namesrv.liveness import LiveBroker
from cometmq.namesrv.registration import MinIdChange, Registered, Registration
from cometmq.namesrv.route_table import RouteTable

_log = logging.getLogger("cometmq.namesrv")

Notify = Callable[[MinIdChange], None]


class Membership:
    def __init__(self, table: RouteTable, config: LiveConfig, clock: Clock, notify: Notify) -> None:
        """``notify`` is told when the lowest id of a broker name changes."""
        self._table = table
        self._config = config
        self._clock = clock
        self._notify = notify
        self._scanned_at = clock.monotonic()

    def register(self, registration: Registration) -> Registered:
        """Raises Refused."""
        r = registration
        config = self._config.current
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

    def unregister(self, cluster: str, broker_name: str, address: str) -> None:
        self._remove(cluster, broker_name, address, "unregistered")

    def connection_lost(self, connection: object) -> None:
        for broker in self._table.liveness.of_connection(connection):
            self._remove_live(broker, "connection lost")

    def scan(self) -> None:
        """Remove brokers that have gone silent. Call it every ``scanNotActiveBrokerInterval``."""
        now = self._clock.monotonic()
        late = now - self._scanned_at
        self._scanned_at = now
        # After the process itself was stopped (a suspended machine, a debugger), everybody seems silent
        # while their registrations wait in our socket buffers. Hear them first.
        if late > 3 * self._config.current.scan_interval_ms / 1000:
            _log.warning("scan for silent brokers late seconds=%d: left out once", late)
            return
        for broker in self._table.liveness.silent(now):
            self._remove_live(broker, f"silent for {now - broker.seen_at:.0f} s")
            if broker.connection is not None:
                broker.connection.close("the broker on it has gone silent")

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
