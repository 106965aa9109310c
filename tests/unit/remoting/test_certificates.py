"""Contexts follow their files, and negotiate what the settings say."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

import pytest
import trustme

from cometmq.base.errors import ConfigError
from cometmq.remoting.certificates import live_context
from cometmq.remoting.certificates.live_context import LiveContext
from cometmq.remoting.tls import tls_config_of


class Clock:
    """Stands for the module ``time``."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(live_context, "time", clock)
    return clock


class Files:
    def __init__(self, directory: Path) -> None:
        self.chain, self.key = directory / "chain.pem", directory / "key.pem"
        self.authority = trustme.CA()
        self.renew()

    def renew(self) -> None:
        issued = self.authority.issue_cert("127.0.0.1")
        self.chain.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
        self.key.write_bytes(issued.private_key_pem.bytes())

    def context(self, **more: str) -> LiveContext:
        values = {"tls.server.certPath": str(self.chain), "tls.server.keyPath": str(self.key)}
        context = tls_config_of({**values, **more}).live_server_context()
        assert context is not None
        return context


def shown(context: ssl.SSLContext) -> bytes:
    """The certificate that a client gets now."""
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    asking = client.wrap_bio(theirs, ours)
    answering = context.wrap_bio(ours, theirs, server_side=True)
    for _ in range(4):
        for side in (asking, answering):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    found = asking.getpeercert(binary_form=True)
    assert found is not None
    return found


def test_a_renewed_certificate_is_used_from_the_next_look_on(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    files = Files(tmp_path)
    context = files.context()
    first = shown(context)
    files.renew()
    clock.now = 4.9
    assert shown(context) == first
    clock.now = 5.0
    second = shown(context)
    assert second != first
    assert "certificates reloaded" in caplog.text
    clock.now = 20.0
    assert shown(context) == second


def test_files_that_cannot_be_used_leave_the_old_certificate(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    files = Files(tmp_path)
    context = files.context()
    first = shown(context)
    old_key = files.key.read_bytes()
    files.renew()
    new_key = files.key.read_bytes()
    files.key.write_bytes(old_key)
    clock.now = 5.0
    assert shown(context) == first
    clock.now = 10.0
    assert shown(context) == first
    # Once, not at every look.
    assert caplog.text.count("certificates not reloaded, the old ones stay") == 1
    files.chain.unlink()
    clock.now = 15.0
    assert shown(context) == first
    files.renew()
    files.key.write_bytes(new_key + b"\n")
    files.renew()
    clock.now = 20.0
    assert shown(context) != first


def test_the_interval_is_a_setting(tmp_path: Path, clock: Clock) -> None:
    files = Files(tmp_path)
    context = files.context(**{"tls.reloadSeconds": "60"})
    first = shown(context)
    files.renew()
    clock.now = 59.0
    assert shown(context) == first
    clock.now = 60.0
    assert shown(context) != first


def test_what_cannot_be_used_at_the_start_refuses_it(tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.key.write_text("no key")
    with pytest.raises(ConfigError, match="cannot be used"):
        files.context()


def test_versions(tmp_path: Path) -> None:
    files = Files(tmp_path)
    values = {"tls.server.certPath": str(files.chain), "tls.server.keyPath": str(files.key)}

    def versions(text: str) -> tuple[int, int]:
        context = tls_config_of({**values, "tls.protocols": text}).server_context()
        assert context is not None
        return context.minimum_version, context.maximum_version

    old, new = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    assert versions("") == versions("TLSv1.2,TLSv1.3") == (old, new)
    assert versions("TLSv1.3") == (new, new)
    assert versions("TLSv1.2") == (old, old)


@pytest.mark.parametrize(
    "name",
    [
        "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
        "TLS_RSA_WITH_AES_128_GCM_SHA256",
    ],
)
def test_ciphers_by_both_kinds_of_names(name: str) -> None:
    values = {"tls.enable": "true", "tls.ciphers": f"{name}, ECDHE-RSA-AES256-GCM-SHA384"}
    context = tls_config_of(values).client_context()
    assert context is not None
    old = [one for one in context.get_ciphers() if one["protocol"] != "TLSv1.3"]
    assert len(old) == 2


def test_test_mode_makes_a_certificate(caplog: pytest.LogCaptureFixture) -> None:
    context = tls_config_of({"tls.test.mode.enable": "true"}).live_server_context()
    assert context is not None
    assert shown(context)
    assert "tls is in test mode" in caplog.text
