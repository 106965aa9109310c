"""What is known about a cluster: plain data, gathered by ``gather`` and judged by the checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from cometmq.admin import Place
from cometmq.base.errors import UsageError
from cometmq.model.address import is_loopback, split_address


def host_of(address: str) -> str:
    """Empty if it is no address: whoever registers may have told anything."""
    try:
        return split_address(address)[0]
    except UsageError:
        return ""


class Kind(StrEnum):
    NAME_SERVER = "name server"
    BROKER = "broker"
    CONTROLLER = "controller"


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFacts:
    """``hosts`` are the names and addresses that it is for."""

    valid_from_ms: int
    valid_until_ms: int
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFacts:
    """``certificate`` is None if it could not be read; ``distrust`` says why a client that verifies would go away."""

    protocol: str
    certificate: CertificateFacts | None
    distrust: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """One server, asked in several ways.

    Args:
        silence: why nobody answers at the address at all.
        refusal: why what was asked with the account was not answered.
        takes_plain_text: whether it answers on a connection without TLS.
        serves_strangers: whether it tells its settings to somebody without an account.
        settings: None if it did not tell them.
        figures: what a broker tells about itself.
    """

    kind: Kind
    address: str
    silence: str = ""
    refusal: str = ""
    takes_plain_text: bool = False
    serves_strangers: bool = False
    tls: TlsFacts | None = None
    settings: Mapping[str, str] | None = None
    figures: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.kind} {self.address}"

    @property
    def host(self) -> str:
        return host_of(self.address)

    @property
    def is_local(self) -> bool:
        """Whether only its own machine can reach it at this address."""
        return is_loopback(self.host)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFacts:
    """How the doctor itself connects."""

    has_account: bool
    has_tls: bool
    verifies_server: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """``told`` are the brokers that each name server tells of, by its address."""

    now_ms: int
    client: ClientFacts
    servers: tuple[ServerFacts, ...]
    told: Mapping[str, tuple[Place, ...]]

    @property
    def places(self) -> tuple[Place, ...]:
        """All that any name server tells, each once."""
        return tuple(dict.fromkeys(place for told in self.told.values() for place in told))

    def server(self, address: str) -> ServerFacts | None:
        return next((one for one in self.servers if one.address == address), None)
