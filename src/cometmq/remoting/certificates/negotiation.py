"""Which versions of TLS and which ciphers may be negotiated: ``tls.protocols`` and ``tls.ciphers``."""

from __future__ import annotations

import re
import ssl
from typing import Final

from cometmq.base.errors import ConfigError

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_SUITE_13: Final = re.compile(r"TLS_(AES|CHACHA20)_")


def set_versions(context: ssl.SSLContext, text: str) -> None:
    """Raises ConfigError: a version that is unknown or too old."""
    names = _split(text) or list(_VERSIONS)
    for name in names:
        if name not in _VERSIONS:
            raise ConfigError(
                f"tls.protocols must be among {', '.join(_VERSIONS)}, separated by commas, not {name!r}"
            )
    versions = [_VERSIONS[name] for name in names]
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def set_ciphers(context: ssl.SSLContext, text: str) -> None:
    """Raises ConfigError: a cipher that is unknown, or of TLS 1.3, whose ciphers cannot be chosen."""
    names = [_openssl_name(name) for name in _split(text)]
    if not names:
        return
    for name in names:
        try:
            # One by one: of a list, OpenSSL passes over what it does not know.
            context.set_ciphers(name)
        except ssl.SSLError:
            raise ConfigError(f"tls.ciphers: {name!r} is no cipher of TLS 1.2 here") from None
    context.set_ciphers(":".join(names))


def _openssl_name(name: str) -> str:
    """RocketMQ has the names of the standard; OpenSSL has its own, which are taken, too."""
    if _SUITE_13.match(name):
        raise ConfigError(
            f"tls.ciphers: {name} belongs to TLS 1.3, whose ciphers cannot be chosen here; all of them are strong. "
            "Leave it out"
        )
    if not name.startswith("TLS_"):
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("_CBC", "").replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    cipher = re.sub(r"AES_(\d+)", r"AES\1", cipher).replace("_", "-")
    return cipher if exchange == "RSA" else f"{exchange.replace('_', '-')}-{cipher}"


def _split(text: str) -> list[str]:
    return [part for part in re.split(r"[,:\s]+", text) if part]
