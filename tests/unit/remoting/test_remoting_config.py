"""Settings of the wire and of TLS: RocketMQ's keys, and refusals that say what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from cometmq.base.errors import ConfigError
from cometmq.base.settings import load
from cometmq.remoting.remoting_config import RemotingClientConfig, RemotingServerConfig
from cometmq.remoting.tls import TlsConfig, load_tls_config, tls_config_of


def test_rocketmq_keys_reach_the_limits() -> None:
    config = load(
        RemotingServerConfig,
        {"serverChannelMaxIdleTimeSeconds": "60", "writeBufferHighWaterMark": "4096"},
    )

    assert config.limits.idle_seconds_max == 60
    assert (config.limits.outgoing_high_bytes, config.limits.outgoing_low_bytes) == (4096, 1024)


def test_defaults_are_rocketmqs() -> None:
    assert RemotingServerConfig().limits.idle_seconds_max == 120
    assert RemotingServerConfig().backlog == 1024
    assert RemotingClientConfig().connect_millis_max == 3000
    assert RemotingClientConfig().limits.calls_max == 65535


def test_water_marks_must_be_in_order() -> None:
    with pytest.raises(ConfigError, match="writeBufferLowWaterMark"):
        RemotingServerConfig(outgoing_high_bytes=10, outgoing_low_bytes=11)


def test_tls_without_certificate_is_off_by_default() -> None:
    assert TlsConfig().server_context() is None
    assert TlsConfig().client_context() is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"tls.server.mode": "enforcing"}, "tls.server.certPath and tls.server.keyPath"),
        ({"tls.test.mode.enable": "true", "tls.protocols": "TLSv1.1"}, "TLSv1.2, TLSv1.3"),
        ({"tls.test.mode.enable": "true", "tls.ciphers": "NO-SUCH"}, "NO-SUCH.*no cipher"),
        (
            {"tls.test.mode.enable": "true", "tls.ciphers": "TLS_AES_128_GCM_SHA256"},
            "belongs to TLS 1.3",
        ),
        ({"tls.server.certPath": "/x.pem"}, "given together"),
        ({"tls.server.certPath": "/none.pem", "tls.server.keyPath": "/none.key"}, "/none.pem"),
        ({"tls.server.mode": "permisive"}, "one of disabled, permissive, enforcing"),
        ({"tls.server.cert": "x"}, "did you mean 'tls.server.certPath'"),
        ({"tls.server.need.client.auth": "require"}, "need.client.auth.*without a certificate"),
        ({"tls.server.authClient": "true"}, "authClient.*without a certificate"),
        ({"tls.server.trustCertPath": "/ca"}, "trustCertPath.*without a certificate"),
    ],
)
def test_unusable_tls_settings_say_what_to_change(values: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        tls_config_of(values).server_context()


def test_clients_that_are_not_asked_for_a_certificate_cannot_be_verified(tmp_path: Path) -> None:
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    certificate = trustme.CA().issue_cert("127.0.0.1")
    certificate.cert_chain_pems[0].write_to_path(str(chain))
    certificate.private_key_pem.write_to_path(str(key))
    values = {
        "tls.server.certPath": str(chain),
        "tls.server.keyPath": str(key),
        "tls.server.authClient": "true",
    }
    with pytest.raises(ConfigError, match=r"authClient=true.*tls\.server\.need\.client\.auth"):
        tls_config_of(values).server_context()


@pytest.mark.parametrize("key", ["tls.client.authServer", "tls.client.checkHostname"])
def test_servers_cannot_be_verified_over_plain_text(key: str) -> None:
    with pytest.raises(ConfigError, match=rf"{key}=true has no effect without tls.enable=true"):
        tls_config_of({key: "true"}).client_context()


def test_missing_trust_file_is_named() -> None:
    values = {
        "tls.enable": "true",
        "tls.client.authServer": "true",
        "tls.client.trustCertPath": "/no/ca.pem",
    }
    with pytest.raises(ConfigError, match=r"tls\.client\.trustCertPath /no/ca\.pem"):
        tls_config_of(values).client_context()


def test_properties_file(tmp_path: Path) -> None:
    path = tmp_path / "tls.properties"
    path.write_text("# ours\ntls.server.mode = disabled\ntls.enable=true\n")

    config = load_tls_config(str(path))

    assert config.server_mode == "disabled"
    assert config.client_context() is not None
    with pytest.raises(ConfigError, match=r"no\.properties"):
        load_tls_config(str(tmp_path / "no.properties"))
