"""Every key of RocketMQ's servers and its sample files: used, without effect, or refused for lack of protection.

``tests/golden/settings-*.tsv`` hold the names, types and defaults of the setters of RocketMQ's config objects, which is
how its servers read a file. ``settings-samples.json`` holds the settings in the files and documents RocketMQ ships, and
of a file such as RocketMQ 3 needed. Empty defaults depend on the machine, or there is none.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cometmq.base.errors import ConfigError
from cometmq.broker.config.broker_config import broker_rows, load_broker_config
from cometmq.broker.config.known_keys import OTHER_KEYS as BROKER_KEYS
from cometmq.controller.controller_config import SCHEMA as CONTROLLER
from cometmq.namesrv.known_keys import OTHER_KEYS as NAMESRV_KEYS
from cometmq.namesrv.namesrv_config import load_namesrv_config, namesrv_rows
from cometmq.namesrv.with_controller import load_controller

GOLDEN = Path(__file__).parents[1] / "golden"
VERSIONS = ("4.9.8", "5.5.0")

Load = Callable[[Mapping[str, str]], tuple[object, list[str]]]


class Setting(NamedTuple):
    config: str
    key: str
    type: str
    default: str


class Server(NamedTuple):
    load: Load
    configs: frozenset[str]
    rows: frozenset[str]
    unmet: frozenset[str]


def load_name_server(values: Mapping[str, str]) -> tuple[object, list[str]]:
    """As mqnamesrv does it, with a controller if the file asks for one."""
    config, ignored = load_namesrv_config(values)
    if config.has_controller:
        load_controller(values)
    return config, ignored


SERVERS = {
    "broker": Server(
        load_broker_config,
        frozenset(
            {
                "AuthConfig",
                "BrokerConfig",
                "MessageStoreConfig",
                "NettyClientConfig",
                "NettyServerConfig",
                "TieredStoreConfig",
            }
        ),
        frozenset(broker_rows()),
        frozenset(BROKER_KEYS.unmet),
    ),
    "namesrv": Server(
        load_name_server,
        frozenset(
            {
                "ControllerConfig",
                "JraftConfig",
                "NamesrvConfig",
                "NettyClientConfig",
                "NettyServerConfig",
            }
        ),
        frozenset(namesrv_rows()),
        frozenset(NAMESRV_KEYS.unmet),
    ),
    "controller": Server(
        CONTROLLER.load,
        frozenset({"ControllerConfig", "JraftConfig", "NettyClientConfig", "NettyServerConfig"}),
        frozenset(CONTROLLER.rows),
        frozenset(CONTROLLER.others.unmet),
    ),
}

# A server that starts all the same would be without access control, replicas or checksums that the file asks for.
REFUSED_KEYS = {
    "broker": {
        "enableDLegerCommitLog",
        "enableRemoteEscape",
        "enabledAppendPropCRC",
        "useTLS",
    },
    "namesrv": {"useTLS"},
    "controller": {"useTLS"},
}

REFUSED_SAMPLES = {
    "conf/controller/cluster-3n-namesrv-plugin/namesrv-n0.conf": "controllerDLegerPeers names 3 controllers, which",
    "conf/controller/cluster-3n-namesrv-plugin/namesrv-n1.conf": "controllerDLegerPeers names 3 controllers, which",
    "conf/controller/cluster-3n-namesrv-plugin/namesrv-n2.conf": "controllerDLegerPeers names 3 controllers, which",
    "conf/dledger/broker-n0.conf": "enableDLegerCommitLog='true'",
    "conf/dledger/broker-n1.conf": "enableDLegerCommitLog='true'",
    "conf/dledger/broker-n2.conf": "enableDLegerCommitLog='true'",
    "docs/controller/deploy": "controllerDLegerPeers names 3 controllers, which",
}


def settings_of(version: str, server: Server) -> list[Setting]:
    with (GOLDEN / f"settings-{version}.tsv").open(encoding="utf-8") as file:
        rows = [Setting(**row) for row in csv.DictReader(file, delimiter="\t")]
    return [row for row in rows if row.config in server.configs]


def samples() -> list[dict[str, Any]]:
    text = (GOLDEN / "settings-samples.json").read_text(encoding="utf-8")
    return json.loads(text)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_key_has_its_place(version: str, name: str) -> None:
    server = SERVERS[name]
    settings = settings_of(version, server)
    assert {row.config for row in settings} <= server.configs
    assert len(settings) > 20
    for row in settings:
        _, ignored = server.load({row.key: row.default} if row.default else {row.key: ""})
        assert ignored in ([], [row.key]), row


@pytest.mark.parametrize("name", SERVERS)
def test_what_asks_for_protection_is_refused(name: str) -> None:
    server = SERVERS[name]
    known = {row.key for version in VERSIONS for row in settings_of(version, server)}
    assert REFUSED_KEYS[name] == server.unmet & known
    for key in REFUSED_KEYS[name]:
        with pytest.raises(ConfigError, match=f"{key}='true' cannot be met: "):
            server.load({key: "true"})


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_defaults_of_rocketmq_can_be_written_out(version: str, name: str) -> None:
    server = SERVERS[name]
    values = {row.key: row.default for row in settings_of(version, server) if row.default}
    _, ignored = server.load(values)
    assert set(values) - set(ignored) <= server.rows | set(BROKER_KEYS.aliases)


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample["file"])
def test_sample_files_are_read_unchanged(sample: dict[str, Any]) -> None:
    load = SERVERS[sample["server"]].load
    refused = REFUSED_SAMPLES.get(sample["file"])
    if refused is None:
        # RocketMQ's scripts set it for all servers; files of accounts are below.
        load(
            {"rocketmqHome": "/opt/rocketmq", **sample["values"]}
            if "aclEnable" in sample["values"]
            else sample["values"]
        )
    else:
        with pytest.raises(ConfigError, match=f"{refused} cannot be met: "):
            load(sample["values"])


def test_places_of_rocketmq_3_are_named_as_without_effect() -> None:
    (sample,) = (one for one in samples() if "storePathIndex" in one["values"])
    _, ignored = load_broker_config(sample["values"])
    assert {"storePathConsumeQueue", "storePathIndex", "storeCheckpoint", "abortFile"} < set(
        ignored
    )
