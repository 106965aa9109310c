"""Settings over the wire: what may change, what is written down, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.broker.rig import Rig

from cometmq.base.properties_file import parse_properties

PATH = "/broker.conf"


@pytest.fixture
def rig() -> Rig:
    """One that was started with a file."""
    made = Rig(config_path=PATH)
    made.files.replace(PATH, b"# settings\n")
    return made


def file_of(rig: Rig) -> str:
    return rig.files.read(PATH).decode()


def test_settings_are_read_and_changed(rig: Any) -> None:
    assert rig.ask(25, None, b"brokerPermission=4\nhaFlowControlEnable=1\n").code == 0
    reply = rig.ask(26)
    values = parse_properties(bytes(reply.body).decode())
    assert (values["brokerPermission"], values["haFlowControlEnable"]) == ("4", "1")
    assert json.loads(reply.ext["version"])["counter"] == 1
    assert file_of(rig) == "# settings\nbrokerPermission=4\nhaFlowControlEnable=1\n"


@pytest.mark.parametrize(
    ("body", "code", "named"),
    [
        (b"brokerConfigPath=/tmp/x\n", 16, "brokerConfigPath"),
        (b"storePathRootDir=/tmp/x\n", 16, "storePathRootDir"),
        (b"traceOn=false\nbrokerName=x\n", 16, "brokerName"),
        (b"brokerPermission=lots\n", 1, "brokerPermission"),
        (b"brokerPermision=4\n", 1, "brokerPermission"),
        (b"\xff\xfe", 1, "UTF-8"),
        (b"a=\\u0061", 1, "unknown setting"),
        (b"a=\\uzzzz", 1, "escape"),
    ],
)
def test_a_setting_that_cannot_change_is_named(
    rig: Any, body: bytes, code: int, named: str
) -> None:
    reply = rig.ask(25, None, body)
    assert reply.code == code
    assert named in reply.remark
    assert file_of(rig) == "# settings\n"


LINE_ENDS = ["\\u2028", "\\u2029", "\\u0085", "\\f", "\\u000b", "\\u001c", "\\n", "\\r", "\\u0000"]


@pytest.mark.parametrize("key", ["msgTraceTopicName", "haMasterAddress", "brokerPermission"])
@pytest.mark.parametrize("line_end", LINE_ENDS)
def test_a_value_cannot_smuggle_in_another_setting(rig: Any, key: str, line_end: str) -> None:
    body = f"{key}=4{line_end}filterFunctionDirectory=/tmp/x{line_end}bindAddress=0.0.0.0\n"
    reply = rig.ask(25, None, body.encode())
    assert reply.code == 1
    assert f"{key} must not hold the control character" in reply.remark
    assert file_of(rig) == "# settings\n"


def test_a_switch_cannot_smuggle_in_another_setting(rig: Any) -> None:
    body = b"aclEnable=false\\u2028filterFunctionDirectory=/tmp/x\\u2028bindAddress=0.0.0.0"
    assert rig.ask(25, None, body).code == 1
    assert file_of(rig) == "# settings\n"


@pytest.mark.parametrize("separator", ["\u2028", "\u0085", "\f", "\v", "\x1c"])
def test_only_line_feed_and_carriage_return_end_a_line(rig: Any, separator: str) -> None:
    body = f"haMasterAddress=a{separator}bindAddress=0.0.0.0\n"
    assert rig.ask(25, None, body.encode()).code == 1
    assert file_of(rig) == "# settings\n"


def test_settings_of_many_bytes_are_refused_unread(rig: Any) -> None:
    reply = rig.ask(25, None, b"haMasterAddress=" + b"x" * 64 * 1024)
    assert (reply.code, file_of(rig)) == (1, "# settings\n")
    assert reply.remark == "settings of 65552 bytes; at most 65536 are taken"


def test_a_setting_of_the_start_is_stored_and_the_answer_says_so(rig: Any) -> None:
    reply = rig.ask(25, None, b"maxErrorRateOfBloomFilter=10\nbrokerPermission=4\n")
    assert (reply.code, reply.remark) == (
        0,
        "stored; takes effect at the next start: maxErrorRateOfBloomFilter",
    )
    told = parse_properties(bytes(rig.ask(26).body).decode())
    assert told["maxErrorRateOfBloomFilter"] == "10"
    assert file_of(rig) == "# settings\nmaxErrorRateOfBloomFilter=10\nbrokerPermission=4\n"


@pytest.mark.parametrize("key", ["enableDLegerCommitLog", "enableRemoteEscape"])
def test_protection_that_is_not_there_cannot_be_turned_on(rig: Any, key: str) -> None:
    assert rig.ask(25, None, f"{key}=false\n".encode()).code == 0
    reply = rig.ask(25, None, f"{key}=true\n".encode())
    assert reply.code == 1
    assert f"{key}='true' cannot be met" in reply.remark
    assert file_of(rig) == f"# settings\n{key}=false\n"


@pytest.mark.parametrize(
    "key", ["aclEnable", "authenticationEnabled", "accessChecks", "initAuthenticationUser"]
)
def test_what_protects_the_broker_cannot_be_changed_over_the_network(rig: Any, key: str) -> None:
    reply = rig.ask(25, None, f"{key}=false\n".encode())
    assert (reply.code, file_of(rig)) == (16, "# settings\n")


def test_no_settings_change_nothing(rig: Any) -> None:
    assert rig.ask(25).code == 0
    assert json.loads(rig.ask(26).ext["version"])["counter"] == 0
