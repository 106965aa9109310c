"""Accounts and permissions: 50 to 53 of RocketMQ 4, 3001 to 3010 of RocketMQ 5."""

from __future__ import annotations

from cometmq.protocol.fields import Header


class UpdateAclConfigHeader(Header):
    """Request 50. The two lists of permissions are separated by commas. A repr must not show the secret."""

    access_key: str
    secret_key: str | None = None
    white_remote_address: str | None = None
    admin: bool | None = None
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: str | None = None
    group_perms: str | None = None

    def __repr__(self) -> str:
        return f"UpdateAclConfigHeader(access_key={self.access_key!r})"


class DeleteAclConfigHeader(Header):
    """Request 51."""

    access_key: str


class GetAclInfoReply(Header):
    """Reply to 52. The versions are JSON strings."""

    version: str | None = None
    all_acl_file_version: str | None = None
    broker_name: str | None = None
    broker_addr: str | None = None
    cluster_name: str | None = None


class UpdateGlobalWhiteAddrsHeader(Header):
    """Request 53."""

    global_white_addrs: str
    acl_file_full_path: str | None = None


class UserHeader(Header):
    """Requests 3001 to 3004."""

    username: str | None = None


class ListUserHeader(Header):
    """Request 3005."""

    filter: str | None = None


class AclHeader(Header):
    """Requests 3006 to 3009; only a deletion (3008) may name policy type and resource."""

    subject: str | None = None
    policy_type: str | None = None
    resource: str | None = None


class ListAclHeader(Header):
    """Request 3010."""

    subject_filter: str | None = None
    resource_filter: str | None = None
