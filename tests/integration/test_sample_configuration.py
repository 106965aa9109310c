"""The files in ``conf``: every line of them is good, also those commented out, and servers start from them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trustme
from tests.eventually import eventually
from tests.integration.commands import free_port
from tests.integration.etcd_cluster import needs_etcd
from tests.integration.servers import running_name_server

from cometmq.base.properties_file import parse_properties, render_properties
from cometmq.broker.config.broker_config import load_broker_config
from cometmq.broker.server import Broker
from cometmq.client import Message, SendStatus
from cometmq.client.aio import Producer
from cometmq.controller.controller_config import SCHEMA as CONTROLLER
from cometmq.controller.server import Controller
from cometmq.namesrv.namesrv_config import load_namesrv_config
from cometmq.namesrv.server import NameServer
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command
from cometmq.remoting.client import RemotingClient
from cometmq.remoting.tls import TlsConfig, load_tls_config, tls_config_of

CONF = Path(__file__).parents[2] / "conf"
TLS_DIRECTORY = "/etc/cometmq/tls"

TLS_KEY = "tls.config.file"


def sample(name: str) -> str:
    return (CONF / name).read_text(encoding="utf-8")


def with_examples(text: str) -> dict[str, str]:
    """All settings, those that are commented out as well."""
    return parse_properties(re.sub(r"(?m)^#(?=[\w.]+=)", "", text))


SET_UPS = {
    "2m-noslave": ["broker-a", "broker-b"],
    "2m-2s-async": ["broker-a", "broker-b", "broker-a-s", "broker-b-s"],
    "2m-2s-sync": ["broker-a", "broker-b", "broker-a-s", "broker-b-s"],
}
"""The brokers of each sample of several, masters first."""


CONTROLLERS = ["n0", "n1", "n2"]
CONTROLLED = ["broker-a", "broker-b", "broker-c"]
"""Those of conf/controller: one group under three controllers, which share an etcd."""


def test_every_sample_is_tested() -> None:
    assert {path.name for path in CONF.iterdir()} == {
        "broker.conf",
        "controller",
        "controller.conf",
        # A board and alert rules: tests/interop/test_prometheus.py.
        "grafana",
        "namesrv.conf",
        "prometheus",
        "tls.properties",
        *SET_UPS,
    }
    for name, brokers in SET_UPS.items():
        assert {path.name for path in (CONF / name).iterdir()} == {
            f"{broker}.properties" for broker in brokers
        }


async def test_the_controller_starts_from_its_sample(tmp_path: Path) -> None:
    text = sample("controller.conf")
    config, ignored = CONTROLLER.load(with_examples(text))
    assert (ignored, config.group, config.unclean_allowed) == ([], "group1", False)
    values = {"controllerDLegerPeers": "", "listenPort": "0", "controllerStorePath": str(tmp_path)}
    controller = Controller(CONTROLLER.load(parse_properties(text) | values)[0])
    await controller.start()
    await controller.stop()


def test_controllers_and_their_brokers_share_a_machine() -> None:
    names = [f"controller-{one}.conf" for one in CONTROLLERS]
    names += [f"{one}.properties" for one in CONTROLLED]
    assert {path.name for path in (CONF / "controller").iterdir()} == {*names, "etcd.sh"}
    taken: list[str] = []
    addresses = []
    for one in CONTROLLERS:
        text = sample(f"controller/controller-{one}.conf")
        assert f"mqcontroller -c conf/controller/controller-{one}.conf" in text
        config, ignored = CONTROLLER.load(with_examples(text))
        assert (ignored, len(config.etcd.members)) == ([], 3)
        assert config.own_peer is not None
        taken.append(str(config.own_peer.port))
        addresses.append(config.own_peer.address)
    for one in CONTROLLED:
        text = sample(f"controller/{one}.properties")
        assert f"mqbroker -n 127.0.0.1:9876 -c conf/controller/{one}.properties" in text
        broker, ignored = load_broker_config(with_examples(text))
        assert (ignored, broker.identity.broker_name) == ([], "broker-a")
        assert broker.controller.addresses == ";".join(addresses)
        network = broker.network
        taken += [str(port) for port in (network.listen_port, network.vip_port)]
        taken += [str(broker.replication.port), broker.store.root]
    assert len(set(taken)) == len(taken) == 15


@pytest.fixture
def etcd_members(tmp_path: Path) -> Iterator[str]:
    """Those of the sample, on other ports."""
    first = free_port()
    script = subprocess.Popen([str(CONF / "controller" / "etcd.sh"), str(tmp_path), str(first)])
    yield ";".join(f"http://127.0.0.1:{first + 10 * number}" for number in range(3))
    script.terminate()
    script.wait(20)


@needs_etcd
async def test_controllers_over_etcd_serve(tmp_path: Path, etcd_members: str) -> None:
    async with running_name_server() as names, AsyncExitStack() as stack:
        controllers = []
        for one in CONTROLLERS:
            values = parse_properties(sample(f"controller/controller-{one}.conf"))
            values |= {
                "etcdEndpoints": etcd_members,
                "controllerDLegerPeers": "",
                "listenPort": "0",
            }
            controller = Controller(CONTROLLER.load(values)[0])
            await controller.start()
            stack.push_async_callback(controller.stop)
            controllers.append(controller)
        addresses = ";".join(one.own_peer.address for one in controllers)
        brokers = []
        for one in CONTROLLED:
            values = parse_properties(sample(f"controller/{one}.properties"))
            values |= {
                "namesrvAddr": names,
                "listenPort": "0",
                "haListenPort": "0",
                "controllerAddr": addresses,
                "storePathRootDir": str(tmp_path / values["storePathRootDir"]),
                "mappedFileSizeCommitLog": str(1 << 20),
            }
            brokers.append(Broker(load_broker_config(values)[0]))
            await brokers[-1].start()
            stack.push_async_callback(brokers[-1].stop)

        def all_in_sync() -> bool:
            known = [one.store.known().get("broker-a") for one in controllers]
            return all(one is not None and len(one.group.sync_state_set) == 3 for one in known)

        await eventually(all_in_sync, seconds=60)
        async with Producer("senders", name_servers=names) as producer:
            sent = await producer.send(Message(topic="TBW102", body=b"hello"))
        assert sent.status is SendStatus.SEND_OK
        assert len({one.core.store.max_physical for one in brokers}) == 1


@pytest.mark.parametrize("name", SET_UPS)
def test_brokers_of_a_set_up_share_a_machine(name: str) -> None:
    taken: list[str] = []
    for broker in SET_UPS[name]:
        text = sample(f"{name}/{broker}.properties")
        assert f"mqbroker -n 127.0.0.1:9876 -c conf/{name}/{broker}.properties" in text
        config, ignored = load_broker_config(with_examples(text))
        assert ignored == []
        network = config.network
        taken += [str(port) for port in (network.listen_port, network.vip_port)]
        taken += [str(config.replication.port), config.store.root]
    assert len(set(taken)) == len(taken) == 4 * len(SET_UPS[name])


@pytest.mark.parametrize("name", SET_UPS)
async def test_a_set_up_serves(tmp_path: Path, name: str) -> None:
    async with running_name_server() as names, AsyncExitStack() as stack:
        brokers: dict[str, Broker] = {}
        for broker in SET_UPS[name]:
            values = parse_properties(sample(f"{name}/{broker}.properties"))
            values |= {
                "namesrvAddr": names,
                "listenPort": "0",
                "haListenPort": "0",
                "storePathRootDir": str(tmp_path / values["storePathRootDir"]),
                "mappedFileSizeCommitLog": str(1 << 20),
            }
            brokers[broker] = Broker(load_broker_config(values)[0])
            await brokers[broker].start()
            stack.push_async_callback(brokers[broker].stop)
        pairs = [
            (master, brokers[f"{one}-s"])
            for one, master in brokers.items()
            if f"{one}-s" in brokers
        ]
        await eventually(lambda: all(len(master.core.replicas) == 1 for master, _ in pairs))
        # A topic that every broker has from the start.
        async with Producer("senders", name_servers=names) as producer:
            for number in range(32):
                sent = await producer.send(Message(topic="TBW102", body=b"%d" % number))
                assert sent.status is SendStatus.SEND_OK
        ends = [brokers[one].core.store.max_physical for one in ("broker-a", "broker-b")]
        assert min(ends) > 0

        def have_all() -> bool:
            return all(
                slave.core.store.max_physical == master.core.store.max_physical
                for master, slave in pairs
            )

        if name == "2m-2s-sync":
            assert have_all(), "a send was answered too early"
        await eventually(have_all)


def test_every_line_has_an_effect(tmp_path: Path) -> None:
    tls = write_tls(tmp_path)
    broker, namesrv = (with_examples(sample(name)) for name in ("broker.conf", "namesrv.conf"))
    for values in (broker, namesrv):
        assert values[TLS_KEY] == "conf/tls.properties"
        assert len(values) > 5
        values[TLS_KEY] = tls
    assert load_broker_config(broker)[1] == []
    assert load_namesrv_config(namesrv)[1] == []
    tls_config_of(parse_properties(sample("tls.properties")))


@pytest.mark.parametrize("is_guarded", [False, True], ids=["plain", "tls"])
async def test_a_cluster_starts_from_the_samples(tmp_path: Path, is_guarded: bool) -> None:
    extra = {TLS_KEY: write_tls(tmp_path)} if is_guarded else {}
    tls = load_tls_config(extra[TLS_KEY]) if is_guarded else TlsConfig()
    names, _ = load_namesrv_config(
        {**parse_properties(sample("namesrv.conf")), **extra, "listenPort": "0"}
    )
    name_server = NameServer(names)
    await name_server.start()
    address = f"127.0.0.1:{name_server.port}"
    broker = Broker(load_broker_config(broker_values(tmp_path, address, extra))[0])
    await broker.start()
    client = RemotingClient(tls=tls)
    try:
        ask = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, ext={"topic": "TBW102"})
        route = await client.call(address, ask)
        assert b'"broker-a"' in bytes(route.body)
    finally:
        await client.close()
        await broker.stop()
        await name_server.stop()


def broker_values(directory: Path, name_servers: str, extra: Mapping[str, str]) -> dict[str, str]:
    """The sample, at a place of its own."""
    return {
        **parse_properties(sample("broker.conf")),
        **extra,
        "namesrvAddr": name_servers,
        "listenPort": "0",
        "storePathRootDir": str(directory / "store"),
        "mappedFileSizeCommitLog": str(1 << 20),
    }


def write_tls(directory: Path) -> str:
    """The sample with certificates that exist."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(directory / "ca.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(directory / "server.pem"))
    certificate.private_key_pem.write_to_path(str(directory / "server.key"))
    values = parse_properties(sample("tls.properties"))
    path = directory / "tls.properties"
    path.write_text(
        render_properties(
            {key: text.replace(TLS_DIRECTORY, str(directory)) for key, text in values.items()}
        )
    )
    return str(path)
