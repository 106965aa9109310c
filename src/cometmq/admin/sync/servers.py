"""The blocking face of ``cometmq.admin.servers``. Written by tools/admin_sync.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cometmq.admin.fan_out import ByServer, Listing
from cometmq.admin.servers.brokers import CONSUME_STATS_SECONDS
from cometmq.admin.servers.brokers import Brokers as AsyncBrokers
from cometmq.admin.servers.clusters import BrokerRow, Cluster
from cometmq.admin.servers.clusters import Clusters as AsyncClusters
from cometmq.admin.servers.controllers import Controllers as AsyncControllers
from cometmq.admin.servers.controllers import Election
from cometmq.admin.servers.name_servers import KeyValues as AsyncKeyValues
from cometmq.admin.servers.name_servers import NameServers as AsyncNameServers
from cometmq.admin.servers.replication import Replication as AsyncReplication
from cometmq.admin.sync.room import Room
from cometmq.admin.target import ALL_BROKERS, EVERY_SERVER, Place, Target
from cometmq.protocol.bodies.ha import EpochCache, HaStatus, ReplicasInfo
from cometmq.protocol.bodies.route import ClusterInfo
from cometmq.protocol.bodies.stats import BrokerConsumeStats, BrokerStatsData
from cometmq.protocol.headers.controller import GetMetadataInfoReply


class Clusters(Room[AsyncClusters]):
    """``admin.clusters``"""

    def all(self) -> list[Cluster]:
        """All clusters that a name server knows, by name.

        Raises:
            NoNameServer: none answers.
        """
        return self._run(self._aio.all)

    def info(self) -> ClusterInfo:
        """The same as the name server tells it."""
        return self._run(self._aio.info)

    def brokers(self, target: Target = EVERY_SERVER) -> Listing[BrokerRow]:
        """Brokers and their figures. One that does not answer has a row without figures, and is in ``failed``."""
        return self._run(self._aio.brokers, target)


class Brokers(Room[AsyncBrokers]):
    """``admin.brokers``"""

    def places(self, target: Target = ALL_BROKERS) -> list[Place]:
        """The brokers that a target means, as a name server knows them."""
        return self._run(self._aio.places, target)

    def runtime(self, target: Target = ALL_BROKERS) -> ByServer[dict[str, str]]:
        """What brokers tell about themselves, by RocketMQ's names (28); ``BrokerFigures`` reads them."""
        return self._run(self._aio.runtime, target)

    def settings(self, target: Target = ALL_BROKERS) -> ByServer[dict[str, str]]:
        """The settings that brokers run with (26)."""
        return self._run(self._aio.settings, target)

    def update_settings(
        self, values: Mapping[str, str], target: Target = ALL_BROKERS
    ) -> ByServer[str]:
        """Change settings (25). The answers are remarks: ours say what takes effect at the next start only.

        RocketMQ's broker ignores values that do not fit, and says nothing; read them back.
        """
        return self._run(self._aio.update_settings, values, target)

    def consume_stats(
        self,
        target: Target = ALL_BROKERS,
        *,
        only_ordered: bool = False,
        timeout: float = CONSUME_STATS_SECONDS,
    ) -> ByServer[BrokerConsumeStats]:
        """The positions of all groups at each broker (317)."""
        return self._run(
            self._aio.consume_stats, target, only_ordered=only_ordered, timeout=timeout
        )

    def stats(
        self, name: str, key: str, target: Target = ALL_BROKERS
    ) -> ByServer[BrokerStatsData | None]:
        """A counter that brokers keep (315), such as ``TOPIC_PUT_NUMS`` of a topic; None where it never counted."""
        return self._run(self._aio.stats, name, key, target)

    def system_topics(self, target: Target = ALL_BROKERS) -> ByServer[list[str]]:
        """Topics that brokers keep for themselves (305)."""
        return self._run(self._aio.system_topics, target)

    def clean_expired_queues(self, target: Target = ALL_BROKERS) -> ByServer[None]:
        """Remove queue files of which no message is left in the log (306)."""
        return self._run(self._aio.clean_expired_queues, target)

    def clean_unused_topics(self, target: Target = ALL_BROKERS) -> ByServer[None]:
        """Remove queues of topics that are no longer defined (316)."""
        return self._run(self._aio.clean_unused_topics, target)

    def delete_expired_log(self, target: Target = ALL_BROKERS) -> ByServer[None]:
        """Delete log files that are older than they are to be kept, now and not at the set hour (329)."""
        return self._run(self._aio.delete_expired_log, target)


