"""What requests 50, 51 and 53 change in the content of a ``plain_acl.yml``. No I/O; all raise ConfigError.

The content is what YAML gives: the fields that are not ours stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cometmq.access.plain.addresses import matcher
from cometmq.access.plain.plain_account import check_keys, check_perm, parse_account, split_perm
from cometmq.protocol.headers.auth import UpdateAclConfigHeader


def updated_account(
    content: Mapping[str, Any], header: UpdateAclConfigHeader, now_ms: int
) -> dict[str, Any]:
    """With the account added, or the given fields of it changed."""
    check_keys(header.access_key, header.secret_key)
    given = _given(header)
    accounts = _accounts(content)
    for at, account in enumerate(accounts):
        if str(account.get("accessKey")) == header.access_key:
            accounts[at] = {**account, **given}
            break
    else:
        at = len(accounts)
        accounts.append(given)
    parse_account(accounts[at])
    return _stamped({**content, "accounts": accounts}, now_ms)


def without_account(content: Mapping[str, Any], access_key: str, now_ms: int) -> dict[str, Any]:
    accounts = [one for one in _accounts(content) if str(one.get("accessKey")) != access_key]
    return _stamped({**content, "accounts": accounts}, now_ms)


def with_white_addresses(
    content: Mapping[str, Any], addresses: list[str], now_ms: int
) -> dict[str, Any]:
    for address in addresses:
        matcher(address)
    return _stamped({**content, "globalWhiteRemoteAddresses": addresses}, now_ms)


def _given(header: UpdateAclConfigHeader) -> dict[str, Any]:
    """The fields of the header that are set; ``admin`` always is, as in RocketMQ."""
    given: dict[str, Any] = {
        "accessKey": header.access_key,
        "secretKey": header.secret_key,
        "admin": bool(header.admin),
    }
    if header.white_remote_address is not None:
        matcher(header.white_remote_address)
        given["whiteRemoteAddress"] = header.white_remote_address
    for key, perm in (
        ("defaultTopicPerm", header.default_topic_perm),
        ("defaultGroupPerm", header.default_group_perm),
    ):
        if perm is not None:
            check_perm(perm)
            given[key] = perm
    for key, perms in (("topicPerms", header.topic_perms), ("groupPerms", header.group_perms)):
        if perms is not None:
            listed = [one.strip() for one in perms.split(",") if one.strip()]
            for one in listed:
                split_perm(one)
                check_perm(one)
            given[key] = listed
    return given


def _accounts(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(one) for one in content.get("accounts") or [] if isinstance(one, dict)]


def _stamped(content: dict[str, Any], now_ms: int) -> dict[str, Any]:
    """With the next version of the file."""
    counter = 0
    match content.get("dataVersion"):
        case [{"counter": int(old)}, *_]:
            counter = old
    return {**content, "dataVersion": [{"counter": counter + 1, "timestamp": now_ms}]}
