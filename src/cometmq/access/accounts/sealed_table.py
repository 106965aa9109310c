"""The table of all accounts on its way to a replica: encrypted and proved with the secret that signed the request.

The table has every password in it. TLS is not always there, and a signature does not say which request it belongs to:
whoever has recorded any signed request without fields and body can send it again as this one. So the answer is of use
only to who has the secret itself, and only for the request that named the nonce; and a replica takes accounts only from
a server that has the secret, too.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Any, Final

from cometmq.access.inner_config import Credential
from cometmq.base.errors import RemoteProtocolError

NONCE: Final = "nonce"
NONCE_CHARS_MIN: Final = 16
_PURPOSE: Final = b"cometmq accounts 1\0"


class Exchange:
    """One request for the table, and its answer.

    Args:
        credential: what the request will be signed with. None: it is not, and the answer is the plain table, as a
            server gives it where nobody is asked for an account, or to a certificate that is one.
    """

    def __init__(self, credential: Credential | None) -> None:
        self._credential = credential
        self._nonce = secrets.token_hex(16)

    @property
    def ext(self) -> dict[str, str]:
        """The fields of the request."""
        return {NONCE: self._nonce}

    def opened(self, body: bytes) -> bytes:
        """The table. Raises RemoteProtocolError: nobody who has the secret has sealed it for this request."""
        if self._credential is None:
            return body
        from cryptography.fernet import InvalidToken

        try:
            return bytes(_cipher(self._credential.secret, self._nonce).decrypt(body))
        except InvalidToken:
            raise RemoteProtocolError(
                "expected the table of accounts, sealed with the secret that signed the request: the server has "
                "another secret, or is none of ours"
            ) from None


def seal(table: bytes, secret: str, nonce: str) -> bytes:
    return bytes(_cipher(secret, nonce).encrypt(table))


def _cipher(secret: str, nonce: str) -> Any:
    from cryptography.fernet import Fernet

    key = hmac.digest(secret.encode(), _PURPOSE + nonce.encode(), hashlib.sha256)
    return Fernet(base64.urlsafe_b64encode(key))
