from __future__ import annotations

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


def test_decisions_need_a_place() -> None:
    with pytest.raises(ConfigError, match="controllerStorePath"):
        Controller(load())


def test_texts_load_back_to_the_same_config() -> None:
    config = load(enableElectUncleanMaster="true", controllerStorePath="/x")
    assert SCHEMA.load(SCHEMA.texts(config)) == (config, [])
