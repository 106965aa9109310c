"""What a secure set-up consists of: the configuration files of servers, tools, clients and Spark, as texts by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from cometmq.access.access_config import LOCAL_ACLS, LOCAL_USERS
from cometmq.access.inner_config import credential_text
from cometmq.base.properties_file import render_properties
from cometmq.cli.secure.first_accounts import CLIENT, OPERATOR, SERVERS, SPARK
from cometmq.model.address import is_loopback, join_address

AUTHORITY: Final = "ca.pem"
AUTHORITY_KEY: Final = "ca.key"
SERVER: Final = "server.pem"
SERVER_KEY: Final = "server.key"
TLS: Final = "tls.properties"
NAME_SERVER_DATA: Final = "data/namesrv"
BROKER_DATA: Final = "data/broker"


class File(NamedTuple):
    text: str
    is_private: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUp:
    """Where it will be, and how it is reached: by the first host; certificates name all of them."""

    directory: Path
    hosts: tuple[str, ...]
    namesrv_port: int
    broker_port: int
    cluster: str
    broker_name: str
    secret_of: Mapping[str, str] = field(repr=False)

    @property
    def name_server(self) -> str:
        return join_address(self.hosts[0], self.namesrv_port)

    @property
    def broker(self) -> str:
        return join_address(self.hosts[0], self.broker_port)

    @property
    def bind_address(self) -> str:
        return "127.0.0.1" if all(map(is_loopback, self.hosts)) else "0.0.0.0"

    def path(self, name: str) -> str:
        return str(self.directory / name)


def tls_values(set_up: SetUp) -> dict[str, str]:
    return {
        "tls.server.mode": "enforcing",
        "tls.server.certPath": set_up.path(SERVER),
        "tls.server.keyPath": set_up.path(SERVER_KEY),
        **_verifying(set_up.path(AUTHORITY)),
    }


def files(set_up: SetUp) -> dict[str, File]:
    """Files with secrets are private."""
    return {
        TLS: File(
            "# TLS of the servers, and of their connections to each other.\n"
            + render_properties(tls_values(set_up)),
            is_private=False,
        ),
        "namesrv.conf": File(
            f"# The name server: mqnamesrv -c {set_up.path('namesrv.conf')}\n"
            + render_properties(_namesrv_values(set_up)),
            is_private=True,
        ),
        "broker.conf": File(
            f"# The broker: mqbroker -c {set_up.path('broker.conf')}\n"
            + render_properties(_broker_values(set_up)),
            is_private=True,
        ),
        "tools.conf": File(
            f"# For the operator: cometmq doctor -c {set_up.path('tools.conf')}\n"
            "# The secret is taken from the environment variable COMETMQ_SECRET_KEY.\n"
            + render_properties(_client_values(set_up, OPERATOR)),
            is_private=False,
        ),
        "client.conf": File(
            f"# For programs and commands; on another host it needs {AUTHORITY} next to it.\n"
            + render_properties(_client_values(set_up, CLIENT, set_up.secret_of[CLIENT])),
            is_private=True,
        ),
        "spark.conf": File(
            f"# For Spark: option connectionFile; on another host it needs {AUTHORITY} next to it.\n"
            + render_properties(_client_values(set_up, SPARK, set_up.secret_of[SPARK])),
            is_private=True,
        ),
    }


def _namesrv_values(set_up: SetUp) -> dict[str, str]:
    return {
        "listenPort": str(set_up.namesrv_port),
        "bindAddress": set_up.bind_address,
        "kvConfigPath": set_up.path(f"{NAME_SERVER_DATA}/kvConfig.json"),
        "tls.config.file": set_up.path(TLS),
        "accountPath": set_up.path(NAME_SERVER_DATA),
        "accountBrokers": set_up.broker,
        **_ACCOUNTS,
        **_server_account(set_up),
    }


def _broker_values(set_up: SetUp) -> dict[str, str]:
    return {
        "brokerClusterName": set_up.cluster,
        "brokerName": set_up.broker_name,
        "brokerId": "0",
        "namesrvAddr": set_up.name_server,
        "brokerIP1": set_up.hosts[0],
        "bindAddress": set_up.bind_address,
        "listenPort": str(set_up.broker_port),
        "storePathRootDir": set_up.path(BROKER_DATA),
        "tls.config.file": set_up.path(TLS),
        "haTlsEnable": "true",
        **_ACCOUNTS,
        **_server_account(set_up),
    }


_ACCOUNTS: Final = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "authenticationMetadataProvider": LOCAL_USERS,
    "authorizationMetadataProvider": LOCAL_ACLS,
    "accountSecretsVisible": "false",
}


def _server_account(set_up: SetUp) -> dict[str, str]:
    text = credential_text(SERVERS, set_up.secret_of[SERVERS])
    return {"innerClientAuthenticationCredentials": text}


def _client_values(set_up: SetUp, account: str, secret: str = "") -> dict[str, str]:
    return {
        "rocketmq.namesrv.addr": set_up.name_server,
        "accessKey": account,
        **({"secretKey": secret} if secret else {}),
        **_verifying(AUTHORITY),
    }


def _verifying(authority: str) -> dict[str, str]:
    return {
        "tls.enable": "true",
        "tls.client.authServer": "true",
        "tls.client.trustCertPath": authority,
        "tls.client.checkHostname": "true",
    }
