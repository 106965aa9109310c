"""What ``cometmq doctor`` says about a cluster: checks over plain data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cometmq.admin import Place
from cometmq.cli.doctor.diagnosis import diagnose, is_healthy
from cometmq.cli.doctor.facts import (
    CertificateFacts,
    ClientFacts,
    ClusterFacts,
    Kind,
    ServerFacts,
    TlsFacts,
)
from cometmq.cli.doctor.finding import Level

DAY_MS = 24 * 3600 * 1000
NOW_MS = 20_000 * DAY_MS
HOST = "192.0.2.10"
NAME_SERVER, MASTER, SLAVE = f"{HOST}:9876", f"{HOST}:10911", f"{HOST}:10921"

CERTIFICATE = CertificateFacts(
    valid_from_ms=NOW_MS - DAY_MS, valid_until_ms=NOW_MS + 300 * DAY_MS, hosts=(HOST,)
)
TLS = TlsFacts(protocol="TLSv1.3", certificate=CERTIFICATE)


def server(kind: Kind, address: str, **settings: str) -> ServerFacts:
    return ServerFacts(kind=kind, address=address, tls=TLS, settings=settings)


def broker(broker_id: int, address: str, end: int = 5000, **settings: str) -> ServerFacts:
    own = {
        "brokerClusterName": "C",
        "brokerName": "a",
        "brokerId": str(broker_id),
        "listenPort": address.partition(":")[2],
        "flushDiskType": "ASYNC_FLUSH",
        "haTlsEnable": "true",
    }
    figures = {"brokerVersionDesc": "V4_9_8", "commitLogMaxOffset": str(end)}
    return replace(server(Kind.BROKER, address, **(own | settings)), figures=figures)


def place(broker_id: int = 0, address: str = MASTER, name: str = "a", cluster: str = "C") -> Place:
    return Place(cluster=cluster, broker_name=name, broker_id=broker_id, address=address)


GOOD = ClusterFacts(
    now_ms=NOW_MS,
    client=ClientFacts(has_account=True, has_tls=True, verifies_server=True),
    servers=(server(Kind.NAME_SERVER, NAME_SERVER), broker(0, MASTER), broker(1, SLAVE)),
    told={NAME_SERVER: (place(0, MASTER), place(1, SLAVE))},
)


def with_server(changed: ServerFacts) -> ClusterFacts:
    """The good cluster, with this server in place of the one at its address."""
    others = [one for one in GOOD.servers if one.address != changed.address]
    return replace(GOOD, servers=(*others, changed))


def told(*places: Place, at: str = NAME_SERVER) -> ClusterFacts:
    return replace(GOOD, told={at: places})


def names(facts: ClusterFacts, level: Level = Level.PROBLEM) -> list[str]:
    return [finding.name for finding in diagnose(facts) if finding.level is level]


def only(facts: ClusterFacts, name: str) -> str:
    """The subject and text of the one finding, which is a problem of this name."""
    [finding] = diagnose(facts)
    assert (finding.level, finding.name) == (Level.PROBLEM, name)
    assert finding.remedy
    return f"{finding.subject} {finding.text}"


def test_nothing_is_found_where_all_is_right() -> None:
    assert diagnose(GOOD) == []
    assert is_healthy([])


@pytest.mark.parametrize("kind", Kind)
def test_access_without_an_account(kind: Kind) -> None:
    address = f"{HOST}:4000"
    facts = with_server(replace(server(kind, address), serves_strangers=True))
    assert f"{kind} {address} serves everybody" in only(facts, "anonymous-access")


def test_plain_text() -> None:
    facts = with_server(replace(broker(0, MASTER), takes_plain_text=True))
    assert "answers without TLS" in only(facts, "plain-text")


def test_replication_in_plain_text() -> None:
    plain = [broker(number, at, haTlsEnable="false") for number, at in ((0, MASTER), (1, SLAVE))]
    facts = replace(GOOD, servers=(GOOD.servers[0], *plain))
    assert names(facts) == ["replication-plain-text"] * 2
    alone = replace(facts, servers=facts.servers[:2], told={NAME_SERVER: (place(0, MASTER),)})
    assert diagnose(alone) == []


def test_what_only_this_machine_reaches_is_a_note() -> None:
    local = "127.0.0.1:9876"
    open_server = ServerFacts(
        kind=Kind.NAME_SERVER,
        address=local,
        takes_plain_text=True,
        serves_strangers=True,
        settings={},
    )
    facts = replace(
        GOOD, servers=(*GOOD.servers[1:], open_server), told={local: GOOD.told[NAME_SERVER]}
    )
    assert names(facts, Level.NOTE) == ["anonymous-access", "plain-text"]
    assert is_healthy(diagnose(facts))


@pytest.mark.parametrize(
    ("days", "name"),
    [(300, None), (30, None), (29, "certificate-expires-soon"), (-1, "certificate-expired")],
)
def test_the_end_of_a_certificate(days: int, name: str | None) -> None:
    ending = replace(CERTIFICATE, valid_until_ms=NOW_MS + days * DAY_MS)
    facts = with_server(replace(broker(0, MASTER), tls=replace(TLS, certificate=ending)))
    assert names(facts) == ([] if name is None else [name])


def test_a_certificate_that_is_not_valid_yet() -> None:
    early = replace(CERTIFICATE, valid_from_ms=NOW_MS + 1)
    facts = with_server(replace(broker(0, MASTER), tls=replace(TLS, certificate=early)))
    only(facts, "certificate-not-yet-valid")


@pytest.mark.parametrize(
    ("hosts", "host", "is_right"),
    [
        (("queue.example.com",), "queue.example.com", True),
        (("*.example.com",), "queue.example.com", True),
        (("*.example.com",), "a.queue.example.com", False),
        (("10.0.0.1",), HOST, False),
        ((), HOST, False),
    ],
)
def test_the_host_of_a_certificate(hosts: tuple[str, ...], host: str, is_right: bool) -> None:
    tls = replace(TLS, certificate=replace(CERTIFICATE, hosts=hosts))
    facts = with_server(replace(server(Kind.NAME_SERVER, f"{host}:1"), tls=tls))
    assert names(facts) == ([] if is_right else ["certificate-of-another-host"])


def test_a_certificate_that_clients_do_not_trust() -> None:
    tls = replace(TLS, distrust="self-signed certificate")
    facts = with_server(replace(broker(0, MASTER), tls=tls))
    assert "self-signed" in only(facts, "certificate-not-trusted")


def test_a_certificate_that_cannot_be_read_is_not_taken_for_good() -> None:
    facts = with_server(replace(broker(0, MASTER), tls=replace(TLS, certificate=None)))
    assert names(facts, Level.UNKNOWN) == ["certificate-unread"]
    assert not is_healthy(diagnose(facts))


def test_a_client_that_believes_everybody() -> None:
    client = ClientFacts(has_account=True, has_tls=True, verifies_server=False)
    assert "this client" in only(replace(GOOD, client=client), "server-not-verified")


def test_a_server_that_nobody_reaches() -> None:
    facts = with_server(ServerFacts(kind=Kind.BROKER, address=SLAVE, silence="no answer in 5 s"))
    assert only(facts, "unreachable") == f"broker {SLAVE} no answer in 5 s"


@pytest.mark.parametrize("address", ["127.0.0.1:10911", "localhost:10911", "0.0.0.0:10911"])
def test_an_address_that_leads_clients_to_themselves(address: str) -> None:
    assert "a:0" in only(told(place(0, address)), "loopback-told")
    assert diagnose(told(place(0, address), at="127.0.0.1:9876")) == []


def test_a_name_server_without_brokers() -> None:
    assert NAME_SERVER in only(told(), "no-brokers")


def test_name_servers_that_tell_different_things() -> None:
    other = "192.0.2.11:9876"
    facts = replace(GOOD, told={**GOOD.told, other: (place(0, MASTER),)})
    assert only(facts, "name-servers-differ") == (
        f"broker a:1 {SLAVE} is not known to name server {other}"
    )


def test_two_brokers_with_one_id() -> None:
    other = "192.0.2.11:9876"
    facts = replace(
        GOOD, told={NAME_SERVER: (place(1, SLAVE),), other: (place(1, "192.0.2.12:10911"),)}
    )
    assert names(facts) == ["duplicate-broker", "name-servers-differ", "name-servers-differ"]


def test_one_address_with_two_names() -> None:
    assert "is told as a:0 and as b:0" in only(
        told(place(0, "192.0.2.13:1"), place(0, "192.0.2.13:1", name="b")), "duplicate-address"
    )


def test_a_broker_that_is_not_the_one_told() -> None:
    facts = with_server(broker(0, MASTER, brokerName="z"))
    assert "brokerName z instead of a" in only(facts, "names-differ")


def test_ids_that_a_controller_gives_need_no_setting() -> None:
    facts = with_server(broker(1, SLAVE, brokerId="-1", enableControllerMode="true"))
    assert "names-differ" not in names(facts)


def test_replicas_in_different_clusters() -> None:
    facts = told(place(0, "192.0.2.13:1"), place(1, "192.0.2.14:1", cluster="D"))
    assert "C and D" in only(facts, "clusters-differ")


def test_different_versions() -> None:
    old = replace(broker(1, SLAVE), figures={"brokerVersionDesc": "V4_9_7"})
    assert f"V4_9_7: {SLAVE}; V4_9_8: {MASTER}" in only(with_server(old), "versions-differ")


def test_settings_that_differ_between_replicas() -> None:
    facts = with_server(broker(1, SLAVE, flushDiskType="SYNC_FLUSH", storePathRootDir="/other"))
    assert "flushDiskType: ASYNC_FLUSH on 0, SYNC_FLUSH on 1" in only(facts, "settings-differ")


def test_a_slave_that_is_behind() -> None:
    near = with_server(broker(0, MASTER, end=5000 + (1 << 20)))
    assert diagnose(near) == []
    far = with_server(broker(0, MASTER, end=5001 + (1 << 20)))
    assert "a:1 is 1,048,577 bytes behind its master" in only(far, "slave-behind")


def test_what_was_not_answered_is_not_taken_for_good() -> None:
    facts = with_server(replace(broker(0, MASTER), settings=None, refusal="no rights"))
    assert names(facts, Level.UNKNOWN) == ["not-answered"]
    assert not is_healthy(diagnose(facts))


def test_problems_come_first() -> None:
    facts = with_server(replace(broker(0, MASTER), refusal="no rights", takes_plain_text=True))
    assert [finding.level for finding in diagnose(facts)] == [Level.PROBLEM, Level.UNKNOWN]


def test_an_address_that_is_none_is_no_reason_to_fail() -> None:
    nowhere = ServerFacts(kind=Kind.BROKER, address="nowhere", silence="expected an address")
    facts = replace(told(place(0, "nowhere")), servers=(*GOOD.servers, nowhere))
    assert names(facts) == ["unreachable"]
