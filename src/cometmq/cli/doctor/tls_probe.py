"""How a server speaks TLS: what it presents, and whether a client would accept it."""

from __future__ import annotations

import ssl

from cometmq.cli.doctor.facts import CertificateFacts, TlsFacts
from cometmq.remoting.certificates.probe import (
    PROBE_SECONDS_MAX,
    connect_and_leave,
    trusting_context,
)
from cometmq.remoting.client import system_reason
from cometmq.remoting.tls import TlsConfig


async def tcp_failure(address: str) -> str:
    """Why no connection can be made; empty if one can."""
    try:
        await connect_and_leave(address)
    except TimeoutError:
        return f"no answer in {PROBE_SECONDS_MAX:g} s"
    except OSError as error:
        return f"cannot be reached: {system_reason(error)}"
    return ""


async def tls_facts(address: str, own: TlsConfig) -> TlsFacts | None:
    """None if the server does not speak TLS. ``own`` are the settings of a client that wants to talk to it."""
    try:
        seen = await connect_and_leave(address, trusting_context())
    except OSError:
        return None
    assert seen is not None
    der = seen.getpeercert(binary_form=True)
    return TlsFacts(
        protocol=seen.version() or "",
        certificate=_read(der) if der else None,
        distrust=await _distrust(address, own),
    )


async def _distrust(address: str, own: TlsConfig) -> str:
    if not own.verifies_server:
        return ""
    try:
        await connect_and_leave(address, own.client_context())
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except OSError:
        # It is about other things than trust; asking with the account will tell.
        return ""
    return ""


def _read(der: bytes) -> CertificateFacts | None:
    try:
        from cryptography import x509
    except ImportError:
        return None
    certificate = x509.load_der_x509_certificate(der)
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        hosts: list[str] = []
    else:
        hosts = [
            *map(str, names.get_values_for_type(x509.IPAddress)),
            *names.get_values_for_type(x509.DNSName),
        ]
    return CertificateFacts(
        valid_from_ms=int(certificate.not_valid_before_utc.timestamp() * 1000),
        valid_until_ms=int(certificate.not_valid_after_utc.timestamp() * 1000),
        hosts=tuple(hosts),
    )
