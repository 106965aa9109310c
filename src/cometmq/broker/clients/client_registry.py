"""Who is connected: producers by group, and consumers by group with what they subscribe to.

Fed by heartbeats, emptied by unregister requests, closed connections and silence. A client is known by its
connection; the same client id on a new connection is a new entry until the old connection is gone.
Owned by the event loop; no I/O. ``consumer_notifier`` tells the clients about changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from cometmq.base.ports import Clock
from cometmq.broker.clients.subscription_mismatch import (
    Mismatch,
    find_mismatches,
    subscription_keys,
)
from cometmq.model.subscription import SubscriptionData
from cometmq.remoting.connection import Connection

SUBSCRIPTION_BYTES: Final = 300
TAG_BYTES: Final = 50


class Client:
    """One connection's membership in one group."""

    __slots__ = (
        "account",
        "client_id",
        "connection",
        "language",
        "retries_max",
        "seen_at",
        "seen_ms",
        "subscriptions",
        "version",
    )

    def __init__(self, connection: Connection, client_id: str, language: str, version: int) -> None:
        self.connection = connection
        self.client_id = client_id
        self.language = language
        self.version = version
        self.account = ""
        """As a producer; "" if nobody is known."""
        self.seen_at = 0.0
        """Monotonic time of the last heartbeat, by which it expires."""
        self.seen_ms = 0
        """The same as wall time, for people."""
        self.subscriptions: tuple[SubscriptionData, ...] = ()
        """What it subscribes to itself, as a consumer."""
        self.retries_max: int | None = None
        """How often it wants messages tried again; None when it has not said so yet."""

    def __repr__(self) -> str:
        return f"<Client {self.client_id} at {self.connection.peer}>"


