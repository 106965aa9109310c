"""The table of accounts between servers: of use to who has the secret, for the one request that asked for it."""

from __future__ import annotations

import pytest

from cometmq.access.accounts.sealed_table import NONCE, Exchange, seal
from cometmq.access.inner_config import Credential
from cometmq.base.errors import RemoteProtocolError

TABLE = b'{"users":[{"username":"u","password":"very secret"}]}'
SERVERS = Credential("servers", "the secret")


def test_who_asked_can_open_it() -> None:
    exchange = Exchange(SERVERS)
    sealed = seal(TABLE, SERVERS.secret, exchange.ext[NONCE])
    assert b"secret" not in sealed
    assert exchange.opened(sealed) == TABLE


def test_nobody_else_can_and_not_for_another_request() -> None:
    exchange = Exchange(SERVERS)
    nonce = exchange.ext[NONCE]
    for wrong in (
        seal(TABLE, "another secret", nonce),
        seal(TABLE, SERVERS.secret, Exchange(SERVERS).ext[NONCE]),
        seal(TABLE, SERVERS.secret, nonce)[:-4],
        TABLE,
        b"",
    ):
        with pytest.raises(RemoteProtocolError, match="none of ours") as caught:
            exchange.opened(wrong)
        assert 'secret"' not in str(caught.value)


def test_a_request_that_is_not_signed_gets_the_plain_table() -> None:
    assert Exchange(None).opened(TABLE) == TABLE
