"""Settings of a controller whose decisions are in etcd. RocketMQ has no such keys."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.model.address import split_addresses

ENDPOINTS_MAX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdConfig:
    endpoints: str = setting(
        "etcdEndpoints",
        "etcd members that keep the decisions of several controllers, like "
        "http://192.0.2.11:2379;http://192.0.2.12:2379; empty: a file keeps them, for one controller. Needs "
        "cometmq[etcd].",
        default="",
    )
    prefix: str = setting(
        "etcdPrefix",
        "What the keys of this group of controllers begin with. Two groups in one etcd need two of them.",
        default="/cometmq/controller",
    )
    user: str = setting("etcdUser", "Name to log in to etcd with; empty: no login.", default="")
    password_path: str = setting(
        "etcdPasswordFile", "File whose first line is the password of etcdUser.", default=""
    )
    ca_path: str = setting(
        "etcdCaFile", "Certificates of those who may sign for https:// members, PEM.", default=""
    )
    cert_path: str = setting(
        "etcdCertFile", "Certificate to show to https:// members, PEM.", default=""
    )
    key_path: str = setting("etcdKeyFile", "Key of etcdCertFile, PEM.", default="")
    timeout_ms: int = setting(
        "etcdTimeoutMills",
        "Milliseconds to wait for a member of etcd before the next one is tried.",
        default=1000,
        low=50,
        high=60_000,
    )
    lease_seconds: int = setting(
        "etcdLeaseSeconds",
        "Seconds after which another controller takes over from a leader that is gone. It is renewed three times in "
        "that time.",
        default=3,
        low=2,
        high=60,
    )

    def __post_init__(self) -> None:
        for endpoint in self.members:
            _check(endpoint)
        if len(self.members) > ENDPOINTS_MAX:
            raise ConfigError(f"etcdEndpoints names more than {ENDPOINTS_MAX} members")
        if not self.prefix.startswith("/") or self.prefix.endswith("/"):
            raise ConfigError("etcdPrefix must begin with a slash, and not end with one")
        if bool(self.user) != bool(self.password_path):
            raise ConfigError("etcdUser and etcdPasswordFile are only good together")
        if bool(self.cert_path) != bool(self.key_path):
            raise ConfigError("etcdCertFile and etcdKeyFile are only good together")

    @property
    def members(self) -> list[str]:
        return split_addresses(self.endpoints)


def _check(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
    except ValueError as error:
        raise ConfigError(f"etcdEndpoints: {endpoint!r} is no URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not _port(parts):
        raise ConfigError(f"etcdEndpoints: expected http://127.0.0.1:2379, got {endpoint!r}")
    if parts.path.strip("/") or parts.username or parts.query:
        raise ConfigError(
            f"etcdEndpoints: expected no more than host and port, got {endpoint!r}; etcdUser logs in"
        )


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        return None