class NameServers(Room[AsyncNameServers]):
    """``admin.name_servers``. They do not talk to each other, so all of them are told of a change."""

    @property
    def addresses(self) -> list[str]:

        return self._aio.addresses

    def settings(self) -> ByServer[dict[str, str]]:
        """The settings that name servers run with (319)."""
        return self._run(self._aio.settings)

    def brokers(self) -> ByServer[list[Place]]:
        """The brokers that each name server knows (106). They differ while one comes or goes, and if one is cut off."""
        return self._run(self._aio.brokers)

    def update_settings(self, values: Mapping[str, str]) -> ByServer[str]:
        """Change settings (318). The answers are remarks."""
        return self._run(self._aio.update_settings, values)

    def wipe_write_perm(self, broker_name: str) -> ByServer[int]:
        """Clients send nothing more to a broker (205), as before a stop. The answers count its topics; 0: not known."""
        return self._run(self._aio.wipe_write_perm, broker_name)

    def add_write_perm(self, broker_name: str) -> ByServer[int]:
        """Clients send to a broker again (327). The answers count its topics; 0: not known."""
        return self._run(self._aio.add_write_perm, broker_name)


class KeyValues(Room[AsyncKeyValues]):
    """``admin.kv``: texts that name servers keep, by namespace and key."""

    def get(self, namespace: str, key: str) -> str | None:
        """A value, as the first name server that answers has it; None if there is none (101)."""
        return self._run(self._aio.get, namespace, key)

    def of_namespace(self, namespace: str) -> dict[str, str]:
        """All values of a namespace, as the first name server that answers has them (219)."""
        return self._run(self._aio.of_namespace, namespace)

    def put(self, namespace: str, key: str, value: str) -> ByServer[None]:
        """Store a value at all name servers (100)."""
        return self._run(self._aio.put, namespace, key, value)

    def delete(self, namespace: str, key: str) -> ByServer[None]:
        """Remove a value at all name servers; one that is not there is no mistake (102)."""
        return self._run(self._aio.delete, namespace, key)


class Controllers(Room[AsyncControllers]):
    """``admin.controllers``. Their addresses are given to ``Admin``; questions go to the one that leads."""

    def metadata(self) -> ByServer[GetMetadataInfoReply]:
        """What each controller knows of the others (1005)."""
        return self._run(self._aio.metadata)

    def leader(self) -> str:
        """The address of the controller that leads.

        Raises:
            PartialFailure: no controller knows one, because they do not answer.
            NoSuchName: those that answer know none.
        """
        return self._run(self._aio.leader)

    def sync_states(
        self, broker_names: Sequence[str] = (), *, cluster: str | None = None
    ) -> dict[str, ReplicasInfo]:
        """Masters and replicas by broker name (1006): of these names, or of all that a name server knows."""
        return self._run(self._aio.sync_states, broker_names, cluster=cluster)

    def elect(self, cluster: str, broker_name: str, broker_id: int) -> Election:
        """Make a broker the master of its group (1002).

        Args:
            broker_id: its permanent id, which ``sync_states`` tells.

        Raises:
            MasterStillExist: the present master is alive; a controller replaces only one that is not.
        """
        return self._run(self._aio.elect, cluster, broker_name, broker_id)

    def clean_broker(
        self,
        broker_name: str,
        *,
        cluster: str | None = None,
        broker_ids: Sequence[int] = (),
        with_living: bool = False,
    ) -> None:
        """Have controllers forget brokers that are gone for good (1011).

        Args:
            broker_ids: their permanent ids; empty: all of the name.
            with_living: those, too, that still send heartbeats.
        """
        return self._run(
            self._aio.clean_broker,
            broker_name,
            cluster=cluster,
            broker_ids=broker_ids,
            with_living=with_living,
        )

    def settings(self) -> ByServer[dict[str, str]]:
        """The settings that controllers run with (1010)."""
        return self._run(self._aio.settings)

    def update_settings(self, values: Mapping[str, str]) -> ByServer[str]:
        """Change settings (1009). The answers are remarks."""
        return self._run(self._aio.update_settings, values)


class Replication(Room[AsyncReplication]):
    """``admin.replication``. RocketMQ 4 answers none of these: ``failed`` has ``RequestCodeNotSupported`` then."""

    def status(self, target: Target = ALL_BROKERS) -> ByServer[HaStatus]:
        """How far the slaves of each master are, or a slave itself is (907)."""
        return self._run(self._aio.status, target)

    def epochs(self, target: Target = EVERY_SERVER) -> ByServer[EpochCache]:
        """Which part of a log was written under which master (1007); only brokers under a controller have it."""
        return self._run(self._aio.epochs, target)

    def reset_master_flush_offset(self, address: str, offset: int) -> None:
        """Tell a slave how far its master's log is on disk (908)."""
        return self._run(self._aio.reset_master_flush_offset, address, offset)
