"""Settings that change while the broker runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from cometmq.base.clock import SystemClock
from cometmq.base.disk import SystemFiles
from cometmq.base.errors import ConfigError
from cometmq.base.properties_file import parse_properties
from cometmq.base.setting_keys import NotChangeable
from cometmq.broker.config.broker_config import BrokerConfig, load_broker_config
from cometmq.broker.config.live_config import LiveConfig


def live_config(path: Path | None = None, values: Mapping[str, str] | None = None) -> LiveConfig:
    config, _ = load_broker_config({"brokerName": "a", **(values or {})})
    return LiveConfig(
        config, clock=SystemClock(), files=SystemFiles(), path=str(path) if path else None
    )


def test_a_change_is_seen_told_and_written(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("# keep me\nbrokerName=a\n")
    live = live_config(path)
    seen: list[BrokerConfig] = []
    live.on_change(seen.append)

    live.update({"brokerPermission": "4", "haSlaveFallbehindMax": "7"})

    assert live.current.topics.permission == 4
    assert seen == [live.current]
    assert live.version.counter == 1
    assert path.read_text() == (
        "# keep me\nbrokerName=a\nbrokerPermission=4\nhaSlaveFallbehindMax=7\n"
    )
    assert parse_properties(live.text())["haSlaveFallbehindMax"] == "7"


@pytest.mark.parametrize(
    "key",
    [
        "brokerName",
        "brokerIP1",
        "listenPort",
        "bindAddress",
        "namesrvAddr",
        "storePathRootDir",
        "storePathCommitLog",
        "mappedFileSizeCommitLog",
        "recoverByTruncating",
        "filterFunctionDirectory",
        "frameMaxLength",
        "tls.server.keyPath",
        "tls.config.file",
        "brokerConfigPath",
        "storePathEpochFile",
        "rocketmqHome",
        "configBlackList",
    ],
)
def test_who_it_is_and_where_its_files_lie_do_not_change(key: str) -> None:
    live = live_config()
    before = live.current
    with pytest.raises(NotChangeable, match=key):
        live.update({key: "1"})
    assert live.current is before


def test_an_older_spelling_does_not_open_a_way() -> None:
    with pytest.raises(NotChangeable, match="mappedFileSizeCommitLog"):
        live_config().update({"mapedFileSizeCommitLog": "8192"})


def test_a_setting_of_the_start_waits_for_the_start(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    live = live_config(path)
    assert live.update({"flushDiskType": "SYNC_FLUSH", "traceOn": "false"}) == ["flushDiskType"]
    assert not live.current.store.flush.is_sync
    assert not live.current.topics.trace_on
    assert parse_properties(live.text())["flushDiskType"] == "SYNC_FLUSH"
    again, _ = load_broker_config(parse_properties(path.read_text()))
    assert again.store.flush.is_sync

    assert live.update({"brokerPermission": "4"}) == []
    assert parse_properties(live.text())["flushDiskType"] == "SYNC_FLUSH"


def test_what_the_next_start_would_refuse_is_refused_now(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    many = {"mappedFileSizeConsumeQueueExt": "64", "expectConsumerNumUseFilter": "10000"}
    live = live_config(path, many)
    live.update({"enableConsumeQueueExt": "true"})
    with pytest.raises(ConfigError, match="mappedFileSizeConsumeQueueExt=64 must be at least"):
        live.update({"enableCalcFilterBitMap": "true"})
    assert path.read_text() == "enableConsumeQueueExt=true\n"


def test_without_a_file_nothing_can_be_stored_for_the_next_start() -> None:
    with pytest.raises(NotChangeable, match=r"regionId takes effect at a start only.*-c"):
        live_config().update({"regionId": "north", "traceOn": "false"})


def test_a_file_that_cannot_be_written_refuses_the_change(tmp_path: Path) -> None:
    live = live_config(tmp_path / "nowhere" / "broker.conf")
    with pytest.raises(ConfigError, match="cannot be changed"):
        live.update({"traceOn": "false"})
    assert live.current.topics.trace_on


@pytest.mark.parametrize(
    ("key", "text"), [("brokerPermission", "many"), ("brokerPermissio", "4"), ("brokerId", "-1")]
)
def test_one_bad_setting_refuses_all(tmp_path: Path, key: str, text: str) -> None:
    path = tmp_path / "broker.conf"
    live = live_config(path)
    before = live.current
    with pytest.raises(ConfigError):
        live.update({"traceOn": "false", key: text})
    assert live.current is before
    assert live.version.counter == 0
    assert not path.exists()


def test_nothing_to_change_changes_nothing() -> None:
    live = live_config()
    live.update({})
    assert live.version.counter == 0


def test_what_the_export_of_settings_needs_is_told() -> None:
    told = parse_properties(live_config().text())
    assert told["filterServerNums"] == "0"
    assert told["useTLS"] == "false"
