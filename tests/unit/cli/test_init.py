"""``cometmq init``: what it writes, and what it refuses."""

from __future__ import annotations

import datetime
import stat
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner, Result
from cryptography import x509

from cometmq.access.accounts.account_file import AccountFile
from cometmq.base.properties_file import parse_properties
from cometmq.broker.config.broker_config import load_broker_config
from cometmq.cli.main import main
from cometmq.cli.secure.authority import SERVER_DAYS
from cometmq.cli.secure.handshake import try_handshake
from cometmq.client import load_client_config
from cometmq.namesrv.namesrv_config import load_namesrv_config
from cometmq.remoting.tls import load_tls_config

PUBLIC = {"ca.pem", "server.pem", "tls.properties", "tools.conf"}


def init(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["init", *map(str, words)])


def made(directory: Path, *words: str | Path) -> str:
    """The secret of the operator."""
    done = init(directory, *words)
    assert done.exit_code == 0, done.output
    [line] = [line for line in done.output.splitlines() if line.startswith("secret")]
    return line.split()[1]


def settings(path: Path) -> dict[str, str]:
    return parse_properties(path.read_text())


def test_servers_take_every_line(tmp_path: Path) -> None:
    made(tmp_path / "secure")
    config, ignored = load_broker_config(settings(tmp_path / "secure" / "broker.conf"))
    assert ignored == []
    assert config.access.is_authenticating
    assert config.access.is_authorizing
    name_server, ignored = load_namesrv_config(settings(tmp_path / "secure" / "namesrv.conf"))
    assert ignored == []
    # No answer has a secret in it.
    assert not config.access.shows_secrets
    assert not name_server.access.shows_secrets
    tls = load_tls_config(str(tmp_path / "secure" / "tls.properties"))
    assert tls.server_mode == "enforcing"
    try_handshake(tls, "127.0.0.1")


def test_only_what_has_no_secret_may_be_read_by_others(tmp_path: Path) -> None:
    made(tmp_path / "secure")
    assert stat.S_IMODE((tmp_path / "secure").stat().st_mode) == 0o700
    files = [path for path in (tmp_path / "secure").rglob("*") if path.is_file()]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in files}
    assert {name for name, mode in modes.items() if mode == 0o644} == PUBLIC
    assert {mode for name, mode in modes.items() if name not in PUBLIC} == {0o600}


def test_the_operators_secret_is_in_no_file(tmp_path: Path) -> None:
    secret = made(tmp_path / "secure")
    files = [path for path in (tmp_path / "secure").rglob("*") if path.is_file()]
    assert [path for path in files if secret.encode() in path.read_bytes()] == []
    for place in ("broker/config", "namesrv"):
        accounts = AccountFile(tmp_path / "secure" / "data" / place).load()
        assert accounts.users["operator"].password == secret
        assert accounts.users["operator"].is_super
        assert not accounts.users["client"].is_super


def test_every_set_up_has_secrets_of_its_own(tmp_path: Path) -> None:
    assert made(tmp_path / "one") != made(tmp_path / "two")
    first, second = (
        load_client_config(tmp_path / name / "client.conf").credentials for name in ("one", "two")
    )
    assert first.access_key == second.access_key == "client"
    assert first.secret_key != second.secret_key


