"""Settings of the dashboard."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cometmq.base.errors import ConfigError
from cometmq.base.settings import load, setting
from cometmq.model.address import is_loopback, split_address, split_addresses

PORT: Final = 8090
ALWAYS, BEYOND_LOOPBACK = "always", "auto"
FIRST_SITE: Final = "main"

_SITE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,80}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteConfig:
    """A set of name servers."""

    name: str
    name_servers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardConfig:
    name_servers: str = setting(
        "namesrvAddr",
        "Name servers like 10.0.0.1:9876;10.0.0.2:9876. Several sets of them: with names, separated by commas, like "
        "prod=10.0.0.1:9876,test=10.9.0.1:9876.",
        default="127.0.0.1:9876",
    )
    client_path: str = setting(
        "clientConfig",
        "File with the account and TLS settings with which the dashboard asks the servers, like the tools.conf of "
        "`cometmq init`.",
        default="",
    )
    controllers: str = setting(
        "controllerAddr",
        "Controllers like 10.0.0.1:9878;10.0.0.2:9878, if there are any.",
        default="",
    )
    proxies: str = setting(
        "proxyAddr",
        "Remoting ports of RocketMQ 5's proxies, like 10.0.0.1:8080;10.0.0.2:8080. They are asked for members of "
        "groups, too, since brokers do not know who is behind a proxy.",
        default="",
    )
    bind_address: str = setting(
        "bindAddress",
        "Address to listen on. Beyond loopback, a login is required, and TLS or allowPlainHttp=true.",
        default="127.0.0.1",
    )
    listen_port: int = setting(
        "listenPort", "Port to listen on; 0 takes any free one.", default=PORT, low=0, high=65535
    )
    data_path: str = setting(
        "dataPath",
        "Directory of the figures of the last hours, alerts and the record of changes. Empty: in memory only.",
        default="",
    )
    login: str = setting(
        "loginRequired",
        "auto: beyond loopback, and where the dashboard itself has an account; always: on loopback, too.",
        default=BEYOND_LOOPBACK,
        choices=(BEYOND_LOOPBACK, ALWAYS),
    )
    admins: str = setting(
        "admins",
        "Accounts that may do everything, separated by commas. Super users of the brokers need not be named.",
        default="",
    )
    operators: str = setting(
        "operators",
        "Accounts that may also send, resend, reset, create and change topics and groups.",
        default="",
    )
    viewers: str = setting(
        "viewers",
        "Accounts that may look; * stands for every account. Who has no role cannot log in.",
        default="",
    )
    is_read_only: bool = setting("readOnly", "Refuse every change, whoever asks.", default=False)
    certificate_path: str = setting(
        "tlsCertificate", "Certificate chain of the dashboard, PEM.", default=""
    )
    key_path: str = setting("tlsKey", "Its private key, PEM.", default="")
    is_plain_http_allowed: bool = setting(
        "allowPlainHttp",
        "Serve beyond loopback without TLS, because a proxy in front of it has TLS.",
        default=False,
    )
    sample_interval_ms: int = setting(
        "sampleInterval",
        "Milliseconds between two rounds of questions to the servers.",
        default=10_000,
        low=200,
        high=600_000,
    )
    history_hours: int = setting(
        "historyHours", "How long figures are kept.", default=24, low=1, high=720
    )
    session_minutes: int = setting(
        "sessionMinutes",
        "A login ends when nothing was asked for so long.",
        default=60,
        low=1,
        high=1440,
    )
    sessions_max: int = setting(
        "sessionsMax", "Logins at a time; the one unused for longest ends.", default=200, low=1
    )
    streams_max: int = setting(
        "streamsMax", "Tabs that follow events at a time.", default=200, low=1
    )
    requests_per_second: int = setting(
        "requestsPerSecond", "Of one caller, over ten seconds.", default=50, low=1
    )
    logins_per_minute: int = setting(
        "loginsPerMinute", "Tries of one address, and for one account.", default=10, low=1
    )
    body_bytes_max: int = setting(
        "requestBytesMax", "Largest body of a request.", default=8 * 1024 * 1024, low=1024
    )
    masked_fields: str = setting(
        "maskedFields",
        "Fields of bodies and properties that are never shown, separated by commas, like password,card*,*.iban.",
        default="",
    )
    body_schemas: str = setting(
        "bodySchemas",
        "Schemas of topics, separated by commas: TOPIC=FILE.avsc for Avro, TOPIC=FILE:package.Message for Protobuf "
        "with a descriptor set. Bodies that carry their schema, and JSON and MessagePack, need none.",
        default="",
    )
    webhook: str = setting(
        "alertWebhook",
        "Where alerts are posted as JSON, like http://127.0.0.1:9000/alerts.",
        default="",
    )

    def __post_init__(self) -> None:
        _ = self.sites
        for address in (*split_addresses(self.controllers), *split_addresses(self.proxies)):
            split_address(address)
        if bool(self.certificate_path) != bool(self.key_path):
            raise ConfigError("tlsCertificate and tlsKey must be given together")
        if not self.is_loopback and not self.certificate_path and not self.is_plain_http_allowed:
            raise ConfigError(
                f"bindAddress={self.bind_address} is reached from other machines, and passwords would cross the "
                "network in plain text: set tlsCertificate and tlsKey, or allowPlainHttp=true behind a proxy with TLS"
            )
        if self.webhook and not self.webhook.startswith(("http://", "https://")):
            raise ConfigError(
                f"alertWebhook must be an http:// or https:// address, not {self.webhook!r}"
            )

    @property
    def sites(self) -> tuple[SiteConfig, ...]:
        """At least one. Raises ConfigError."""
        found: dict[str, SiteConfig] = {}
        for part in self.name_servers.split(","):
            name, equals, addresses = part.strip().rpartition("=")
            name = name.strip() if equals else FIRST_SITE
            if not _SITE_NAME.match(name) or name in found:
                raise ConfigError(
                    f"namesrvAddr: {name!r} is no name, or is there twice; expected a-z, 0-9, _ . -"
                )
            known = split_addresses(addresses)
            if not known:
                raise ConfigError(f"namesrvAddr names no address for {name!r}")
            for address in known:
                split_address(address)
            found[name] = SiteConfig(name=name, name_servers=";".join(known))
        return tuple(found.values())

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.bind_address)

    @property
    def has_tls(self) -> bool:
        return bool(self.certificate_path)


def load_dashboard_config(values: Mapping[str, str]) -> DashboardConfig:
    """Raises ConfigError: an unknown key, or a value that does not fit."""
    return load(DashboardConfig, values)


def listed(text: str) -> tuple[str, ...]:
    """The parts of a list that is separated by commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
