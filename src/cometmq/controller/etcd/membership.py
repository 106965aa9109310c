"""Which controllers there are, and who of them leads: keys in etcd on a lease that each controller renews.

    PREFIX/controllers/NAME    where brokers find that controller
    PREFIX/leader              the same, of the one that acts by itself

Nothing depends on there being one leader at a time: two of them would decide one after the other, by compare-and-swap.
A lease is a duration, so clocks may differ.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from cometmq.base.errors import UsageError
from cometmq.base.ports import Clock
from cometmq.controller.etcd import etcd_words as words
from cometmq.controller.etcd.etcd_words import GrantReply, KeepAliveReply, KeyValue, RevokeReply
from cometmq.controller.etcd.gateway import EtcdGateway
from cometmq.controller.etcd.key_values import KeyValues
from cometmq.controller.peers import Peer, Roster
from cometmq.model.address import split_address

CONTROLLERS_MAX: Final = 64

_log = logging.getLogger("cometmq.controller")


class _Entry(msgspec.Struct):
    """The value of both kinds of keys."""

    name: str
    address: str


class Membership:
    """
    Args:
        own: this controller; its port is known once it listens.
    """

    def __init__(
        self,
        gateway: EtcdGateway,
        key_values: KeyValues,
        prefix: str,
        own: Callable[[], Peer],
        lease_seconds: int,
        clock: Clock,
    ) -> None:
        self._gateway = gateway
        self._key_values = key_values
        self._leader_key = f"{prefix}/leader".encode()
        self._peers_prefix = f"{prefix}/controllers/".encode()
        self._own = own
        self._lease_seconds = lease_seconds
        self._clock = clock
        self._lease = 0
        self._renewed_at = 0.0
        self._ttl = 0.0
        self._is_entered = False
        self._leader: KeyValue | None = None
        self._leader_seen_at = 0.0
        self._peers: dict[str, Peer] = {}
        self._rival = ""

    @property
    def leads(self) -> bool:
        return self._leader is not None and self._leader.lease == self._lease and self._is_held()

    def roster(self) -> Roster:
        own = self._own()
        peers = tuple(one for _, one in sorted({**self._peers, own.name: own}.items()))
        leader = own if self.leads else None
        # What was seen long ago may be over: whoever asks had better ask another controller.
        is_fresh = self._clock.monotonic() < self._leader_seen_at + self._lease_seconds
        if leader is None and self._leader is not None and is_fresh:
            leader = _peer(self._leader.value)
        return Roster(own, leader, peers)

    async def renew(self) -> None:
        """Keep the lease, or get one. Raises StoreError."""
        asked_at = self._clock.monotonic()
        if self._lease:
            kept = await self._gateway.call("lease/keepalive", {"ID": self._lease}, KeepAliveReply)
            if kept.reply.result.ttl > 0:
                self._renewed_at, self._ttl = asked_at, float(kept.reply.result.ttl)
                return
            _log.warning("lease lost: it was not renewed in time")
            self._lease = 0
        self._is_entered = False
        request = {"TTL": self._lease_seconds, "ID": 0}
        granted = (await self._gateway.call("lease/grant", request, GrantReply)).reply
        self._lease, self._renewed_at, self._ttl = granted.id, asked_at, float(granted.ttl)

    def look(self) -> list[words.Words]:
        """Asks for all controllers, and for the leader."""
        return [
            words.get_all(self._peers_prefix, limit=CONTROLLERS_MAX),
            words.get(self._leader_key),
        ]

    def take(self, peers: list[KeyValue], leader: list[KeyValue]) -> None:
        """The answer to ``look``."""
        found = {}
        for one in peers:
            peer = _peer(one.value)
            if peer is not None and one.key == self._peers_prefix + peer.name.encode():
                found[peer.name] = peer
        self._peers = found
        self._leader = leader[0] if leader else None
        self._leader_seen_at = self._clock.monotonic()

    async def enter(self) -> None:
        """Have this controller known, and lead if nobody does. After ``take``. Raises StoreError."""
        own = self._own()
        if self._is_named_twice(own) or not self._is_held():
            return
        value = msgspec.json.encode(_Entry(own.name, own.address))
        if not self._is_entered:
            key = self._peers_prefix + own.name.encode()
            await self._key_values.txn(words.txn([words.put(key, value, self._lease)]))
            self._is_entered = True
        if self._leader is None or not _is_leaders(self._leader):
            seen = 0 if self._leader is None else self._leader.mod_revision
            request = words.txn(
                [words.put(self._leader_key, value, self._lease)],
                condition=words.unchanged_since(self._leader_key, seen),
            )
            answer = await self._key_values.txn(request)
            if answer.reply.succeeded:
                self._leader = KeyValue(self._leader_key, value, lease=self._lease)

    async def resign(self) -> None:
        """Let another one lead at once. Raises StoreError."""
        lease, self._lease = self._lease, 0
        if lease:
            await self._gateway.call("lease/revoke", {"ID": lease}, RevokeReply)

    def _is_held(self) -> bool:
        """Seen from here, where the lease began when it was asked for, it ends before it does at etcd."""
        return self._lease != 0 and self._clock.monotonic() < self._renewed_at + self._ttl

    def _is_named_twice(self, own: Peer) -> bool:
        """Who restarts finds its own entry for a moment. Another address is another controller."""
        other = self._peers.get(own.name)
        rival = "" if other is None or other == own else other.address
        if rival and rival != self._rival:
            _log.error(
                "controller name taken name=%s by=%s: give each one its own controllerDLegerSelfId",
                own.name,
                rival,
            )
        self._rival = rival
        return bool(rival)


def _is_leaders(found: KeyValue) -> bool:
    """What another program has put there would never run out, and nobody would lead."""
    return found.lease != 0 and _peer(found.value) is not None


def _peer(value: bytes) -> Peer | None:
    """None for what no controller has written."""
    try:
        entry = msgspec.json.decode(value, type=_Entry)
        return Peer(entry.name, *split_address(entry.address))
    except (msgspec.DecodeError, UnicodeDecodeError, UsageError):
        return None
