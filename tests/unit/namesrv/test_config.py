from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.base.errors import ConfigError
from cometmq.base.settings import parse_properties, rows
from cometmq.base.system import SystemFiles
from cometmq.namesrv.config import NamesrvConfig, load_namesrv_config, texts
from cometmq.namesrv.known_keys import WITHOUT_EFFECT
from cometmq.namesrv.live_config import LiveConfig, edit_properties
from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.refusal import Refused

# What a 4.9.7 and a 5.5.0 name server answer when asked for their configuration.
JAVA_KEYS = """
    serverSocketBacklog writeBufferHighWaterMark serverWorkerThreads serverSelectorThreads
    serverChannelMaxIdleTimeSeconds writeBufferLowWaterMark serverSocketRcvBufSize serverAsyncSemaphoreValue
    kvConfigPath configStorePath clusterTest orderMessageEnable serverSocketSndBufSize serverOnewaySemaphoreValue
    serverCallbackExecutorThreads listenPort rocketmqHome productEnvName useEpollNativeSelector
    serverPooledByteBufAllocatorEnable bindAddress clientRequestThreadPoolNums
    clientRequestThreadPoolQueueCapacity configBlackList defaultThreadPoolNums defaultThreadPoolQueueCapacity
    deleteTopicWithBrokerRegistration enableAllTopicList enableControllerInNamesrv enableShutdownGracefully
    enableTopicList needWaitForService notifyMinBrokerIdChanged returnOrderTopicConfigToBroker
    scanNotActiveBrokerInterval serverNettyWorkerGroupEnable shutdownWaitTimeSeconds supportActingMaster
    unRegisterBrokerQueueCapacity waitSecondsForService
"""


def test_every_key_of_rocketmq_is_known_once() -> None:
    own = {row.key for row in rows(NamesrvConfig)}
    assert set(JAVA_KEYS.split()) <= own | WITHOUT_EFFECT
    assert not own & WITHOUT_EFFECT


def test_keys_without_effect_are_named() -> None:
    config, ignored = load_namesrv_config({"listenPort": "1234", "serverWorkerThreads": "8"})
    assert (config.listen_port, ignored) == (1234, ["serverWorkerThreads"])


def test_an_unknown_key_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'kvConfigPath'"):
        load_namesrv_config({"kvConfigpath": "x"})


def test_values_are_checked() -> None:
    for key, value in (("listenPort", "65536"), ("orderMessageEnable", "yes")):
        with pytest.raises(ConfigError, match=key):
            load_namesrv_config({key: value})
    with pytest.raises(ConfigError, match=r"addressServiceAddresses.*like 127"):
        load_namesrv_config({"addressServiceAddresses": "10.0.0.1:9876;nowhere"})


@pytest.mark.parametrize(
    ("address", "is_loopback"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("", False)],
)
def test_listening_beyond_loopback_is_recognised(address: str, is_loopback: bool) -> None:
    assert NamesrvConfig(bind_address=address).is_loopback is is_loopback
    assert NamesrvConfig().is_loopback


def test_texts_load_back_to_the_same_config() -> None:
    config, _ = load_namesrv_config({"orderMessageEnable": "true", "serverSocketBacklog": "7"})
    assert load_namesrv_config(texts(config)) == (config, [])


def live(tmp_path: Path, content: str = "") -> tuple[LiveConfig, Path]:
    path = tmp_path / "namesrv.conf"
    path.write_text(content)
    config, _ = load_namesrv_config({**parse_properties(content), "configStorePath": str(path)})
    return LiveConfig(config, SystemFiles()), path


def test_the_first_change_makes_the_file_and_its_directory(tmp_path: Path) -> None:
    path = tmp_path / "new" / "namesrv.properties"
    config, _ = load_namesrv_config({"configStorePath": str(path)})
    LiveConfig(config, SystemFiles()).update("orderMessageEnable=true\n")
    assert path.read_text() == "orderMessageEnable=true\n"


def test_a_change_over_the_network_applies_and_is_kept(tmp_path: Path) -> None:
    config, path = live(tmp_path, "# mine\nlistenPort=1\norderMessageEnable = false\n")
    config.update("orderMessageEnable=true\nwaitSecondsForService=3\n")
    assert config.current.order_message_enable
    assert path.read_text() == (
        "# mine\nlistenPort=1\norderMessageEnable=true\nwaitSecondsForService=3\n"
    )
    assert "orderMessageEnable=true\n" in config.text()


@pytest.mark.parametrize(
    "key", ["kvConfigPath", "configStorePath", "listenPort", "bindAddress", "configBlackList"]
)
def test_paths_and_addresses_are_not_changed_over_the_network(tmp_path: Path, key: str) -> None:
    config, path = live(tmp_path)
    before = config.current
    with pytest.raises(Refused) as refusal:
        config.update(f"orderMessageEnable=true\n{key}=1\n")
    assert refusal.value.code == ResponseCode.NO_PERMISSION
    assert (config.current, path.read_text()) == (before, "")


@pytest.mark.parametrize("text", ["nonsense=1", "orderMessageEnable=maybe", "x=\\uZZZZ"])
def test_a_bad_change_is_refused(tmp_path: Path, text: str) -> None:
    config, _ = live(tmp_path)
    with pytest.raises(Refused) as refusal:
        config.update(text)
    assert refusal.value.code == ResponseCode.SYSTEM_ERROR


def test_a_change_that_cannot_be_written_does_not_apply(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    path = str(tmp_path / "file" / "n.conf")
    config = LiveConfig(NamesrvConfig(config_path=path), SystemFiles())
    with pytest.raises(Refused, match="cannot be changed"):
        config.update("orderMessageEnable=true")
    assert not config.current.order_message_enable


def test_editing_keeps_every_other_line() -> None:
    text = "! a=0\\\na = 1\nlong=x\\\n  a=y\nb:2\na=3"
    assert edit_properties(text, {"a": "9", "c": "4"}) == (
        "! a=0\\\na=9\nlong=x\\\n  a=y\nb:2\nc=4\n"
    )
    assert edit_properties("", {"a": "1"}) == "a=1\n"
    assert edit_properties("b=1", {"a": "1"}) == "b=1\na=1\n"
