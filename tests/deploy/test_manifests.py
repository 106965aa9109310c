"""``compose.yaml`` and the Kubernetes manifests: what they say agrees with the image and with the servers.

``make manifests`` compares them with the schemas, which takes tools that are not Python's.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cometmq.access.door.open_door import is_open_door
from cometmq.base.properties_file import parse_properties
from cometmq.broker.config.broker_config import load_broker_config
from cometmq.cli.main import main
from cometmq.controller.controller_config import SCHEMA as CONTROLLER_SCHEMA
from cometmq.namesrv.namesrv_config import load_namesrv_config

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
COMPOSE = ROOT / "deploy" / "compose"
HAS_MONITOR = importlib.util.find_spec("cometmq.monitor") is not None
MONITOR_PORT = 5557


def documents() -> Iterator[dict[str, Any]]:
    for path in sorted(KUBERNETES.glob("*.yaml")):
        yield from yaml.safe_load_all(path.read_text())


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [one for one in documents() if one["kind"] == kind]


def stateful_sets() -> list[Any]:
    return [pytest.param(one, id=one["metadata"]["name"]) for one in of_kind("StatefulSet")]


def settings() -> dict[str, str]:
    [config_map] = of_kind("ConfigMap")
    return dict(config_map["data"])


def samples() -> list[Any]:
    found = [(f"compose-{path.stem}", path.name, path.read_text()) for path in COMPOSE.iterdir()]
    found += [(f"kubernetes-{name}", name, text) for name, text in settings().items()]
    return [pytest.param(name, text, id=title) for title, name, text in sorted(found)]


@pytest.mark.parametrize(("name", "text"), samples())
def test_the_servers_accept_their_settings(name: str, text: str) -> None:
    values = parse_properties(text)
    if not HAS_MONITOR:
        values = {key: value for key, value in values.items() if not key.startswith("metrics")}
    # Who may do what, they say themselves: or the servers would not start.
    if name == "broker.conf":
        config, ignored = load_broker_config({"brokerIP1": "127.0.0.1", **values})
        assert is_open_door(config.access, config.network.bind_address)
        assert config.controller.is_enabled
        assert config.store.root.startswith("/var/lib/cometmq/")
    elif name == "namesrv.conf":
        named, ignored = load_namesrv_config(values)
        assert is_open_door(named.access, named.bind_address)
    else:
        controlled, ignored = CONTROLLER_SCHEMA.load(values)
        assert is_open_door(controlled.access, controlled.bind_address)
        assert controlled.store_path.startswith("/var/lib/cometmq/")
    assert not ignored


@pytest.mark.parametrize("one", stateful_sets())
def test_a_pod_can_do_little(one: Mapping[str, Any]) -> None:
    pod = one["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["automountServiceAccountToken"] is False
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"/etc/cometmq", "/var/lib/cometmq", "/tmp"}
    assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("one", stateful_sets())
def test_a_pod_is_found_and_probed(one: Mapping[str, Any]) -> None:
    name, spec = one["metadata"]["name"], one["spec"]
    labels = spec["template"]["metadata"]["labels"]
    [service] = [each for each in of_kind("Service") if each["metadata"]["name"] == name]
    assert spec["serviceName"] == name
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["spec"]["selector"].items() <= labels.items()
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    [container] = spec["template"]["spec"]["containers"]
    assert container["args"] == [container["name"]]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports["monitor"] == MONITOR_PORT
    assert ports["remoting"] == service["spec"]["ports"][0]["port"]
    for probe, path in [
        ("startupProbe", "/healthz"),
        ("readinessProbe", "/readyz"),
        ("livenessProbe", "/healthz"),
    ]:
        assert container[probe]["httpGet"] == {"path": path, "port": "monitor"}


def test_a_rolling_restart_keeps_what_is_acknowledged() -> None:
    [broker] = [one for one in of_kind("StatefulSet") if one["metadata"]["name"] == "broker-a"]
    spec, pod = broker["spec"], broker["spec"]["template"]["spec"]
    # All may start at once, since any of them may be the one with everything; one goes at a time.
    assert spec["podManagementPolicy"] == "Parallel"
    assert spec["updateStrategy"] == {"type": "RollingUpdate"}
    [container] = pod["containers"]
    stop = container["lifecycle"]["preStop"]["exec"]["command"]
    assert stop[:2] == ["cometmq", "hand-over"]
    assert "hand-over" in main.commands
    # The hand-over, and the five minutes that a broker may take to stop after it, less what it does not need then.
    assert pod["terminationGracePeriodSeconds"] >= int(stop[-1]) + 180
    assert parse_properties(settings()["broker.conf"])["minInSyncReplicas"] == "2"
    assert spec["replicas"] == 3
    budgets = {one["metadata"]["name"]: one["spec"] for one in of_kind("PodDisruptionBudget")}
    assert budgets["broker-a"]["maxUnavailable"] == 1
    assert budgets["broker-a"]["selector"] == spec["selector"]


def test_addresses_lead_to_pods() -> None:
    replicas = {one["metadata"]["name"]: one["spec"]["replicas"] for one in of_kind("StatefulSet")}
    values = parse_properties(settings()["broker.conf"])
    for key, name in [("namesrvAddr", "namesrv"), ("controllerAddr", "controller")]:
        hosts = [address.partition(":")[0] for address in values[key].split(";")]
        assert hosts == [
            f"{name}-{number}.{name}.cometmq.svc.cluster.local" for number in range(replicas[name])
        ]


def test_everything_is_in_the_kustomization() -> None:
    kustomization = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    files = {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(kustomization["resources"]) == files


def test_compose_starts_the_image_s_servers() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    for name, service in compose["services"].items():
        [kind] = service["command"]
        assert kind in ("namesrv", "controller", "broker")
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert f"{name}:/var/lib/cometmq" in service["volumes"]
        assert (COMPOSE / f"{kind}.conf").exists()
        if kind == "broker":
            assert service["environment"]["COMETMQ_SET_brokerIP1"] == name
            assert service["pre_stop"][0]["command"][:2] == ["cometmq", "hand-over"]
    assert set(compose["volumes"]) == set(compose["services"])
