"""TLS settings under RocketMQ's keys, and the contexts made from them.

Without a certificate, the default mode serves plain text only. RocketMQ makes itself a certificate that nobody can
verify unless it is told not to; here that is done only in test mode.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cometmq.base.errors import ConfigError, one_line
from cometmq.base.properties_file import decode_file, parse_properties
from cometmq.base.settings import load, rows, setting, unknown_key
from cometmq.remoting.certificates.live_context import LiveContext
from cometmq.remoting.certificates.negotiation import set_ciphers, set_versions
from cometmq.remoting.certificates.self_signed import load_self_signed

logger = logging.getLogger("cometmq.remoting")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    server_mode: str = setting(
        "tls.server.mode",
        "disabled: plain text only; permissive: both on one port; enforcing: TLS only.",
        default="permissive",
        choices=("disabled", "permissive", "enforcing"),
    )
    is_test_mode: bool = setting(
        "tls.test.mode.enable",
        "For tests: verify no certificate, and make one for the server if none is given.",
        default=False,
    )
    protocols: str = setting(
        "tls.protocols",
        "Versions that may be spoken, separated by commas: TLSv1.2, TLSv1.3. Empty: both.",
        default="",
    )
    ciphers: str = setting(
        "tls.ciphers",
        "Ciphers of TLS 1.2 that may be used, separated by commas, by their standard or OpenSSL names. Empty: those "
        "that OpenSSL thinks secure. TLS 1.3 always has all of its own.",
        default="",
    )
    reload_seconds: int = setting(
        "tls.reloadSeconds",
        "How often the files of certificates and keys are looked at; changed ones are used from the next handshake on.",
        default=5,
        low=1,
        high=86400,
    )
    client_auth: str = setting(
        "tls.server.need.client.auth",
        "Whether clients must present a certificate.",
        default="none",
        choices=("none", "optional", "require"),
    )
    server_key_path: str = setting(
        "tls.server.keyPath", "Private key of the server, PEM.", default=""
    )
    server_key_password: str = setting(
        "tls.server.keyPassword",
        "Password of the server's private key.",
        default="",
        is_secret=True,
    )
    server_cert_path: str = setting(
        "tls.server.certPath", "Certificate chain of the server, PEM.", default=""
    )
    verifies_client: bool = setting(
        "tls.server.authClient", "Verify the certificates of clients.", default=False
    )
    server_trust_path: str = setting(
        "tls.server.trustCertPath", "Certificate authorities trusted for clients, PEM.", default=""
    )
    is_client_enabled: bool = setting(
        "tls.enable", "Use TLS for outgoing connections.", default=False
    )
    client_key_path: str = setting(
        "tls.client.keyPath", "Private key for outgoing connections, PEM.", default=""
    )
    client_key_password: str = setting(
        "tls.client.keyPassword", "Password of that private key.", default="", is_secret=True
    )
    client_cert_path: str = setting(
        "tls.client.certPath", "Certificate chain for outgoing connections, PEM.", default=""
    )
    verifies_server: bool = setting(
        "tls.client.authServer", "Verify the certificates of servers.", default=False
    )
    client_trust_path: str = setting(
        "tls.client.trustCertPath", "Certificate authorities trusted for servers, PEM.", default=""
    )
    checks_hostname: bool = setting(
        "tls.client.checkHostname",
        "Also compare the server's name with its certificate. RocketMQ never does. Routes hold bare"
        " addresses, so the certificates must name those.",
        default=False,
    )

    @property
    def is_plain_allowed(self) -> bool:
        return self.server_mode != "enforcing"

    def server_context(self) -> ssl.SSLContext | None:
        """The context to accept with; None when this server speaks plain text only.

        Raises:
            ConfigError: TLS is demanded but cannot be had with these settings.
        """
        if self.server_mode == "disabled":
            return None
        has_certificate = bool(self.server_cert_path or self.server_key_path)
        if not has_certificate and not self.is_test_mode:
            if self.server_mode == "permissive":
                self._refuse_protection_of_plain_text()
                return None
            raise ConfigError(
                "tls.server.mode=enforcing needs a certificate: set tls.server.certPath and tls.server.keyPath"
            )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        set_versions(context, self.protocols)
        set_ciphers(context, self.ciphers)
        if has_certificate:
            _load_own(
                context,
                "tls.server",
                self.server_cert_path,
                self.server_key_path,
                self.server_key_password,
            )
        else:
            load_self_signed(context)
        if self.client_auth != "none" and not self.is_test_mode:
            if not self.verifies_client or not self.server_trust_path:
                raise ConfigError(
                    f"tls.server.need.client.auth={self.client_auth} needs tls.server.authClient=true "
                    "and tls.server.trustCertPath: a certificate that is not verified proves nothing"
                )
            _load_trust(context, "tls.server", self.server_trust_path)
            is_optional = self.client_auth == "optional"
            context.verify_mode = ssl.CERT_OPTIONAL if is_optional else ssl.CERT_REQUIRED
        elif self.verifies_client and not self.is_test_mode:
            raise ConfigError(
                "tls.server.authClient=true has no effect while no client is asked for a certificate: "
                "set tls.server.need.client.auth=require"
            )
        return context

    def client_context(self) -> ssl.SSLContext | None:
        """The context to connect with; None when TLS is not enabled. Raises ConfigError."""
        if not self.is_client_enabled:
            if self.verifies_server or self.checks_hostname:
                key = "authServer" if self.verifies_server else "checkHostname"
                raise ConfigError(f"tls.client.{key}=true has no effect without tls.enable=true")
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        set_versions(context, self.protocols)
        set_ciphers(context, self.ciphers)
        if self.verifies_server and not self.is_test_mode:
            context.check_hostname = self.checks_hostname
            if self.client_trust_path:
                _load_trust(context, "tls.client", self.client_trust_path)
            else:
                context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        else:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_cert_path or self.client_key_path:
            _load_own(
                context,
                "tls.client",
                self.client_cert_path,
                self.client_key_path,
                self.client_key_password,
            )
        return context

    def live_server_context(self) -> LiveContext | None:
        """As ``server_context``, and follows its files. Raises ConfigError."""
        if self.server_context() is None:
            return None
        if self.is_test_mode:
            logger.warning("tls is in test mode: no certificate is verified (tls.test.mode.enable)")
        paths = (self.server_cert_path, self.server_key_path, self.server_trust_path)
        return LiveContext(lambda: _made(self.server_context()), paths, self.reload_seconds)

    def live_client_context(self) -> LiveContext | None:
        """As ``client_context``, and follows its files. Raises ConfigError."""
        if self.client_context() is None:
            return None
        paths = (self.client_cert_path, self.client_key_path, self.client_trust_path)
        return LiveContext(lambda: _made(self.client_context()), paths, self.reload_seconds)

    @property
    def identifies_clients(self) -> bool:
        """Whether a client that presents a certificate is known to be the one that it names."""
        return self.client_auth != "none" and self.verifies_client and not self.is_test_mode

    def _refuse_protection_of_plain_text(self) -> None:
        asked = {
            "tls.server.need.client.auth": self.client_auth != "none",
            "tls.server.authClient": self.verifies_client,
            "tls.server.trustCertPath": self.server_trust_path,
            "tls.server.keyPassword": self.server_key_password,
        }
        for key, is_asked in asked.items():
            if is_asked:
                raise ConfigError(
                    f"{key} has no effect without a certificate: set tls.server.certPath and tls.server.keyPath"
                )


def _made(context: ssl.SSLContext | None) -> ssl.SSLContext:
    assert context is not None, "the settings do not change"
    return context


def load_tls_config(path: str) -> TlsConfig:
    """The settings of a properties file (``tls.config.file``). Raises ConfigError."""
    try:
        text = decode_file(Path(path).read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot read the TLS settings in {one_line(error)}") from error
    return tls_config_of(parse_properties(text))


def unmet_outside_tls_file(server: str) -> dict[str, str]:
    """All TLS keys, with the reason why a server that has ``tls.config.file`` refuses them elsewhere."""
    reason = f"a {server} takes its TLS settings from the file that tls.config.file names"
    return {"useTLS": reason, **{row.key: reason for row in rows(TlsConfig)}}


def tls_config_of(values: Mapping[str, str]) -> TlsConfig:
    """The settings among ``values``, all of which must be TLS keys. Raises ConfigError."""
    known = {row.key: row for row in rows(TlsConfig)}
    for key in values:
        if key not in known:
            raise ConfigError(unknown_key(key, known))
    return load(TlsConfig, values)


def _load_own(
    context: ssl.SSLContext, prefix: str, cert_path: str, key_path: str, password: str
) -> None:
    if not cert_path or not key_path:
        raise ConfigError(f"{prefix}.certPath and {prefix}.keyPath must be given together")
    try:
        # With "" OpenSSL fails on an encrypted key; with None it would ask on the terminal.
        context.load_cert_chain(cert_path, key_path, password=password)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{prefix}.certPath {cert_path} and {prefix}.keyPath {key_path} cannot be used: {error}"
        ) from error


def _load_trust(context: ssl.SSLContext, prefix: str, path: str) -> None:
    try:
        context.load_verify_locations(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{prefix}.trustCertPath {path} cannot be used: {error}") from error
