"""The broker's settings: what broker.conf says, what is refused, what may change while running."""

from __future__ import annotations

from collections import Counter

import pytest

from cometmq.base.errors import ConfigError
from cometmq.base.properties_file import parse_properties
from cometmq.base.settings import rows
from cometmq.broker.config import local_host
from cometmq.broker.config.broker_config import BrokerConfig, config_text, load_broker_config
from cometmq.model.address import is_loopback

SAMPLE = """\
# a broker.conf as RocketMQ ships it, and more
brokerClusterName = DefaultCluster
brokerName = broker-a
brokerId = 0
deleteWhen = 04
fileReservedTime = 48
brokerRole = ASYNC_MASTER
flushDiskType = SYNC_FLUSH
mapedFileSizeCommitLog = 67108864
sendMessageThreadPoolNums = 128
transientStorePoolEnable = true
"""


def test_a_broker_conf_of_rocketmq_is_read_unchanged() -> None:
    config, ignored = load_broker_config(parse_properties(SAMPLE))
    assert config.identity.broker_name == "broker-a"
    assert config.store.flush.is_sync
    assert config.store.retention.reserved_hours == 48
    assert config.store.log.file_bytes == 64 * 1024 * 1024
    assert config.flow.has_unflushed_limit
    assert ignored == ["sendMessageThreadPoolNums"]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("enableDLegerCommitLog", "has no Raft log"),
        ("enabledAppendPropCRC", "not its properties"),
        ("useTLS", "tls.enable"),
    ],
)
def test_protection_that_is_not_there_refuses_the_start(key: str, reason: str) -> None:
    for text in ("true", " TRUE ", "yes", "1"):
        with pytest.raises(ConfigError, match=f"{key}='{text.strip()}' cannot be met: .*{reason}"):
            load_broker_config({key: text})
    for text in ("false", "False", ""):
        assert load_broker_config({key: text})[1] == [key]


def test_the_reason_comes_before_other_mistakes() -> None:
    with pytest.raises(ConfigError, match="has no Raft log"):
        load_broker_config({"brokerId": "-1", "noSuchKey": "1", "enableDLegerCommitLog": "true"})


def test_no_key_belongs_to_two_settings() -> None:
    counts = Counter(row.key for row in rows(BrokerConfig))
    assert [key for key, count in counts.items() if count > 1] == []


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("brokerNam", "a", "did you mean 'brokerName'"),
        ("sendMessageThreadPoolNum", "1", "did you mean 'sendMessageThreadPoolNums'"),
        ("qqqqqqqqqq", "1", "unknown setting 'qqqqqqqqqq'"),
        ("listenPort", "high", "listenPort must be a whole number"),
        ("listenPort", "70000", "listenPort must be at most 65535"),
        ("flushDiskType", "NEVER", "must be one of ASYNC_FLUSH, SYNC_FLUSH"),
        ("autoCreateTopicEnable", "yes", "must be true or false"),
        ("brokerName", "../x", "brokerName must be made of"),
        ("brokerClusterName", "a/b", "brokerClusterName must be made of"),
        ("brokerClusterName", "", "must not be empty"),
    ],
)
def test_a_mistake_is_refused_with_what_to_change(key: str, text: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        load_broker_config({key: text})


def test_both_spellings_of_a_key_must_agree() -> None:
    old, new = "mapedFileSizeCommitLog", "mappedFileSizeCommitLog"
    config, _ = load_broker_config({old: "8192", new: "8192"})
    assert config.store.log.file_bytes == 8192
    with pytest.raises(ConfigError, match="set twice"):
        load_broker_config({old: "8192", new: "16384"})


def test_it_stays_on_loopback_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_host, "address", lambda: "192.0.2.7")

    def listens_at(values: dict[str, str]) -> tuple[str, str, bool]:
        config, _ = load_broker_config(values)
        bind_address = config.network.bind_address
        return bind_address, config.identity.ip1, is_loopback(bind_address)

    assert listens_at({}) == ("127.0.0.1", "127.0.0.1", True)
    assert listens_at({"bindAddress": "0.0.0.0"}) == ("0.0.0.0", "192.0.2.7", False)
    assert listens_at({"bindAddress": "::1"}) == ("::1", "::1", True)
    assert listens_at({"brokerIP1": "192.0.2.9"}) == ("0.0.0.0", "192.0.2.9", False)
    assert listens_at({"brokerIP1": "127.0.0.2"}) == ("127.0.0.1", "127.0.0.2", True)


def test_the_name_and_the_data_directory_come_from_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_host, "name", lambda: "host-7")
    monkeypatch.setattr(local_host, "home", lambda: "/home/mq")
    config, _ = load_broker_config({})
    assert config.identity.broker_name == "host-7"
    assert config.store.root == "/home/mq/store"


def test_the_vip_port_is_two_below() -> None:
    assert load_broker_config({})[0].network.vip_port == 10909
    assert load_broker_config({"listenPort": "0"})[0].network.vip_port is None


def test_the_text_can_be_loaded_again_and_hides_secrets() -> None:
    values = {"listenPort": "12345", "tls.server.keyPassword": "hush", "objectStoreSecretKey": "sh"}
    config, ignored = load_broker_config(values)
    text = config_text(config, {key: values[key] for key in ignored} | {"haFlowControlEnable": "1"})
    assert "hush" not in text
    assert "objectStoreSecretKey" not in text
    again, without_effect = load_broker_config(parse_properties(text))
    assert again.network == config.network
    assert again.store == config.store
    assert without_effect == ["haFlowControlEnable"]


def test_tls_settings_come_from_their_file_and_yield_to_the_broker_conf(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("tls") / "tls.properties"
    path.write_text("tls.server.mode=enforcing\ntls.server.certPath=/c\n")
    config, _ = load_broker_config({"tls.config.file": str(path), "tls.server.mode": "permissive"})
    assert config.tls.server_mode == "permissive"
    assert config.tls.server_cert_path == "/c"


def test_under_a_controller_the_role_in_the_file_means_nothing() -> None:
    values = {
        "enableControllerMode": "true",
        "controllerAddr": "127.0.0.1:9878",
        "brokerId": "-1",
        "brokerRole": "SLAVE",
    }
    config, ignored = load_broker_config(values)
    assert config.controller.is_enabled
    assert sorted(ignored) == ["brokerId", "brokerRole"]
    for key, text in (("controllerAddr", ""), ("enableSlaveActingMaster", "true")):
        with pytest.raises(ConfigError):
            load_broker_config({**values, key: text})
