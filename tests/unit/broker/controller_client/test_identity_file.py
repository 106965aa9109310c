"""The permanent id of a broker under a controller, on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.base.errors import ConfigError, CorruptFile
from cometmq.broker.controller_client.identity_file import Applied, IdentityFile
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

GOLDEN = Path(__file__).parents[3] / "golden" / "ha" / "brokerIdentity"
PATH = "/store/brokerIdentity"


def _files() -> FaultyFiles:
    files = FaultyFiles(FakeClock(), seed=1)
    files.make_directory("/store")
    return files


def _identity(files: FaultyFiles, broker_name: str = "bk") -> IdentityFile:
    return IdentityFile(PATH, files, cluster="HaCluster", broker_name=broker_name)


def test_an_id_is_applied_for_and_granted() -> None:
    files = _files()
    identity = _identity(files)
    assert identity.load() is None
    assert identity.applied() is None
    applied = Applied(1, "127.0.0.1:45230;1794950615887")
    identity.apply(applied)
    assert _identity(files).applied() == applied
    assert identity.load() is None
    identity.grant(1)
    assert files.read(PATH) == GOLDEN.read_bytes()
    assert _identity(files).load() == 1
    assert _identity(files).applied() is None


def test_what_was_not_granted_is_forgotten() -> None:
    files = _files()
    identity = _identity(files)
    identity.apply(Applied(1, "a;1"))
    identity.withdraw()
    identity.withdraw()
    assert identity.applied() is None


def test_the_store_of_another_broker_is_refused() -> None:
    files = _files()
    files.replace(PATH, GOLDEN.read_bytes())
    with pytest.raises(ConfigError, match="belongs to broker bk of cluster HaCluster"):
        _identity(files, "other").load()


@pytest.mark.parametrize("content", [b"", b"HaCluster#bk", b"HaCluster#bk#x", b"HaCluster#bk#0"])
def test_a_damaged_file_is_refused(content: bytes) -> None:
    files = _files()
    files.replace(PATH, content)
    with pytest.raises(CorruptFile, match="found"):
        _identity(files).load()
