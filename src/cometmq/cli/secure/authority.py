"""A small certificate authority: its own certificate, and those of servers. Bytes in, bytes out; no files here."""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from cometmq.base.errors import ConfigError

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise ConfigError(
        "certificates need the package cryptography: pip install 'cometmq[accounts]'"
    ) from None

AUTHORITY_DAYS: Final = 3650
SERVER_DAYS: Final = 397
"""As long as browsers accept; `cometmq init --renew` issues the next one."""

_NAME_CHARS_MAX: Final = 253
_LABEL: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")

# Clocks of other hosts may be behind.
_BEFORE: Final = datetime.timedelta(days=1)


class Certificate(NamedTuple):
    """Both PEM. A repr does not show the key."""

    pem: bytes
    key_pem: bytes

    def __repr__(self) -> str:
        return "Certificate(...)"


def new_authority(now: datetime.datetime) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("CometMQ authority")
    usage = _key_usage(digital_signature=False, key_cert_sign=True, crl_sign=True)
    certificate = (
        _builder(name, name, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return _pem(certificate, key)


def issue(authority: Certificate, hosts: Sequence[str], now: datetime.datetime) -> Certificate:
    """A certificate for a server that is reached by these names or addresses, and for its own connections to others.

    Raises:
        ConfigError: the authority cannot be used, or a host is no name and no address.
    """
    issuer, issuer_key = _opened(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    names = x509.SubjectAlternativeName([_host(host) for host in hosts])
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    certificate = (
        _builder(_name("CometMQ server"), issuer.subject, key.public_key(), now, SERVER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(names, critical=False)
        .add_extension(issuer_id, critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    return _pem(certificate, key)


def hosts_of(pem: bytes) -> list[str]:
    """The names and addresses that a certificate is for. Raises ConfigError."""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound) as error:
        raise ConfigError(f"a certificate that names no hosts: {error}") from None
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return [*addresses, *names.get_values_for_type(x509.DNSName)]


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
    days: int,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _opened(authority: Certificate) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        key = load_pem_private_key(authority.key_pem, password=None)
        certificate = x509.load_pem_x509_certificate(authority.pem)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"the authority cannot be used: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError("the authority cannot be used: its key is none of `cometmq init`")
    if key.public_key() != certificate.public_key():
        raise ConfigError("the authority cannot be used: its key belongs to another certificate")
    return certificate, key


def _host(text: str) -> x509.GeneralName:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        if len(text) <= _NAME_CHARS_MAX and _HOST_NAME.fullmatch(text):
            return x509.DNSName(text)
    else:
        if not address.is_unspecified:
            return x509.IPAddress(address)
    raise ConfigError(
        "expected the name or address by which clients reach a host, like queue.example.com or 192.0.2.10, "
        f"got {text!r}"
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _key_usage(
    *, digital_signature: bool, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Certificate:
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Certificate(certificate.public_bytes(Encoding.PEM), private)
