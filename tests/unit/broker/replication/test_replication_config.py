"""Who may be a slave, as far as addresses say."""

from __future__ import annotations

import pytest

from cometmq.base.errors import ConfigError
from cometmq.broker.replication.replication_config import ReplicationConfig, is_allowed


@pytest.mark.parametrize(
    ("host", "allowed", "expected"),
    [
        ("192.0.2.7", "", True),
        ("192.0.2.7", "192.0.2.7", True),
        ("192.0.2.7", " 10.0.0.1 ; 192.0.2.0/24;", True),
        ("192.0.3.7", "10.0.0.1;192.0.2.0/24", False),
        ("::ffff:192.0.2.7", "192.0.2.0/24", True),
        ("::1", "192.0.2.0/24", False),
        ("fd00::7", "fd00::/8", True),
        ("?", "192.0.2.0/24", False),
    ],
)
def test_allowed_addresses(host: str, allowed: str, expected: bool) -> None:
    assert is_allowed(host, allowed) is expected


def test_what_is_no_address_is_refused_before_it_is_used() -> None:
    with pytest.raises(ConfigError, match="haAllowedAddresses=localhost: expected addresses"):
        ReplicationConfig(allowed_addresses="localhost")
