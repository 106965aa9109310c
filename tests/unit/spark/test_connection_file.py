"""The option connectionFile: how Spark reaches a cluster, in a file that others may not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.spark.errors import BadOption
from cometmq.spark.options import ConnectionOptions, OptionReader, read_connection


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "spark.conf"
    path.write_text(
        "rocketmq.namesrv.addr=one:9876;two:9876\nnamespace=blue\naccessKey=spark\nsecretKey=hush-hush\n"
    )
    return str(path)


def read(**options: str) -> ConnectionOptions:
    reader = OptionReader(options)
    connection = read_connection(reader)
    reader.finish()
    return connection


def test_everything_is_in_the_file(file: str) -> None:
    found = read(connectionFile=file, callTimeout="5s")
    assert found.name_servers == ("one:9876", "two:9876")
    assert (found.namespace, found.call_seconds) == ("blue", 5.0)
    assert found.credentials.secret_key == "hush-hush"
    assert "hush-hush" not in repr(found)


def test_name_servers_may_be_others(file: str) -> None:
    assert read(connectionFile=file, nameServers="three:9876").name_servers == ("three:9876",)


def test_one_thing_is_said_in_one_place(file: str) -> None:
    with pytest.raises(
        BadOption, match=r"connectionFile and accessKey, tls.enable: expected .* in .*spark.conf"
    ):
        read(connectionFile=file, accessKey="me", **{"tls.enable": "true"})


def test_a_file_without_name_servers_needs_the_option(tmp_path: Path) -> None:
    path = tmp_path / "spark.conf"
    path.write_text("namespace=blue\n")
    with pytest.raises(BadOption, match="option nameServers: expected the addresses"):
        read(connectionFile=str(path))


def test_a_file_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="option connectionFile: cannot read"):
        read(connectionFile=str(tmp_path / "missing.conf"))
