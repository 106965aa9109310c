"""What a server checks about its own door before it starts."""

from __future__ import annotations

import logging

from cometmq.access.access_config import AccountsConfig
from cometmq.base.errors import ConfigError
from cometmq.model.address import is_loopback
from cometmq.remoting.tls import TlsConfig


def is_open_door(config: AccountsConfig, bind_address: str) -> bool:
    """Whether strangers on other machines are served."""
    return config.serves_anybody and not is_loopback(bind_address)


def check_open_door(
    config: AccountsConfig, bind_address: str, logger: logging.Logger, *, server: str, danger: str
) -> None:
    """A server that others can reach and that asks nobody for an account does not start unless somebody has said so.

    Args:
        server: for people: ``broker``.
        danger: what anybody who reaches it may do then.

    Raises:
        ConfigError: it would be open to strangers, and nobody has allowed that.
    """
    if not is_open_door(config, bind_address):
        return
    where = bind_address or "0.0.0.0"
    if not config.allows_anonymous:
        lack = "with authenticationMode=optional" if config.is_enabled else "without accounts"
        raise ConfigError(
            f"this {server} would listen on {where}, beyond loopback, {lack}: whoever reaches it may {danger}. Either "
            "turn accounts on (authenticationEnabled=true and authorizationEnabled=true, see docs/operating.md), or "
            "set allowAnonymous=true if everybody who reaches it may do that"
        )
    logger.warning(
        "%s listens beyond loopback and serves anybody (allowAnonymous=true) address=%s: whoever reaches it may %s",
        server,
        where,
        danger,
    )


def check_subjects(config: AccountsConfig, tls: TlsConfig) -> None:
    """Raises ConfigError: the names in certificates are to be accounts, but no certificate is verified."""
    if config.subject_is_account and not tls.identifies_clients:
        raise ConfigError(
            "tlsSubjectAsAccount=true needs certificates of clients: set tls.server.need.client.auth=optional or "
            "require, tls.server.authClient=true and tls.server.trustCertPath"
        )
