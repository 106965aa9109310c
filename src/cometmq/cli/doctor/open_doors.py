"""Checks of what is open: access without an account, plain text, certificates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cometmq.cli.doctor.facts import ClusterFacts, ServerFacts
from cometmq.cli.doctor.finding import Finding, Level

DAY_MS: Final = 24 * 3600 * 1000
SOON_DAYS: Final = 30


def anonymous_access(facts: ClusterFacts) -> Iterator[Finding]:
    for server in facts.servers:
        if server.serves_strangers:
            yield Finding(
                level=_level(server),
                name="anonymous-access",
                subject=server.title,
                text=f"serves everybody who reaches it, without an account{_only_here(server)}",
                remedy="set authenticationEnabled=true and authorizationEnabled=true with users, or make a new "
                "set-up with `cometmq init`",
            )


def plain_text(facts: ClusterFacts) -> Iterator[Finding]:
    for server in facts.servers:
        if server.takes_plain_text:
            yield Finding(
                level=_level(server),
                name="plain-text",
                subject=server.title,
                text="answers without TLS: what is sent can be read and changed on the way"
                + _only_here(server),
                remedy="set tls.server.mode=enforcing and a certificate in the file of tls.config.file, once all "
                "clients use TLS",
            )


def replication(facts: ClusterFacts) -> Iterator[Finding]:
    """Only where there is any: each replica names the port that others copy from."""
    for place in facts.places:
        server = facts.server(place.address)
        has_replicas = sum(one.broker_name == place.broker_name for one in facts.places) > 1
        if server is None or server.settings is None or not has_replicas:
            continue
        if server.settings.get("haTlsEnable") != "true":
            yield Finding(
                level=_level(server),
                name="replication-plain-text",
                subject=server.title,
                text="copies its log to replicas without TLS: messages can be read on the way"
                + _only_here(server),
                remedy="set haTlsEnable=true on all replicas, if none of them is RocketMQ's",
            )


def certificates(facts: ClusterFacts) -> Iterator[Finding]:
    for server in facts.servers:
        if server.tls is None:
            continue
        certificate = server.tls.certificate
        if certificate is None:
            yield Finding(
                level=Level.UNKNOWN,
                name="certificate-unread",
                subject=server.title,
                text="its certificate could not be read here",
                remedy="install what reads certificates: pip install 'cometmq[accounts]'",
            )
            continue
        days = (certificate.valid_until_ms - facts.now_ms) // DAY_MS
        renewal = "issue a new one: `cometmq init DIRECTORY --renew`, or your own authority"
        if facts.now_ms >= certificate.valid_until_ms:
            yield _certificate(server, "certificate-expired", f"expired {-days} days ago", renewal)
        elif facts.now_ms < certificate.valid_from_ms:
            yield _certificate(
                server,
                "certificate-not-yet-valid",
                "is not valid yet",
                "set the clocks of server and clients right",
            )
        elif days < SOON_DAYS:
            yield _certificate(
                server, "certificate-expires-soon", f"expires in {days} days", renewal
            )
        if not _is_for(certificate.hosts, server.host):
            named = ", ".join(certificate.hosts) or "no host"
            yield _certificate(
                server,
                "certificate-of-another-host",
                f"is for {named}, not for {server.host}: clients that check names go away",
                f"issue one for {server.host}: `cometmq init DIRECTORY --renew --host {server.host}`",
            )
        elif server.tls.distrust:
            yield _certificate(
                server,
                "certificate-not-trusted",
                f"is not accepted: {server.tls.distrust}",
                "set tls.client.trustCertPath of the clients to the authority that issued it",
            )


def own_client(facts: ClusterFacts) -> Iterator[Finding]:
    client = facts.client
    if client.has_tls and not client.verifies_server:
        yield Finding(
            level=Level.PROBLEM,
            name="server-not-verified",
            subject="this client",
            text="talks TLS with whoever answers: somebody in between could pass for a server",
            remedy="set tls.client.authServer=true, tls.client.checkHostname=true and tls.client.trustCertPath",
        )


def _is_for(names: tuple[str, ...], host: str) -> bool:
    """A star stands for the first part of a name."""
    _, dot, rest = host.partition(".")
    return host in names or (bool(dot) and f"*.{rest}" in names)


def _certificate(server: ServerFacts, name: str, text: str, remedy: str) -> Finding:
    return Finding(
        level=Level.PROBLEM,
        name=name,
        subject=server.title,
        text=f"its certificate {text}",
        remedy=remedy,
    )


def _level(server: ServerFacts) -> Level:
    return Level.NOTE if server.is_local else Level.PROBLEM


def _only_here(server: ServerFacts) -> str:
    return " (on this machine only)" if server.is_local else ""
