"""Decisions in a real etcd: what every store promises, and an etcd that is full, compacted, guarded or an old copy."""

from __future__ import annotations

import asyncio
import shutil
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.conformance.test_decision_store import (  # noqa: F401
    test_each_swap_makes_another_version,
    test_groups_do_not_touch_each_other,
    test_of_many_at_the_same_time_one_succeeds,
    test_what_was_never_stored_is_not_there,
    test_who_has_not_seen_the_last_version_changes_nothing,
)
from tests.eventually import wait_until
from tests.integration.etcd_cluster import EtcdCluster, EtcdMember, needs_etcd
from tests.unit.controller.group_of import group_of

from cometmq.base.clock import SystemClock
from cometmq.base.errors import CometError
from cometmq.controller.decision_store import NEVER_STORED, DecisionStore, Held, StoreAway
from cometmq.controller.etcd.endpoint import endpoints_of
from cometmq.controller.etcd.etcd_config import EtcdConfig
from cometmq.controller.etcd.etcd_side import EtcdSide
from cometmq.controller.peers import Peer

pytestmark = needs_etcd

NUMBERS = count()


def side_of(etcd: EtcdCluster, **settings: Any) -> EtcdSide:
    """A controller's side of it, that has looked once."""
    config = EtcdConfig(endpoints=etcd.endpoints, lease_seconds=2, **settings)
    side = EtcdSide(
        config,
        endpoints_of(config),
        lambda: Peer("n0", "127.0.0.1", 1),
        lambda: None,
        SystemClock(),
    )
    asyncio.run(side.look())
    return side


def looked_and_read(side: EtcdSide) -> Held | None:
    asyncio.run(side.look())
    try:
        return asyncio.run(side.store.read("bk"))
    except StoreAway:
        return None


def accepts(member: EtcdMember, path: str, **words: Any) -> bool:
    """It takes a change of its members only when all have been connected for seconds."""
    try:
        member.post(path, **words)
    except (AssertionError, OSError):
        return False
    return True


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    with EtcdCluster(tmp_path_factory.mktemp("etcd"), members=1) as etcd:
        yield etcd


@pytest.fixture
def store(etcd: EtcdCluster) -> DecisionStore:
    return side_of(etcd, prefix=f"/test/{next(NUMBERS)}").store


def test_two_groups_of_controllers_do_not_see_each_other(etcd: EtcdCluster) -> None:
    one, other = (side_of(etcd, prefix=f"/two/{name}") for name in ("a", "ab"))
    assert asyncio.run(one.store.swap("bk", NEVER_STORED, group_of(1)))
    asyncio.run(other.look())
    assert other.store.known() == {}
    assert asyncio.run(other.store.read("bk")) is None
    assert one.members.leads
    assert other.members.leads


def test_a_compacted_etcd_is_no_trouble(etcd: EtcdCluster) -> None:
    side = side_of(etcd, prefix="/compacted")
    for version in range(5):
        held = asyncio.run(side.store.read("bk"))
        seen = NEVER_STORED if held is None else held.version
        assert asyncio.run(side.store.swap("bk", seen, group_of(version + 1)))
    (member,) = etcd.members
    revision = member.post("kv/range", key=b64encode(b"x").decode())["header"]["revision"]
    member.post("kv/compaction", revision=revision, physical=True)
    member.post("maintenance/defragment")
    asyncio.run(side.look())
    held = asyncio.run(side.store.read("bk"))
    assert held is not None
    assert asyncio.run(side.store.swap("bk", held.version, group_of(6)))


def test_a_full_etcd_is_read_and_takes_nothing(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path, members=1, flags=("--quota-backend-bytes", "200000")) as etcd:
        side = side_of(etcd)
        assert asyncio.run(side.store.swap("bk", NEVER_STORED, group_of(1)))
        held = side.store.known()["bk"]
        (member,) = etcd.members

        def is_full() -> bool:
            value = b64encode(b"x" * 60_000).decode()
            try:
                member.post("kv/put", key=b64encode(b"filler").decode(), value=value)
            except AssertionError as error:
                return "space exceeded" in str(error)
            return False

        wait_until(is_full)
        with pytest.raises(StoreAway, match=r"etcd refuses: .* database space exceeded"):
            asyncio.run(side.store.swap("bk", held.version, group_of(2)))
        asyncio.run(side.look())
        assert asyncio.run(side.store.read("bk")) == held
        assert side.members.leads


