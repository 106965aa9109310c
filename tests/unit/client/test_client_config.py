"""The settings that all clients share."""

from __future__ import annotations

import pytest

from cometmq.base.errors import ConfigError, UsageError
from cometmq.base.settings import load
from cometmq.client.client_config import ClientConfig, Credentials


def test_defaults_are_rocketmqs() -> None:
    config = ClientConfig()
    assert config.instance_name == "DEFAULT"
    assert config.poll_name_server_millis == config.heartbeat_millis == 30_000
    assert config.persist_offsets_millis == 5_000
    assert config.call_seconds == 3.0
    assert not config.credentials.is_set
    assert not config.tls.is_client_enabled


def test_rocketmqs_keys_load_all_of_it() -> None:
    config = load(
        ClientConfig,
        {
            "rocketmq.namesrv.addr": "a:1;b:2",
            "instanceName": "worker",
            "pollNameServerInterval": "1000",
            "accessKey": "me",
            "secretKey": "hush",
            "tls.enable": "true",
            "connectTimeoutMillis": "500",
        },
    )
    assert config.name_servers == "a:1;b:2"
    assert config.credentials == Credentials(access_key="me", secret_key="hush")
    assert config.tls.is_client_enabled
    assert config.remoting.connect_millis_max == 500


def test_an_argument_wins_over_the_setting() -> None:
    config = ClientConfig(name_servers="a:1")
    assert config.with_name_servers(None) is config
    assert config.with_name_servers("b:2").name_servers == "b:2"
    assert config.with_name_servers(["b:2", "c:3"]).name_servers == "b:2;c:3"
    with pytest.raises(UsageError, match="expected an address"):
        config.with_name_servers("nonsense")


def test_secrets_are_not_shown() -> None:
    config = ClientConfig(credentials=Credentials(access_key="me", secret_key="hush"))
    assert "hush" not in repr(config)
    assert "me" in repr(config)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"namespace": "a%b"}, "holds a %"),
        ({"instance_name": "a@b"}, "holds an @"),
        ({"instance_name": ""}, "instanceName is empty"),
        ({"heartbeat_millis": 0}, "heartbeatBrokerInterval must be at least 1, not 0"),
    ],
)
def test_what_cannot_work_is_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        ClientConfig(**settings)  # type: ignore[arg-type]


def test_half_an_account_is_refused() -> None:
    with pytest.raises(ConfigError, match="together"):
        Credentials(access_key="me")
