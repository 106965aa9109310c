"""``cometmq doctor`` at real clusters: an open one, and one that ``cometmq init`` has made."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.integration.secure_set_up import SecureSetUp, running

from cometmq.cli.main import main
from cometmq.testing import cluster


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureSetUp]:
    with running(tmp_path_factory.mktemp("doctor") / "secure") as set_up:
        yield set_up


def doctor(*words: str | Path, secret: str = "") -> Result:
    environment = {**os.environ, "COMETMQ_SECRET_KEY": secret, "NAMESRV_ADDR": ""}
    return CliRunner().invoke(main, ["doctor", *map(str, words)], env=environment)


def findings(result: Result) -> dict[str, set[str]]:
    """Names by level."""
    document: dict[str, Any] = json.loads(result.stdout)
    found: dict[str, set[str]] = {}
    for one in document["findings"]:
        assert one["remedy"]
        found.setdefault(one["level"], set()).add(one["name"])
    return found


def test_an_open_cluster_on_this_machine_gets_notes() -> None:
    with cluster() as servers:
        done = doctor("-n", servers.name_servers, "--json")
        assert findings(done) == {"note": {"anonymous-access", "plain-text"}}
        assert done.exit_code == 0
        text = doctor("-n", servers.name_servers)
        assert text.exit_code == 0
        assert f"looked at name server {servers.name_servers}, broker" in text.stdout
        assert text.stdout.endswith("nothing to do\n")


def test_replicas_are_compared() -> None:
    with cluster(slaves=1, controller=True) as servers:
        done = doctor("-n", servers.name_servers, "--json")
        kinds = [one["kind"] for one in json.loads(done.stdout)["servers"]]
        assert kinds == ["name server", "broker", "broker", "controller"]
        assert set(findings(done)) == {"note"}, done.stdout


def test_a_secure_set_up_has_nothing_to_do(secure: SecureSetUp) -> None:
    done = doctor("-c", secure.directory / "tools.conf", secret=secure.secret)
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "nothing to do"), done.stdout


def test_what_an_account_may_not_see_is_told(secure: SecureSetUp) -> None:
    done = doctor("-c", secure.directory / "client.conf", "--json")
    assert done.exit_code == 1
    assert "not-answered" in findings(done)["unknown"]


def test_a_wrong_authority_is_told(secure: SecureSetUp, tmp_path: Path) -> None:
    other = CliRunner().invoke(main, ["init", str(tmp_path / "other")])
    assert other.exit_code == 0
    text = (secure.directory / "tools.conf").read_text()
    (tmp_path / "other" / "mine.conf").write_text(text)
    done = doctor("-c", tmp_path / "other" / "mine.conf", "--json", secret=secure.secret)
    assert done.exit_code == 1
    assert findings(done)["problem"] == {"certificate-not-trusted"}


def test_a_name_server_that_is_not_there() -> None:
    done = doctor("-n", "127.0.0.1:1", "--json")
    assert (done.exit_code, findings(done)) == (1, {"problem": {"unreachable"}})
    assert "cannot be reached: Connection refused" in done.output


def test_a_wrong_address_is_a_mistake_of_the_caller() -> None:
    assert doctor("-n", "nowhere").exit_code == 2
