"""An authority and a certificate for the servers, and the settings that use them under RocketMQ's keys."""

from __future__ import annotations

import ssl
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


class Certificates:
    """Made anew for each run; only the authority's certificate is trusted by anybody."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        authority = trustme.CA()
        server = authority.issue_cert("127.0.0.1", "localhost")
        self._trust = directory / "authority.pem"
        self._chain = directory / "server.pem"
        self._key = directory / "server.key"
        authority.cert_pem.write_to_path(str(self._trust))
        for part in server.cert_chain_pems:
            part.write_to_path(str(self._chain), append=True)
        # Java's servers read keys in this form only.
        key = load_pem_private_key(server.private_key_pem.bytes(), None)
        self._key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    def server_settings(self) -> dict[str, str]:
        """A server that speaks TLS beside plain text, and TLS only as a client of the other server."""
        return {
            "tls.server.mode": "permissive",
            "tls.server.certPath": str(self._chain),
            "tls.server.keyPath": str(self._key),
            **self.client_settings(),
        }

    def client_settings(self) -> dict[str, str]:
        """A client that speaks TLS and verifies the server."""
        return {
            "tls.enable": "true",
            "tls.test.mode.enable": "false",
            "tls.client.authServer": "true",
            "tls.client.trustCertPath": str(self._trust),
        }

    def context(self) -> ssl.SSLContext:
        """The same for Python."""
        return ssl.create_default_context(cafile=str(self._trust))
