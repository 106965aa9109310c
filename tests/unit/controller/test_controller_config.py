from __future__ import annotations

import sys

import pytest

from cometmq.base.errors import ConfigError
from cometmq.controller.controller_config import SCHEMA, ControllerConfig
from cometmq.controller.peers import Peer
from cometmq.controller.server import Controller


def load(**values: str) -> ControllerConfig:
    return SCHEMA.load(values)[0]


def test_rocketmqs_quick_start_is_read() -> None:
    config, ignored = SCHEMA.load(
        {
            "controllerDLegerGroup": "group1",
            "controllerDLegerPeers": "n0-127.0.0.1:9878",
            "controllerDLegerSelfId": "n0",
            "controllerType": "DLedger",
            "controllerThreadPoolNums": "16",
        }
    )
    assert (config.group, config.own_peer) == ("group1", Peer("n0", "127.0.0.1", 9878))
    assert ignored == ["controllerThreadPoolNums"]


def test_without_peers_it_is_its_own_and_listens_on_its_port() -> None:
    assert load().own_peer is None
    assert load(listenPort="1234").listen_port == 1234


def test_a_host_name_may_hold_dashes() -> None:
    config = load(bindAddress="0.0.0.0", controllerDLegerPeers="n0-ctl-1.example:9878;")
    assert config.own_peer == Peer("n0", "ctl-1.example", 9878)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"controllerDLegerPeers": "n0-h:1;n1-h:2;n2-h:3"}, "names 3 controllers, which cannot"),
        ({"controllerDLegerPeers": "n1-localhost:1"}, "SelfId is n0, which .* does not name"),
        ({"controllerDLegerPeers": "localhost:1"}, "expected n0-127"),
        ({"controllerDLegerPeers": "n0-localhost"}, "expected n0-127"),
        ({"controllerDLegerPeers": "n0-10.0.0.5:9878"}, "set bindAddress=10.0.0.5"),
        ({"controllerType": "jRaft"}, "jRaft cannot be met"),
        ({"etcdEndpoints": "127.0.0.1:2379"}, "expected http://127.0.0.1:2379"),
        ({"etcdEndpoints": "http://h:2379;http://h"}, "expected http://127.0.0.1:2379"),
        ({"etcdEndpoints": "http://[::1:2379"}, "is no URL"),
        ({"etcdEndpoints": "http://h:99999"}, "expected http://127.0.0.1:2379"),
        ({"etcdEndpoints": "http://me:secret@h:2379"}, "etcdUser logs in"),
        ({"etcdEndpoints": ";".join(["http://h:2379"] * 17)}, "more than 16 members"),
        ({"etcdPrefix": "cometmq/"}, "must begin with a slash"),
        ({"etcdUser": "root"}, "only good together"),
        ({"etcdCertFile": "/x"}, "only good together"),
        ({"etcdLeaseSeconds": "1"}, "at least 2"),
        ({"controllerDLegerSelfId": "n-0"}, "must not hold"),
        ({"controllerDLegerGroup": "a;b"}, "must not hold"),
        ({"useTLS": "true"}, "cannot be met"),
        ({"scanInactiveMasterInterval": "5"}, "at least 100"),
        ({"controllerDlegerPeers": "x"}, "did you mean 'controllerDLegerPeers'"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(values: dict[str, str], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        SCHEMA.load(values)


def test_with_etcd_all_controllers_may_be_named() -> None:
    config = load(
        controllerDLegerPeers="n0-127.0.0.1:9878;n1-127.0.0.1:9868",
        controllerDLegerSelfId="n1",
        etcdEndpoints="http://127.0.0.1:2379; http://[::1]:2379",
    )
    assert config.own_peer == Peer("n1", "127.0.0.1", 9868)
    assert config.etcd.members == ["http://127.0.0.1:2379", "http://[::1]:2379"]
    controller = Controller(config)
    assert controller.roster().leader is None


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"etcdUser": "u", "etcdPasswordFile": "/nowhere"}, "etcdPasswordFile /nowhere cannot"),
        ({"etcdCaFile": "/nowhere.pem"}, "there is no file /nowhere.pem"),
    ],
)
def test_files_for_etcd_have_to_be_there(values: dict[str, str], fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        Controller(load(etcdEndpoints="https://127.0.0.1:2379", **values))


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "etcd3gw", None)
    with pytest.raises(ConfigError, match=r"pip install 'cometmq\[etcd\]'"):
        Controller(load(etcdEndpoints="http://127.0.0.1:2379"))


def test_decisions_need_a_place() -> None:
    with pytest.raises(ConfigError, match="controllerStorePath"):
        Controller(load())


def test_texts_load_back_to_the_same_config() -> None:
    config = load(enableElectUncleanMaster="true", controllerStorePath="/x")
    assert SCHEMA.load(SCHEMA.texts(config)) == (config, [])
