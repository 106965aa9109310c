"""The route tables: which topic has queues on which broker, and at which addresses a broker is.

Pure state: no I/O, and time is an argument. Fed by brokers through ``processors``, queried by everybody; ``liveness``
remembers who was heard from. Like RocketMQ's RouteInfoManager it holds

    topic        -> broker name -> queues and permission
    broker name  -> cluster, broker id -> address       (0 is the master)
    cluster      -> broker names
    cluster, address -> filter servers                  (4.x brokers only)

Thread rule: one thread, the event loop's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from cometmq.model.flags import READ_WRITE, Perm
from cometmq.model.ids import MASTER_ID
from cometmq.model.route import BrokerData, QueueData, TopicRoute
from cometmq.model.topic import QUEUES_MAX, DataVersion
from cometmq.namesrv.liveness import CONNECTIONS_MAX, Line, LiveBroker, Liveness
from cometmq.namesrv.registration import MinIdChange, Registered, Registration, check_names
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

BROKERS_MAX: Final = 10_000
TOPICS_MAX: Final = 500_000
_WRITE: Final = int(Perm.WRITE)
MEMBER_TOPIC_PREFIX: Final = "rmq_sys_SYNC_BROKER_MEMBER_"


class _Broker(msgspec.Struct):
    cluster: str
    name: str
    addresses: dict[int, str]
    acting_master: bool = False


class RouteTable:
    def __init__(self) -> None:
        self.liveness = Liveness()
        self._topics: dict[str, dict[str, QueueData]] = {}
        self._brokers: dict[str, _Broker] = {}
        # Values are insertion-ordered sets, so that lists have a stable order.
        self._clusters: dict[str, dict[str, None]] = {}
        self._filter_servers: dict[tuple[str, str], list[str]] = {}

    def __repr__(self) -> str:
        return (
            f"<RouteTable {len(self._topics)} topics, {len(self.liveness)} brokers,"
            f" {len(self._clusters)} clusters>"
        )

    def register(
        self,
        registration: Registration,
        now: float,
        *,
        delete_missing_topics: bool = False,
        queues_max: int = QUEUES_MAX,
    ) -> Registered:
        """Store a registration; topics count only from the lowest id of the broker name.

        A topic with more than ``queues_max`` queues is left out: one mistake must not make a broker unavailable to
        everyone.

        Raises:
            Refused: the tables are full, the only topic has too many queues, or a single topic came from a broker that
                is not registered yet. If that were accepted, the broker's data version would be known, and its other
                topics would never be requested.
        """
        r = registration
        broker = self._brokers.get(r.broker_name)
        old_address = broker.addresses.get(r.broker_id) if broker else None
        if self._is_outranked(r):
            self.liveness.remove(r.cluster, r.address)
            return Registered()
        if old_address is None and len(r.topics) == 1:
            raise Refused(
                ResponseCode.SYSTEM_ERROR,
                f"register broker failed: {r.broker_name} id {r.broker_id} is not registered yet"
                " and sent one topic only; send the whole topic table first",
            )
        left_out = [
            name
            for name, topic in r.topics.items()
            if not (
                0 <= topic.read_queue_nums <= queues_max
                and 0 <= topic.write_queue_nums <= queues_max
            )
        ]
        if left_out and len(r.topics) == 1:
            fault = r.topics[left_out[0]].queues_fault(queues_max)
            raise Refused(ResponseCode.SYSTEM_ERROR, f"topic {left_out[0]} not taken: {fault}")
        self._check_room(r)
        if broker is None:
            broker = self._brokers[r.broker_name] = _Broker(r.cluster, r.broker_name, {})
        self._clusters.setdefault(r.cluster, {})[r.broker_name] = None
        broker.acting_master = bool(r.acting_master)
        # Java compares with 0 when the broker is new, so the first registration is not a change.
        previous_min = min(broker.addresses, default=0)
        for other_id in [i for i, a in broker.addresses.items() if a == r.address]:
            # A slave that became master: its address leaves the old id.
            if other_id != r.broker_id:
                del broker.addresses[other_id]
        is_first = r.broker_id not in broker.addresses
        broker.addresses[r.broker_id] = r.address
        self._take_topics(r, broker, is_first, delete_missing_topics, frozenset(left_out))
        self._note_alive(r, now)
        change = None
        if r.broker_id < previous_min:
            change = self._min_id_change(broker, None, r.ha_address)
        if r.broker_id == MASTER_ID:
            return Registered(min_id_change=change, left_out=left_out)
        return self._master_of(broker)._replace(min_id_change=change, left_out=left_out)

    def unregister(self, cluster: str, broker_name: str, address: str) -> MinIdChange | None:
        """Remove one address; the last address of a broker name takes its queues and its cluster entry with it."""
        self.liveness.remove(cluster, address)
        self._filter_servers.pop((cluster, address), None)
        broker = self._brokers.get(broker_name)
        if broker is None or address not in broker.addresses.values():
            return None
        previous_min = min(broker.addresses)
        broker.addresses = {i: a for i, a in broker.addresses.items() if a != address}
        if not broker.addresses:
            self._remove_broker(broker_name)
            return None
        if broker.acting_master and MASTER_ID not in broker.addresses:
            self._change_perm(broker_name, lambda perm: perm & ~_WRITE)
        if min(broker.addresses) == previous_min:
            return None
        return self._min_id_change(broker, address, None)

    def holders(self, broker_name: str, cluster: str, address: str) -> list[LiveBroker]:
        """The processes listed in routes under that broker name, or at that address."""
        return [
            live
            for live in self.liveness.near(broker_name, cluster, address)
            if (broker := self._brokers.get(live.broker_name)) is not None
            and broker.addresses.get(live.broker_id) == live.address
        ]

    def is_changed(self, cluster: str, address: str, version: DataVersion) -> bool:
        """Whether the topics of that broker are unknown here, or known in another version."""
        live = self.liveness.get(cluster, address)
        return live is None or live.version != version

    def route(self, topic: str, *, acting_master: bool = False) -> TopicRoute | None:
        """The route of a topic, or None. The caller owns the result; its queue data are shared and read-only."""
        queues = self._topics.get(topic)
        if not queues:
            return None
        route = TopicRoute(queue_datas=list(queues.values()))
        for name in queues:
            if broker := self._brokers.get(name):
                route.broker_datas.append(_data_of(broker))
                route.filter_server_table.update(self._filter_servers_of(broker))
        if not route.broker_datas:
            return None
        if acting_master and not topic.startswith(MEMBER_TOPIC_PREFIX):
            for data in route.broker_datas:
                if self._brokers[data.broker_name].acting_master:
                    _promote(data, queues[data.broker_name])
        return route

    def cluster_info(self) -> tuple[dict[str, BrokerData], dict[str, list[str]]]:
        """All brokers by name, and the broker names of each cluster."""
        brokers = {name: _data_of(broker) for name, broker in self._brokers.items()}
        return brokers, {cluster: list(names) for cluster, names in self._clusters.items()}

    def member_addresses(self, cluster: str, broker_name: str) -> dict[int, str]:
        broker = self._brokers.get(broker_name)
        if broker is None or broker.cluster != cluster:
            return {}
        return dict(broker.addresses)

    @property
    def topic_count(self) -> int:
        return len(self._topics)

    def topics(self) -> list[str]:
        return list(self._topics)

    def topics_of_cluster(self, cluster: str) -> list[str]:
        names = self._clusters.get(cluster, {})
        return [
            topic for topic, queues in self._topics.items() if not names.keys().isdisjoint(queues)
        ]

    def system_topics(self) -> tuple[list[str], str | None]:
        """Cluster and broker names, each of which is also a topic, and the address of some broker to ask for more."""
        topics = dict.fromkeys(
            n for cluster, names in self._clusters.items() for n in (cluster, *names)
        )
        addresses = (a for broker in self._brokers.values() for a in broker.addresses.values())
        return list(topics), next(addresses, None)

    def topics_with_flags(self, wanted: int, unwanted: int = 0) -> list[str]:
        """Topics whose system flag has all wanted bits (``TopicFlag``) and none of the unwanted."""
        return [
            topic
            for topic, queues in self._topics.items()
            if any(
                q.topic_sys_flag & wanted == wanted and not q.topic_sys_flag & unwanted
                for q in queues.values()
            )
        ]

    def wipe_write_perm(self, broker_name: str) -> int:
        """Remove the write bit from all topics of a broker until it registers a new version; returns their number."""
        return self._change_perm(broker_name, lambda perm: perm & ~_WRITE)

    def add_write_perm(self, broker_name: str) -> int:
        """Make all topics of a broker readable and writable; returns their number."""
        return self._change_perm(broker_name, lambda _: READ_WRITE)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Remove a topic, or its part in one cluster. Brokers may register it again."""
        if cluster is None:
            self._topics.pop(topic, None)
            return
        queues = self._topics.get(topic, {})
        for name in self._clusters.get(cluster, {}):
            queues.pop(name, None)
        if not queues:
            self._topics.pop(topic, None)

    def put_topic(
        self, topic: str, queue_datas: Iterable[QueueData], *, queues_max: int = QUEUES_MAX
    ) -> None:
        """Add a topic by hand.

        Raises:
            Refused: a broker name is not registered, the table is full, or there are too many queues. Nothing was
                added.
        """
        queues = {q.broker_name: q for q in queue_datas}
        for name, data in queues.items():
            if name not in self._brokers:
                raise Refused(ResponseCode.SYSTEM_ERROR, f"broker {name} is not registered here")
            if max(data.read_queue_nums, data.write_queue_nums) > queues_max:
                raise Refused(
                    ResponseCode.SYSTEM_ERROR,
                    f"topic {topic} not taken: more than {queues_max} queues on broker {name}",
                )
        check_names([topic])
        if len(self._topics) >= TOPICS_MAX and topic not in self._topics:
            raise _full("topics", TOPICS_MAX)
        if queues:
            self._topics.setdefault(topic, {}).update(queues)

    def _is_outranked(self, r: Registration) -> bool:
        """Whether another process holds this id with a higher state version (RocketMQ 5 after a failover)."""
        return any(
            old.is_same(r.broker_name, r.broker_id)
            and old.address != r.address
            and old.epoch > r.epoch
            for old in self.holders(r.broker_name, r.cluster, r.address)
        )

    def _check_room(self, r: Registration) -> None:
        check_names([r.cluster, r.broker_name])
        check_names(r.topics)
        if len(self.liveness) >= BROKERS_MAX and self.liveness.get(r.cluster, r.address) is None:
            raise _full("brokers", BROKERS_MAX)
        if len(self._topics) + len(r.topics) > TOPICS_MAX:
            new = sum(topic not in self._topics for topic in r.topics)
            if len(self._topics) + new > TOPICS_MAX:
                raise _full("topics", TOPICS_MAX)

    def _take_topics(
        self,
        r: Registration,
        broker: _Broker,
        is_first: bool,
        delete_missing: bool,
        left_out: frozenset[str],
    ) -> None:
        is_acting = r.acting_master is not None and r.broker_id == min(broker.addresses)
        if r.broker_id != MASTER_ID and not is_acting:
            return
        # One topic is never a whole table: it is a broker reporting a change to that topic.
        if delete_missing and len(r.topics) != 1:
            for topic in [t for t, q in self._topics.items() if r.broker_name in q]:
                if topic not in r.topics:
                    self._remove_queues(topic, r.broker_name)
        # A slave that acts as master can only be read from.
        mask = ~_WRITE if r.broker_id != MASTER_ID and r.acting_master else -1
        take_all = is_first or self.is_changed(r.cluster, r.address, r.version)
        for name, topic_config in r.topics.items():
            if name in left_out:
                continue
            queues = self._topics.setdefault(name, {})
            if take_all or r.broker_name not in queues:
                queues[r.broker_name] = QueueData(
                    broker_name=broker.name,
                    read_queue_nums=topic_config.read_queue_nums,
                    write_queue_nums=topic_config.write_queue_nums,
                    perm=topic_config.perm & mask,
                    topic_sys_flag=topic_config.topic_sys_flag,
                )

    def _note_alive(self, r: Registration, now: float) -> None:
        known = self.liveness.get(r.cluster, r.address)
        connections: tuple[Line, ...] = ()
        if known is not None and known.is_same(r.broker_name, r.broker_id):
            connections = known.connections
        if r.connection is not None and r.connection not in connections:
            connections = (*connections[: CONNECTIONS_MAX - 1], r.connection)
        self.liveness.put(
            LiveBroker(
                cluster=r.cluster,
                broker_name=r.broker_name,
                broker_id=r.broker_id,
                address=r.address,
                ha_address=r.ha_address,
                version=r.version,
                connections=connections,
                seen_at=now,
                silence_seconds=r.silence_seconds,
                is_signed=r.is_signed,
            )
        )
        if r.filter_servers:
            self._filter_servers[r.cluster, r.address] = r.filter_servers
        elif r.filter_servers is not None:
            self._filter_servers.pop((r.cluster, r.address), None)

    def _master_of(self, broker: _Broker) -> Registered:
        address = broker.addresses.get(MASTER_ID)
        live = self.liveness.get(broker.cluster, address) if address else None
        return Registered(live.address, live.ha_address) if live else Registered()

    def _remove_broker(self, broker_name: str) -> None:
        del self._brokers[broker_name]
        for cluster in [c for c, names in self._clusters.items() if broker_name in names]:
            del self._clusters[cluster][broker_name]
            if not self._clusters[cluster]:
                del self._clusters[cluster]
        for topic in [t for t, queues in self._topics.items() if broker_name in queues]:
            self._remove_queues(topic, broker_name)

    def _remove_queues(self, topic: str, broker_name: str) -> None:
        queues = self._topics[topic]
        del queues[broker_name]
        if not queues:
            del self._topics[topic]

    def _change_perm(self, broker_name: str, change: Callable[[int], int]) -> int:
        count = 0
        for queues in self._topics.values():
            if data := queues.get(broker_name):
                data.perm = change(data.perm)
                count += 1
        return count

    def _min_id_change(
        self, broker: _Broker, offline_address: str | None, ha_address: str | None
    ) -> MinIdChange:
        min_id = min(broker.addresses)
        is_for_all = offline_address is not None or len(broker.addresses) == 1
        return MinIdChange(
            broker_name=broker.name,
            min_id=min_id,
            min_address=broker.addresses[min_id],
            offline_address=offline_address,
            ha_address=ha_address,
            notify=[a for i, a in broker.addresses.items() if is_for_all or i != min_id],
        )

    def _filter_servers_of(self, broker: _Broker) -> dict[str, list[str]]:
        if not self._filter_servers:
            return {}
        found = {
            a: self._filter_servers.get((broker.cluster, a)) for a in broker.addresses.values()
        }
        return {address: servers for address, servers in found.items() if servers}


def _data_of(broker: _Broker) -> BrokerData:
    return BrokerData(
        cluster=broker.cluster, broker_name=broker.name, broker_addrs=dict(broker.addresses)
    )


def _promote(data: BrokerData, queues: QueueData) -> None:
    """List the lowest slave as id 0 while there is no master, so that consumers can continue (RocketMQ 5)."""
    if data.broker_addrs and MASTER_ID not in data.broker_addrs and not queues.perm & _WRITE:
        data.broker_addrs[MASTER_ID] = data.broker_addrs.pop(min(data.broker_addrs))


def _full(what: str, limit: int) -> Refused:
    return Refused(ResponseCode.SYSTEM_ERROR, f"register broker failed: over {limit} {what}")