class ConsumerGroup:
    """The online part of a consumer group."""

    __slots__ = (
        "_mismatches",
        "clients",
        "consume_from_where",
        "consume_type",
        "message_model",
        "name",
        "subscriptions",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.consume_type = ""
        self.message_model = ""
        self.consume_from_where = ""
        self.subscriptions: dict[str, SubscriptionData] = {}
        self.clients: dict[Connection, Client] = {}
        self._mismatches: dict[str, Mismatch] | None = {}

    @property
    def mismatches(self) -> Mapping[str, Mismatch]:
        """The topics that its members want different messages of."""
        if self._mismatches is None:
            # A client that reconnects counts by its newest connection.
            self._mismatches = find_mismatches(
                {client.client_id: client.subscriptions for client in self.clients.values()}
            )
        return self._mismatches

    def client_ids(self) -> list[str]:
        """Each id once: a client that reconnects must not count twice when queues are shared out."""
        return list(dict.fromkeys(client.client_id for client in self.clients.values()))

    def find(self, client_id: str) -> Client | None:
        """The client of that id; the newest connection when it has several."""
        found = None
        for client in self.clients.values():
            if client.client_id == client_id:
                found = client
        return found

    def subscribe(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Make the subscriptions those of a heartbeat; True when the set of topics changed."""
        changed = False
        topics = set()
        for subscription in subscriptions:
            topics.add(subscription.topic)
            known = self.subscriptions.get(subscription.topic)
            if known is None:
                changed = True
                self.subscriptions[subscription.topic] = subscription
            elif subscription.sub_version > known.sub_version:
                self.subscriptions[subscription.topic] = subscription
        for topic in [topic for topic in self.subscriptions if topic not in topics]:
            changed = True
            del self.subscriptions[topic]
        return changed

    def retries_max(self, connection: Connection, said: int) -> int:
        """How often messages of the group are tried again, when the member on ``connection`` says how often.

        The member that came last decides for all, of those that have said something.
        """
        sender = self.clients.get(connection)
        if sender is not None:
            sender.retries_max = said
        for client in reversed(self.clients.values()):
            if client.retries_max is not None:
                return client.retries_max
        return said

    def member_subscribed(
        self, client: Client, subscriptions: tuple[SubscriptionData, ...]
    ) -> None:
        """Note what one member subscribes to."""
        if subscription_keys(subscriptions) != subscription_keys(client.subscriptions):
            self._mismatches = None
        client.subscriptions = subscriptions

    def members_changed(self) -> None:
        """Somebody came or left."""
        self._mismatches = None

    def __repr__(self) -> str:
        return f"<ConsumerGroup {self.name} {len(self.clients)} clients>"


class ClientRegistry:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._producers: dict[str, dict[Connection, Client]] = {}
        self._consumers: dict[str, ConsumerGroup] = {}
        self._producers_by_id: dict[str, Client] = {}
        # Groups of a connection, so that a closed one leaves without a walk over all groups.
        self._memberships: dict[Connection, tuple[set[str], set[str]]] = {}
        self._membership_count = 0
        self._subscription_bytes = 0
        self.change_count = 0
        """Grows with everything that a consumer or its going says, so that caches know when to ask again."""

    @property
    def producers(self) -> Mapping[str, Mapping[Connection, Client]]:
        return self._producers

    @property
    def consumers(self) -> Mapping[str, ConsumerGroup]:
        return self._consumers

    def consumer_group(self, group: str) -> ConsumerGroup | None:
        return self._consumers.get(group)

    def find_producer(self, client_id: str) -> Client | None:
        """A producing client by its id; its newest connection when it has several.

        An id stays with the account that has it: replies to a client must not go to somebody who gives the same id.
        """
        return self._producers_by_id.get(client_id)

    def groups_subscribing(self, topic: str) -> Iterator[str]:
        """Online consumer groups that want a topic."""
        for name, group in self._consumers.items():
            if topic in group.subscriptions:
                yield name

    def group_count(self, connection: Connection) -> int:
        """Groups a connection is a member of."""
        producers, consumers = self._memberships.get(connection, ((), ()))
        return len(producers) + len(consumers)

    def new_groups(
        self, connection: Connection, producers: Iterable[str], consumers: Iterable[str]
    ) -> int:
        """How many of these groups a connection is not a member of yet."""
        as_producer, as_consumer = self._memberships.get(connection, (set(), set()))
        return len(set(producers) - as_producer) + len(set(consumers) - as_consumer)

    @property
    def membership_count(self) -> int:
        """Memberships of all connections."""
        return self._membership_count

    @property
    def subscription_bytes(self) -> int:
        """What the subscriptions of all connections take, roughly."""
        return self._subscription_bytes

    def subscriptions_of(
        self, connection: Connection
    ) -> Mapping[str, tuple[SubscriptionData, ...]]:
        """What a connection subscribes to, by group."""
        _, groups = self._memberships.get(connection, ((), ()))
        return {group: self._consumers[group].clients[connection].subscriptions for group in groups}

    def register_producer(
        self,
        group: str,
        connection: Connection,
        *,
        client_id: str,
        language: str,
        version: int,
        account: str = "",
    ) -> None:
        clients = self._producers.setdefault(group, {})
        before = clients.get(connection)
        self._touch(clients, connection, client_id, language, version)
        self._join(connection, 0, group)
        if before is not None and before.client_id != client_id:
            self._find_again(before)
        client = clients[connection]
        client.account = account
        holder = self._producers_by_id.get(client_id)
        if holder is None or holder.account == account or holder.connection.is_closed:
            self._producers_by_id[client_id] = client

    def register_consumer(
        self,
        group: str,
        connection: Connection,
        *,
        client_id: str,
        language: str,
        version: int,
        consume_type: str,
        message_model: str,
        consume_from_where: str,
        subscriptions: Iterable[SubscriptionData],
    ) -> bool:
        """Note a consumer's heartbeat; True when the group's clients must rebalance."""
        self.change_count += 1
        entry = self._consumers.get(group)
        if entry is None:
            entry = self._consumers[group] = ConsumerGroup(group)
        entry.consume_type = consume_type
        entry.message_model = message_model
        entry.consume_from_where = consume_from_where
        latest = tuple(subscriptions)
        before = entry.clients.get(connection)
        is_new = self._touch(entry.clients, connection, client_id, language, version)
        if is_new:
            entry.members_changed()
        self._subscription_bytes += text_bytes(latest) - _kept_bytes(before)
        entry.member_subscribed(entry.clients[connection], latest)
        self._join(connection, 1, group)
        topics_changed = entry.subscribe(latest)
        return is_new or topics_changed

    def unregister_producer(self, group: str, connection: Connection) -> None:
        clients = self._producers.get(group)
        if clients is not None:
            left = clients.pop(connection, None)
            if not clients:
                del self._producers[group]
            self._leave(connection, 0, group)
            if left is not None:
                self._find_again(left)

    def unregister_consumer(self, group: str, connection: Connection) -> bool:
        """True when the connection was a member, so that those who stay must rebalance."""
        self.change_count += 1
        entry = self._consumers.get(group)
        client = None if entry is None else entry.clients.pop(connection, None)
        self._subscription_bytes -= _kept_bytes(client)
        if entry is not None:
            entry.members_changed()
            if not entry.clients:
                del self._consumers[group]
        self._leave(connection, 1, group)
        return client is not None

    def forget(self, connection: Connection) -> list[str]:
        """Take a closed connection out of everything; the consumer groups it left are returned."""
        producers, consumers = self._memberships.get(connection, (set(), set()))
        for group in list(producers):
            self.unregister_producer(group, connection)
        return [group for group in list(consumers) if self.unregister_consumer(group, connection)]

    def expired(self, silent_seconds: float) -> list[Connection]:
        """Connections that registered and have been silent in some group for longer than that."""
        oldest = self._clock.monotonic() - silent_seconds
        tables = [*self._producers.values(), *(group.clients for group in self._consumers.values())]
        return list(
            dict.fromkeys(
                connection
                for clients in tables
                for connection, client in clients.items()
                if client.seen_at < oldest
            )
        )

    def _touch(
        self,
        clients: dict[Connection, Client],
        connection: Connection,
        client_id: str,
        language: str,
        version: int,
    ) -> bool:
        client = clients.get(connection)
        is_new = client is None or client.client_id != client_id
        if client is None or is_new:
            client = clients[connection] = Client(connection, client_id, language, version)
        client.seen_at = self._clock.monotonic()
        client.seen_ms = self._clock.wall_ms()
        return is_new

    def _find_again(self, left: Client) -> None:
        """A producer left a group. If it was found by that, it may be found by another."""
        if self._producers_by_id.get(left.client_id) is not left:
            return
        del self._producers_by_id[left.client_id]
        groups, _ = self._memberships.get(left.connection, ((), ()))
        for group in groups:
            other = self._producers[group][left.connection]
            if other.client_id == left.client_id:
                self._producers_by_id[left.client_id] = other
                return

    def _join(self, connection: Connection, kind: int, group: str) -> None:
        groups = self._memberships.setdefault(connection, (set(), set()))[kind]
        if group not in groups:
            groups.add(group)
            self._membership_count += 1

    def _leave(self, connection: Connection, kind: int, group: str) -> None:
        groups = self._memberships.get(connection)
        if groups is not None:
            if group in groups[kind]:
                groups[kind].remove(group)
                self._membership_count -= 1
            if not groups[0] and not groups[1]:
                del self._memberships[connection]

    def __repr__(self) -> str:
        return (
            f"<ClientRegistry {len(self._memberships)} connections, "
            f"{len(self._producers)} producer and {len(self._consumers)} consumer groups>"
        )


def text_bytes(subscriptions: Iterable[SubscriptionData]) -> int:
    """What subscriptions take as long as they are kept, roughly."""
    return sum(
        SUBSCRIPTION_BYTES
        + len(one.topic)
        + len(one.sub_string)
        + len(one.filter_class_source or "")
        + sum(TAG_BYTES + len(tag) for tag in one.tags_set)
        + TAG_BYTES * len(one.code_set)
        for one in subscriptions
    )


def _kept_bytes(client: Client | None) -> int:
    return 0 if client is None else text_bytes(client.subscriptions)
