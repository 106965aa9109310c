"""The broker's settings: what broker.conf says, what is refused, what may change while running."""

from __future__ import annotations

from collections import Counter

import pytest

from cometmq.base.errors import ConfigError
from cometmq.base.settings import parse_properties, rows
from cometmq.broker import local_host
from cometmq.broker.config import BrokerConfig, broker_rows, config_text, load_broker_config
from cometmq.broker.config_file import with_changes
from cometmq.broker.known_keys import ALIASES, KNOWN_KEYS

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


def test_every_key_of_rocketmq_is_taken() -> None:
    known = broker_rows()
    meaningless = {key: "1" for key in KNOWN_KEYS if ALIASES.get(key, key) not in known}
    config, ignored = load_broker_config(meaningless)
    assert sorted(ignored) == sorted(meaningless)
    assert config == load_broker_config({})[0]


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
        return config.network.bind_address, config.identity.ip1, config.network.is_loopback

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
    text = config_text(config, {key: values[key] for key in ignored} | {"haListenPort": "1"})
    assert "hush" not in text
    assert "objectStoreSecretKey" not in text
    again, without_effect = load_broker_config(parse_properties(text))
    assert again.network == config.network
    assert again.store == config.store
    assert without_effect == ["haListenPort"]


def test_tls_settings_come_from_their_file_and_yield_to_the_broker_conf(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("tls") / "tls.properties"
    path.write_text("tls.server.mode=enforcing\ntls.server.certPath=/c\n")
    config, _ = load_broker_config({"tls.config.file": str(path), "tls.server.mode": "permissive"})
    assert config.tls.server_mode == "permissive"
    assert config.tls.server_cert_path == "/c"


def test_changes_keep_comments_and_order_of_the_file() -> None:
    text = "# mine\nlistenPort = 1\n\nb=2\\\n  3\nlistenPort=9"
    changed = with_changes(text, {"listenPort": "5", "regionId": " x\\y"})
    assert changed == "# mine\nlistenPort=5\n\nb=2\\\n  3\nregionId=\\ x\\\\y\n"
    assert parse_properties(changed) == {"listenPort": "5", "b": "23", "regionId": " x\\y"}