def test_a_copy_from_before_is_not_believed(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path / "etcd", members=1) as etcd:
        side = side_of(etcd)
        group = group_of(2, master=1, in_sync=(1, 2), epoch=1, set_epoch=1)
        assert asyncio.run(side.store.swap("bk", NEVER_STORED, group))
        etcd.kill()
        shutil.copytree(etcd.members[0].directory, tmp_path / "copy")
        etcd.start()
        asyncio.run(side.look())
        newer = replace(group, master_id=2, master_epoch=2)
        assert asyncio.run(side.store.swap("bk", side.store.known()["bk"].version, newer))
        etcd.kill()
        shutil.rmtree(etcd.members[0].directory)
        shutil.copytree(tmp_path / "copy", etcd.members[0].directory)
        etcd.start()
        asyncio.run(side.look())
        with pytest.raises(StoreAway, match="etcd has gone back"):
            asyncio.run(side.store.read("bk"))
        assert side.store.known()["bk"].group == newer


def test_a_wiped_member_joins_again(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path / "etcd") as etcd:
        side = side_of(etcd)
        assert asyncio.run(side.store.swap("bk", NEVER_STORED, group_of(1)))
        wiped, other, _ = etcd.members
        ids = {one["name"]: one["ID"] for one in other.post("cluster/member/list")["members"]}
        wiped.kill()
        shutil.rmtree(wiped.directory)
        wait_until(lambda: all(member.is_healthy() for member in etcd.members[1:]))
        wait_until(lambda: accepts(other, "cluster/member/remove", ID=ids[wiped.name]))
        asyncio.run(side.look())
        assert asyncio.run(side.store.swap("bk", side.store.known()["bk"].version, group_of(2)))
        wait_until(lambda: accepts(other, "cluster/member/add", peerURLs=[wiped.peer_url]))
        etcd.flags = ("--initial-cluster-state", "existing")
        etcd.start()
        # From now on it is needed.
        etcd.members[2].kill()
        wait_until(lambda: wiped.is_healthy() and other.is_healthy())
        asyncio.run(side.look())
        assert asyncio.run(side.store.swap("bk", side.store.known()["bk"].version, group_of(3)))
        other.kill()
        asyncio.run(side.look())
        with pytest.raises(StoreAway, match="no member of etcd answers"):
            asyncio.run(side.store.read("bk"))
        assert side.store.known()["bk"].group == group_of(3)


def test_a_user_logs_in_and_again_when_etcd_has_forgotten(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("s3cret\n")
    with EtcdCluster(tmp_path / "etcd", members=1) as etcd:
        (member,) = etcd.members
        member.post("auth/user/add", name="root", password="s3cret")
        member.post("auth/role/add", name="root")
        member.post("auth/user/grant", user="root", role="root")
        member.post("auth/enable")
        stranger = side_of(etcd)
        with pytest.raises(StoreAway, match="user name is empty"):
            asyncio.run(stranger.store.read("bk"))
        side = side_of(etcd, user="root", password_path=str(password))
        assert asyncio.run(side.store.swap("bk", NEVER_STORED, group_of(1)))
        etcd.kill()
        etcd.start()
        # A controller looks again and again; an etcd that has just started may refuse its own token.
        held = wait_until(lambda: looked_and_read(side), "a login after the restart")
        assert held.group == group_of(1)
        password.write_text("wrong")
        wrong = side_of(etcd, user="root", password_path=str(password))
        with pytest.raises(StoreAway, match="authentication failed"):
            asyncio.run(wrong.store.read("bk"))


def test_certificates_are_checked_on_both_sides(tmp_path: Path) -> None:
    authority = trustme.CA()
    ca, cert, key = (str(tmp_path / name) for name in ("ca.pem", "cert.pem", "key.pem"))
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(ca)
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    flags = ("--cert-file", cert, "--key-file", key)
    with EtcdCluster(tmp_path / "etcd", members=1, flags=flags, scheme="https") as etcd:
        side = side_of(etcd, ca_path=ca, cert_path=cert, key_path=key)
        assert asyncio.run(side.store.swap("bk", NEVER_STORED, group_of(1)))
        trustme.CA().cert_pem.write_to_path(ca)
        with pytest.raises(CometError, match="CERTIFICATE_VERIFY_FAILED"):
            asyncio.run(side_of(etcd, ca_path=ca).store.read("bk"))


def test_who_stops_lets_another_lead_at_once(etcd: EtcdCluster) -> None:
    one = side_of(etcd, prefix="/stops")
    other = side_of(etcd, prefix="/stops")
    assert one.members.leads
    assert not other.members.leads
    asyncio.run(one.members.resign())
    asyncio.run(other.look())
    assert other.members.leads