@pytest.mark.parametrize(
    ("hosts", "bound", "address"),
    [
        (["127.0.0.1"], "127.0.0.1", "127.0.0.1:9876"),
        (["192.0.2.10", "queue.example.com"], "0.0.0.0", "192.0.2.10:9876"),
        (["queue.example.com", "127.0.0.1"], "0.0.0.0", "queue.example.com:9876"),
    ],
)
def test_hosts_decide_on_addresses_and_certificates(
    tmp_path: Path, hosts: list[str], bound: str, address: str
) -> None:
    made(tmp_path / "secure", *(word for host in hosts for word in ("--host", host)))
    broker = settings(tmp_path / "secure" / "broker.conf")
    names = settings(tmp_path / "secure" / "namesrv.conf")
    assert broker["bindAddress"] == names["bindAddress"] == bound
    assert (broker["brokerIP1"], broker["namesrvAddr"]) == (hosts[0], address)
    assert load_client_config(tmp_path / "secure" / "client.conf").name_servers == address
    tls = load_tls_config(str(tmp_path / "secure" / "tls.properties"))
    for host in hosts:
        try_handshake(tls, host)
    with pytest.raises(Exception, match=r"does not prove that a server is 203\.0\.113\.1"):
        try_handshake(tls, "203.0.113.1")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    directory = tmp_path / "secure"
    directory.mkdir()
    (directory / "notes.txt").write_text("mine")
    done = init(directory)
    assert done.exit_code == 2
    assert "is there already and is not touched" in done.output
    assert [path.name for path in tmp_path.rglob("*")] == ["secure", "notes.txt"]
    (directory / "notes.txt").unlink()
    made(directory)
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    assert init(directory).exit_code == 2
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: AccountFile, accounts: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(AccountFile, "save", fail)
    done = init(tmp_path / "secure")
    assert (done.exit_code, "no space left" in done.output) == (1, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("host", ["not a host", "Bücher", "", "0.0.0.0", "queue:9876"])
def test_a_host_that_is_none_is_refused(tmp_path: Path, host: str) -> None:
    done = init(tmp_path / "secure", "--host", host)
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "expected the name or address by which clients reach a host" in done.output


class Own:
    """Certificates that somebody has already."""

    def __init__(self, directory: Path, host: str = "queue.example.com") -> None:
        authority = trustme.CA()
        issued = authority.issue_cert(host)
        self.chain, self.key, self.ca = (directory / f"{name}.pem" for name in ("c", "k", "ca"))
        directory.mkdir()
        self.chain.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
        self.key.write_bytes(issued.private_key_pem.bytes())
        self.ca.write_bytes(authority.cert_pem.bytes())

    def options(self) -> list[str]:
        return ["--certificate", str(self.chain), "--key", str(self.key), "--ca", str(self.ca)]


def test_certificates_may_be_ones_own(tmp_path: Path) -> None:
    own = Own(tmp_path / "own")
    made(tmp_path / "secure", "--host", "queue.example.com", *own.options())
    assert not (tmp_path / "secure" / "ca.key").exists()
    try_handshake(load_tls_config(str(tmp_path / "secure" / "tls.properties")), "queue.example.com")
    done = init(tmp_path / "secure", "--renew")
    assert done.exit_code == 2
    assert "the authority that issues certificates is elsewhere" in done.output


def test_certificates_that_clients_would_refuse_are_refused(tmp_path: Path) -> None:
    own, other = Own(tmp_path / "own"), Own(tmp_path / "other")
    secure = tmp_path / "secure"
    done = init(secure, "--host", "192.0.2.10", *own.options())
    assert "does not prove that a server is 192.0.2.10" in done.output
    own.ca = other.ca
    done = init(secure, "--host", "queue.example.com", *own.options())
    assert "does not prove that a server is queue.example.com" in done.output
    own.key = other.key
    assert "cannot be used" in init(secure, "--host", "queue.example.com", *own.options()).output
    assert "together" in init(secure, "--certificate", own.chain).output
    assert not secure.exists()


def test_a_certificate_is_renewed_by_the_same_authority(tmp_path: Path) -> None:
    secure = tmp_path / "secure"
    made(secure, "--host", "192.0.2.10", "--host", "queue.example.com")
    before = {path: path.read_bytes() for path in secure.rglob("*") if path.is_file()}
    done = init(secure, "--renew")
    assert done.exit_code == 0, done.output
    after = {path: path.read_bytes() for path in secure.rglob("*") if path.is_file()}
    changed = {path.name for path in before if before[path] != after[path]}
    assert changed == {"server.pem", "server.key"}
    tls = load_tls_config(str(secure / "tls.properties"))
    for host in ("192.0.2.10", "queue.example.com"):
        try_handshake(tls, host)
    assert stat.S_IMODE((secure / "server.key").stat().st_mode) == 0o600
    certificate = x509.load_pem_x509_certificate((secure / "server.pem").read_bytes())
    left = certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    assert left.days in (SERVER_DAYS - 1, SERVER_DAYS)
