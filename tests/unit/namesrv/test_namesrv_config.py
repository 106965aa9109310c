from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.access.access_config import LOCAL_USERS
from cometmq.access.door.open_door import is_open_door
from cometmq.base.disk import SystemFiles
from cometmq.base.errors import ConfigError
from cometmq.base.properties_file import parse_properties
from cometmq.base.setting_keys import NotChangeable
from cometmq.namesrv.live_config import LiveConfig
from cometmq.namesrv.namesrv_config import NamesrvConfig, load_namesrv_config, texts
from cometmq.namesrv.with_controller import load_controller


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
    config = NamesrvConfig(bind_address=address)
    assert is_open_door(config.access, config.bind_address) is not is_loopback
    assert not is_open_door(NamesrvConfig().access, NamesrvConfig().bind_address)


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
    LiveConfig(config, SystemFiles()).update({"orderMessageEnable": "true"})
    assert path.read_text() == "orderMessageEnable=true\n"


def test_a_change_over_the_network_applies_and_is_kept(tmp_path: Path) -> None:
    config, path = live(tmp_path, "# mine\nlistenPort=1\norderMessageEnable = false\n")
    config.update({"orderMessageEnable": "true", "waitSecondsForService": "3"})
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
    with pytest.raises(NotChangeable, match=key):
        config.update({"orderMessageEnable": "true", key: "1"})
    assert (config.current, path.read_text()) == (before, "")


@pytest.mark.parametrize(("key", "text"), [("nonsense", "1"), ("orderMessageEnable", "maybe")])
def test_a_bad_change_is_refused(tmp_path: Path, key: str, text: str) -> None:
    config, path = live(tmp_path)
    with pytest.raises(ConfigError, match=key):
        config.update({"waitSecondsForService": "1", key: text})
    assert path.read_text() == ""


def test_a_setting_of_the_start_waits_for_the_start(tmp_path: Path) -> None:
    config, path = live(tmp_path)
    assert config.update({"scanNotActiveBrokerInterval": "500"}) == ["scanNotActiveBrokerInterval"]
    assert config.current.scan_interval_ms == 10_000
    assert "scanNotActiveBrokerInterval=500\n" in config.text()
    assert path.read_text() == "scanNotActiveBrokerInterval=500\n"
    with pytest.raises(NotChangeable, match="no file to keep it in"):
        LiveConfig(NamesrvConfig(), SystemFiles()).update({"serverSocketBacklog": "7"})


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("tls.server.mode", "enforcing", "tls.config.file"),
        ("useTLS", "true", "tls.config.file"),
    ],
)
def test_protection_that_is_not_there_is_refused(
    tmp_path: Path, key: str, text: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=rf"{key}='{text}' cannot be met: .*{reason}"):
        load_namesrv_config({key: text})
    with pytest.raises(ConfigError, match=key):
        live(tmp_path)[0].update({key: text})
    assert load_namesrv_config({key: "false"}) == (NamesrvConfig(), [key])


@pytest.mark.parametrize("key", ["orderMessageEnable", "productEnvName"])
@pytest.mark.parametrize("line_end", ["\\u2028", "\\u0085", "\\f", "\\u000b", "\\n", "\\r"])
def test_a_value_cannot_smuggle_in_another_setting(tmp_path: Path, key: str, line_end: str) -> None:
    config, path = live(tmp_path, "# mine\n")
    text = f"waitSecondsForService=1\n{key}=true{line_end}bindAddress=0.0.0.0\n"
    with pytest.raises(ConfigError, match=f"{key} must not hold the control character"):
        config.update(parse_properties(text))
    assert path.read_text() == "# mine\n"


def test_a_change_that_cannot_be_written_does_not_apply(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    path = str(tmp_path / "file" / "n.conf")
    config = LiveConfig(NamesrvConfig(config_path=path), SystemFiles())
    with pytest.raises(ConfigError, match="cannot be changed"):
        config.update({"orderMessageEnable": "true"})
    assert not config.current.order_message_enable


def test_a_controller_in_the_same_process_checks_the_same_accounts_in_a_place_of_its_own() -> None:
    values = {
        "innerClientAuthenticationCredentials": '{"accessKey":"inner","secretKey":"hush"}',
        "authenticationEnabled": "true",
        "authenticationMetadataProvider": LOCAL_USERS,
        "accountPath": "/accounts",
        "controllerStorePath": "/controller",
    }
    access = load_controller(values).access
    assert access.is_authenticating
    assert access.inner.credential == ("inner", "hush")
    assert access.path == ""
