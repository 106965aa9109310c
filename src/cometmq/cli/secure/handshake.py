"""Tries a server's certificate as a client will: a TLS handshake in memory."""

from __future__ import annotations

import ssl
from typing import Final

from cometmq.base.errors import ConfigError
from cometmq.remoting.tls import TlsConfig

_ROUNDS_MAX: Final = 10


def try_handshake(config: TlsConfig, host: str) -> None:
    """Raises ConfigError if a client that has these settings, and verifies names, would not talk to the server."""
    server_context, client_context = config.server_context(), config.client_context()
    assert server_context is not None
    assert client_context is not None
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(_ROUNDS_MAX):
        try:
            if all([_step(client), _step(server)]):
                return
        except ssl.SSLCertVerificationError as error:
            raise ConfigError(
                f"the certificate {config.server_cert_path} does not prove that a server is {host}: "
                f"{error.verify_message}; give one that does, and with --ca the authority that issued it"
            ) from None
        except ssl.SSLError as error:
            raise ConfigError(
                f"the certificate {config.server_cert_path} cannot be used: {error}"
            ) from None
    raise ConfigError(f"the certificate {config.server_cert_path} leads to no TLS connection")


def _step(side: ssl.SSLObject) -> bool:
    """Whether this side is done."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
