from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.base.disk import SystemFiles
from cometmq.base.errors import ConfigError, DiskFull
from cometmq.namesrv import kv as kv_module
from cometmq.namesrv.kv import KVConfig, encode_file
from cometmq.protocol.refusal import Refused


class FullDisk(SystemFiles):
    def replace(self, path: str, data: bytes) -> None:
        raise DiskFull(f"no space left to write {path}")


def test_values_survive_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "below" / "kvConfig.json")
    kv = KVConfig(path, SystemFiles())
    kv.load()
    kv.put("ORDER_TOPIC_CONFIG", "T", "broker-a:4;broker-b:4")
    kv.put("n", 'quote "', "Grüße\n")
    again = KVConfig(path, SystemFiles())
    again.load()
    assert again.get("ORDER_TOPIC_CONFIG", "T") == "broker-a:4;broker-b:4"
    assert again.namespace("n") == {'quote "': "Grüße\n"}


def test_a_namespace_outlives_its_last_key(tmp_path: Path) -> None:
    kv = KVConfig(str(tmp_path / "kv.json"), SystemFiles())
    assert kv.namespace("n") is None
    kv.put("n", "k", "v")
    kv.delete("n", "k")
    kv.delete("n", "k")
    kv.delete("other", "k")
    assert (kv.get("n", "k"), kv.namespace("n"), kv.namespace("other")) == (None, {}, None)


def test_the_file_is_laid_out_as_rocketmq_does() -> None:
    assert encode_file({"N": {"a": "1", "b": "2"}, "E": {}}) == (
        b'{\n\t"configTable":{\n\t\t"N":{\n\t\t\t"a":"1",\n\t\t\t"b":"2"\n\t\t},\n\t\t"E":{}\n\t}\n}'
    )
    assert encode_file({}) == b'{\n\t"configTable":{}\n}'


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"configTable":{"n":{"k":1}}}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kv.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"kv\.json is damaged.*nothing was overwritten"):
        KVConfig(str(path), SystemFiles()).load()
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"{}", b'{"configTable":null}'])
def test_an_empty_file_is_an_empty_table(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kv.json"
    path.write_bytes(content)
    kv = KVConfig(str(path), SystemFiles())
    kv.load()
    assert kv.namespace("n") is None


def test_what_the_disk_refuses_does_not_count(tmp_path: Path) -> None:
    kv = KVConfig(str(tmp_path / "kv.json"), FullDisk())
    with pytest.raises(Refused, match="no space"):
        kv.put("n", "k", "v")
    assert kv.get("n", "k") is None


def test_sizes_and_count_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_module, "ENTRIES_MAX", 2)
    kv = KVConfig("", SystemFiles())
    for namespace, key, value in (("", "k", "v"), ("n", "", "v"), ("n" * 1025, "k", "v")):
        with pytest.raises(Refused, match="characters"):
            kv.put(namespace, key, value)
    with pytest.raises(Refused, match="at most 65536"):
        kv.put("n", "k", "v" * 65_537)
    kv.put("n", "a", "1")
    kv.put("m", "b", "1")
    with pytest.raises(Refused, match="holds 2"):
        kv.put("n", "c", "1")
    kv.put("n", "a", "2")
    assert kv.get("n", "a") == "2"
