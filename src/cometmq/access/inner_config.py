"""What a server signs its own requests to other servers with; brokers, name servers and controllers have it alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from cometmq.base.errors import ConfigError
from cometmq.base.settings import setting
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import sign


class Credential(NamedTuple):
    """A repr does not show the secret."""

    name: str
    secret: str

    def __repr__(self) -> str:
        return f"Credential(name={self.name!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerConfig:
    text: str = setting(
        "innerClientAuthenticationCredentials",
        "What the server signs its own requests to other servers with; a broker that keeps users creates it as a super "
        'user: {"accessKey":"u","secretKey":"p"}.',
        default="",
        is_secret=True,
    )

    def __post_init__(self) -> None:
        # Said now, not when it is used.
        _ = self.credential

    @property
    def credential(self) -> Credential | None:
        return parse_credential(
            "innerClientAuthenticationCredentials", self.text, "accessKey", "secretKey"
        )

    @property
    def sign(self) -> Callable[[Command], None] | None:
        """Signs a request; None if there is nothing to sign with."""
        account = self.credential
        if account is None:
            return None
        return partial(sign, access_key=account.name, secret_key=account.secret)


def credential_text(name: str, secret: str) -> str:
    """As ``innerClientAuthenticationCredentials`` has it."""
    return json.dumps({"accessKey": name, "secretKey": secret})


def parse_credential(key: str, text: str, name_key: str, secret_key: str) -> Credential | None:
    """None if the text is empty. Raises ConfigError, which does not quote the text: there is a secret in it."""
    if not text:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict):
        name, secret = value.get(name_key), value.get(secret_key)
        if isinstance(name, str) and isinstance(secret, str) and name and secret:
            return Credential(name, secret)
    raise ConfigError(f'{key} must be JSON like {{"{name_key}":"...","{secret_key}":"..."}}')
