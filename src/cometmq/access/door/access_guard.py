"""Stands before all processors: lets a request pass, or answers it with the refusal.

The signature of every request is checked. What an account may do is decided once per connection, account, request code,
topic and group, and kept until accounts change; a request that was decided before costs a lookup. Of the sends of a
run, all that are alike cost one, and their signatures are checked together.
"""

from __future__ import annotations

import ipaddress
import logging
from typing import Any, Final, NamedTuple

from cometmq.access.door.audit_watch import Audit
from cometmq.access.identity import Identity, Judge
from cometmq.access.refusals import AccessRefused
from cometmq.access.rules.need import PUB, Action
from cometmq.model.address import split_address
from cometmq.native.send_run import Claim, SendRun
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import ACCESS_KEY, PASSED_ON_FOR
from cometmq.remoting.connection import REASON_CHARS_MAX, Connection

log = logging.getLogger("cometmq.access")

DECISIONS_MAX: Final = 1024
"""Kept for one connection."""
NAME_CHARS_MAX: Final = 512
"""Decisions about longer names are not kept."""

_NONE: Final = ""
"""Stands for a field that a request code does not have."""


class _Known(NamedTuple):
    """What requests of a run may claim that are signed with a key."""

    claim: Claim
    key: Any
    identity: Identity


class _Peer:
    """What is known about one connection."""

    __slots__ = ("allowed", "host", "identity", "known", "subject")

    def __init__(self, host: str, subject: str) -> None:
        self.host = host
        self.subject = subject
        self.identity: Identity | None = None
        """Of the last request; None if it was of nobody known."""
        self.allowed: set[tuple[object, ...]] = set()
        self.known: _Known | None = None
        """Of the last run, which the next one goes on with."""


class AccessGuard:
    """Owned by the event loop.

    Args:
        subject_is_account: whether a peer with a certificate need not sign.
    """

    def __init__(
        self, judge: Judge, audit: Audit | None = None, *, subject_is_account: bool = False
    ) -> None:
        self._judge = judge
        self._identify_signed = judge.identify
        self._subject_is_account = subject_is_account
        self._audit = audit
        self._peers: dict[Connection, _Peer] = {}
        self._keys: dict[int, tuple[str, str] | None] = {}

    def guard(self, connection: Connection, command: Command) -> Command | None:
        peer = self._peers.get(connection)
        if peer is None:
            peer = self._meet(connection)
        try:
            peer.identity = None
            identity = (
                self._named(peer, command)
                if peer.subject
                else self._identify_signed(peer.host, command)
            )
            if identity.is_super or identity.is_free:
                identity = self._meant(identity, command)
            peer.identity = identity
            code, ext = command.code, command.ext
            keys = self._keys.get(code)
            if keys is None or ext is None:
                self._permit(connection, peer, identity, command)
                if code not in self._keys:
                    self._keys[code] = _pair(self._judge.keys(code))
                return None
            topic_key, group_key = keys
            decision = (code, identity.name, ext.get(topic_key), ext.get(group_key))
            if decision not in peer.allowed:
                self._permit(connection, peer, identity, command)
                _keep(peer.allowed, decision)
        except AccessRefused as refusal:
            return self._refuse(connection, command, refusal)
        return None

    def vouch(self, connection: Connection, run: SendRun, start: int, stop: int) -> int:
        """Where the requests of a run end, from ``start`` on, that pass for certain: signed, and decided before."""
        peer = self._peers.get(connection)
        if peer is None or peer.subject or start == stop:
            return start
        at, known = start, peer.known
        if known is not None and (end := run.signed(at, stop, known.claim, known.key)) > at:
            peer.identity, at = known.identity, end
        while at < stop:
            known = self._known(peer, run, at)
            if known is None or (end := run.signed(at, stop, known.claim, known.key)) == at:
                break
            peer.known, peer.identity, at = known, known.identity, end
        return at

    def _known(self, peer: _Peer, run: SendRun, at: int) -> _Known | None:
        """What the request claims that begins there, if only its signature has to be looked at."""
        claim = run.claim(at, self._keys)
        if claim is None or claim.said not in peer.allowed:
            return None
        signer = self._judge.signer(peer.host, claim.said[1])
        if signer is None:
            return None
        identity, verifier = signer
        return _Known(claim, verifier.key, identity)

    def identify(self, connection: Connection, command: Command) -> Identity:
        """Whom a request comes from that was let pass. Raises AccessRefused: the account has gone meanwhile."""
        return self._identify(self._peers.get(connection) or self._meet(connection), command)

    def check_topic(
        self, connection: Connection, command: Command, topic: str, actions: frozenset[Action]
    ) -> None:
        """For processors that learn only from a record which topic a request is about. Raises AccessRefused."""
        peer = self._peers.get(connection) or self._meet(connection)
        identity = self._identify(peer, command)
        self._judge.permit_topic(identity, peer.host, topic, actions)

    def certified(self, subject: str) -> Identity | None:
        """The account of a name in a certificate; None if such names are no accounts, or there is none."""
        if not subject or not self._subject_is_account:
            return None
        try:
            return self._judge.certified(subject)
        except AccessRefused:
            return None

    def account_of(self, connection: Connection) -> str:
        """Whose the last request over a connection was; "" if of nobody known."""
        peer = self._peers.get(connection)
        return "" if peer is None or peer.identity is None else peer.identity.name

    def may_publish(self, connection: Connection, topic: str) -> bool:
        """Whether the account whose request came last over a connection may publish to a topic now."""
        peer = self._peers.get(connection)
        if peer is None or (identity := peer.identity) is None:
            return False
        try:
            if identity.name and not identity.is_free:
                # It may have been changed or removed since.
                identity = self._judge.certified(identity.name)
            self._judge.permit_topic(identity, peer.host, topic, PUB)
        except AccessRefused:
            return False
        return True

    def forget(self, connection: Connection) -> None:
        """It has gone."""
        self._peers.pop(connection, None)

    def forget_all(self) -> None:
        """Accounts have changed."""
        for peer in self._peers.values():
            peer.allowed.clear()
            peer.known = None

    def _meet(self, connection: Connection) -> _Peer:
        subject = connection.subject if self._subject_is_account else ""
        peer = _Peer(host_of(connection.peer), subject)
        # Of one that is closed nobody would tell that it can be forgotten.
        if not connection.is_closed:
            self._peers[connection] = peer
        return peer

    def _identify(self, peer: _Peer, command: Command) -> Identity:
        return self._meant(self._named(peer, command), command)

    def _named(self, peer: _Peer, command: Command) -> Identity:
        if peer.subject and not (command.ext or {}).get(ACCESS_KEY):
            return self._judge.certified(peer.subject)
        return self._identify_signed(peer.host, command)

    def _meant(self, identity: Identity, command: Command) -> Identity:
        """Whose rights count: those of a client, if a broker passes on its request."""
        name = (command.ext or {}).get(PASSED_ON_FOR)
        if not name or not (identity.is_super or identity.is_free):
            return identity
        return self._judge.certified(name)

    def _permit(
        self, connection: Connection, peer: _Peer, identity: Identity, command: Command
    ) -> None:
        """A decision that was not made before, or is not kept."""
        self._judge.permit(identity, peer.host, command)
        if identity.is_stranger:
            # Limited by the log: one line in a while per peer.
            log.warning("request without an account peer=%s code=%d", connection.peer, command.code)

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


def host_of(peer: str) -> str:
    """The address of a peer, without the port."""
    return plain_host(split_address(peer)[0])


def plain_host(host: str) -> str:
    """IPv4 if it came through a socket that serves both families."""
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
