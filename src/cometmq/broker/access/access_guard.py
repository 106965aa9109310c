"""Stands before all processors: lets a request pass, or answers it with the refusal.

The signature of every request is checked. What an account may do is decided once per connection, account, request code,
topic and group, and kept until accounts change; a request that was decided before costs a lookup.
"""

from __future__ import annotations

import ipaddress
import logging
from typing import Final

from cometmq.access.identity import Identity, Judge
from cometmq.access.refusals import AccessRefused
from cometmq.access.rules.need import Action
from cometmq.broker.access.audit import Audit
from cometmq.model.address import split_address
from cometmq.protocol.command import Command
from cometmq.remoting.connection import REASON_CHARS_MAX, Connection

log = logging.getLogger("cometmq.access")

DECISIONS_MAX: Final = 1024
"""Kept for one connection."""
NAME_CHARS_MAX: Final = 512
"""Decisions about longer names are not kept."""

_NONE: Final = ""
"""Stands for a field that a request code does not have."""


class _Peer:
    """What is known about one connection."""

    __slots__ = ("allowed", "host")

    def __init__(self, host: str) -> None:
        self.host = host
        self.allowed: set[tuple[object, ...]] = set()


class AccessGuard:
    """Owned by the event loop."""

    def __init__(self, judge: Judge, audit: Audit | None = None) -> None:
        self._judge = judge
        self._identify = judge.identify
        self._audit = audit
        self._peers: dict[Connection, _Peer] = {}
        self._keys: dict[int, tuple[str, str] | None] = {}

    def guard(self, connection: Connection, command: Command) -> Command | None:
        peer = self._peers.get(connection)
        if peer is None:
            peer = self._meet(connection)
        try:
            identity = self._identify(peer.host, command)
            code, ext = command.code, command.ext
            keys = self._keys.get(code)
            if keys is None or ext is None:
                self._decide(peer, identity, command)
                return None
            topic_key, group_key = keys
            decision = (code, identity.name, ext.get(topic_key), ext.get(group_key))
            if decision not in peer.allowed:
                self._judge.permit(identity, peer.host, command)
                _keep(peer.allowed, decision)
        except AccessRefused as refusal:
            return self._refuse(connection, command, refusal)
        return None

    def identify(self, connection: Connection, command: Command) -> Identity:
        """Whom a request comes from that was let pass. Raises AccessRefused: the account has gone meanwhile."""
        peer = self._peers.get(connection) or self._meet(connection)
        return self._judge.identify(peer.host, command)

    def check_topic(
        self, connection: Connection, command: Command, topic: str, actions: frozenset[Action]
    ) -> None:
        """For processors that learn only from a record which topic a request is about. Raises AccessRefused."""
        peer = self._peers.get(connection) or self._meet(connection)
        identity = self._judge.identify(peer.host, command)
        self._judge.permit_topic(identity, peer.host, topic, actions)

    def forget(self, connection: Connection) -> None:
        """It has gone."""
        self._peers.pop(connection, None)

    def forget_all(self) -> None:
        """Accounts have changed."""
        self._peers.clear()

    def _meet(self, connection: Connection) -> _Peer:
        peer = _Peer(_host(connection.peer))
        # Of one that is closed nobody would tell that it can be forgotten.
        if not connection.is_closed:
            self._peers[connection] = peer
        return peer

    def _decide(self, peer: _Peer, identity: Identity, command: Command) -> None:
        """A decision that is not kept, or the first about a request code."""
        self._judge.permit(identity, peer.host, command)
        code = command.code
        if code not in self._keys:
            self._keys[code] = _pair(self._judge.keys(code))

    def _refuse(self, connection: Connection, command: Command, refusal: AccessRefused) -> Command:
        # Limited by the log: one line in a while per peer.
        log.warning(
            "access refused peer=%s code=%d oneway=%s reason=%s",
            connection.peer,
            command.code,
            command.is_oneway,
            refusal.remark[:REASON_CHARS_MAX],
        )
        if self._audit is not None:
            self._audit.refused(connection, command, refusal)
        return command.reply(refusal.code, refusal.remark)


def _pair(keys: tuple[str, ...] | None) -> tuple[str, str] | None:
    """Who names more than a topic and a group is an operator, and can wait for a new decision."""
    if keys is None or len(keys) > 2:
        return None
    first, second, *_ = (*keys, _NONE, _NONE)
    return first, second


def _keep(allowed: set[tuple[object, ...]], decision: tuple[object, ...]) -> None:
    if any(isinstance(part, str) and len(part) > NAME_CHARS_MAX for part in decision):
        return
    if len(allowed) >= DECISIONS_MAX:
        allowed.clear()
    allowed.add(decision)


def _host(peer: str) -> str:
    """The address of a peer; IPv4 if it came through a socket that serves both families."""
    host, _ = split_address(peer)
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
