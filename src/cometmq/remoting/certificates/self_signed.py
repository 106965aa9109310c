"""A certificate that nobody can verify, made at the start of a server in test mode (``tls.test.mode.enable``)."""

from __future__ import annotations

import datetime
import ssl
import tempfile
from pathlib import Path
from typing import Final

from cometmq.base.errors import ConfigError

_VALID_DAYS: Final = 3650


def load_self_signed(context: ssl.SSLContext) -> None:
    """Give the context a new one. Raises ConfigError: a package is missing."""
    certificate, key = _make()
    with tempfile.TemporaryDirectory(prefix="cometmq-") as directory:
        # The context reads files only. Nobody else may enter the directory, and it is gone in a moment.
        certificate_path, key_path = Path(directory, "test.pem"), Path(directory, "test.key")
        certificate_path.write_bytes(certificate)
        key_path.write_bytes(key)
        context.load_cert_chain(certificate_path, key_path)


def _make() -> tuple[bytes, bytes]:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID
    except ImportError:
        raise ConfigError(
            "tls.test.mode.enable=true without a certificate makes one, which needs the package cryptography: "
            "pip install 'cometmq[accounts]', or set tls.server.certPath and tls.server.keyPath"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cometmq test mode")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=_VALID_DAYS))
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
