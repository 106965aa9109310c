"""The settings of access control and of the audit log: what all servers have alike, and what only some have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from cometmq.access.inner_config import Credential, InnerConfig, parse_credential
from cometmq.base.errors import ConfigError, UsageError
from cometmq.base.settings import setting
from cometmq.model.address import split_address, split_addresses
from cometmq.protocol.codes import RequestCode

STRICT: Final = "strict"
ROCKETMQ: Final = "rocketmq"

REQUIRED: Final = "required"
OPTIONAL: Final = "optional"

_AUTH: Final = "org.apache.rocketmq.auth"
AUTHENTICATION_PROVIDER: Final = f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider"
AUTHORIZATION_PROVIDER: Final = f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider"
LOCAL_USERS: Final = f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider"
LOCAL_ACLS: Final = f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider"
_AUTHENTICATION_STRATEGIES: Final = tuple(
    f"{_AUTH}.authentication.strategy.{name}AuthenticationStrategy"
    for name in ("Stateless", "Stateful")
)
_AUTHORIZATION_STRATEGIES: Final = tuple(
    f"{_AUTH}.authorization.strategy.{name}AuthorizationStrategy"
    for name in ("Stateless", "Stateful")
)

NOT_FOR_STRANGERS: Final = frozenset(
    {
        *range(
            RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG + 1
        ),
        *range(RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_LIST_ACL + 1),
        RequestCode.UPDATE_BROKER_CONFIG,
        RequestCode.UPDATE_NAMESRV_CONFIG,
        RequestCode.UPDATE_CONTROLLER_CONFIG,
        RequestCode.GET_ACCOUNTS,
    }
)
"""Never let through without an account: whoever may send them may do everything else soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountsConfig:
    """Of all servers: users and acls of RocketMQ 5, and the audit log."""

    is_authenticating: bool = setting(
        "authenticationEnabled",
        "Check who sends a request by the users of RocketMQ 5.",
        default=False,
    )
    is_authorizing: bool = setting(
        "authorizationEnabled",
        "Check what a user may do by the acls of RocketMQ 5.",
        default=False,
    )
    authentication_provider: str = setting(
        "authenticationProvider",
        "There is only the default one.",
        default=AUTHENTICATION_PROVIDER,
        choices=(AUTHENTICATION_PROVIDER, ""),
    )
    authorization_provider: str = setting(
        "authorizationProvider",
        "There is only the default one.",
        default=AUTHORIZATION_PROVIDER,
        choices=(AUTHORIZATION_PROVIDER, ""),
    )
    users_provider: str = setting(
        "authenticationMetadataProvider",
        "Where users are kept; needed to have any. The one choice keeps them in config/accounts.json.",
        default="",
        choices=("", LOCAL_USERS),
    )
    acls_provider: str = setting(
        "authorizationMetadataProvider",
        "Where acls are kept; needed to have any. The one choice keeps them in config/accounts.json.",
        default="",
        choices=("", LOCAL_ACLS),
    )
    authentication_strategy: str = setting(
        "authenticationStrategy",
        "Both check the signature of every request here.",
        default=_AUTHENTICATION_STRATEGIES[0],
        choices=(*_AUTHENTICATION_STRATEGIES, ""),
    )
    authorization_strategy: str = setting(
        "authorizationStrategy",
        "Both keep decisions until accounts change.",
        default=_AUTHORIZATION_STRATEGIES[0],
        choices=(*_AUTHORIZATION_STRATEGIES, ""),
    )
    authentication_whitelist: str = setting(
        "authenticationWhitelist",
        "Request codes that need no valid signature, separated by commas.",
        default="",
    )
    authorization_whitelist: str = setting(
        "authorizationWhitelist",
        "Request codes that need no permission, separated by commas.",
        default="",
    )
    init_user: str = setting(
        "initAuthenticationUser",
        'A super user that is created at the start if it is absent: {"username":"u","password":"p"}.',
        default="",
        is_secret=True,
    )
    inner: InnerConfig = field(default_factory=InnerConfig)
    mode: str = setting(
        "authenticationMode",
        "Whether every request needs a valid signature (required), or one without any is logged and served (optional), "
        "while not all peers have accounts yet. A wrong signature is refused in any case.",
        default=REQUIRED,
        choices=(REQUIRED, OPTIONAL),
    )
    allows_anonymous: bool = setting(
        "allowAnonymous",
        "Whether the server may start if it listens beyond loopback and serves requests without an account.",
        default=False,
    )
    subject_is_account: bool = setting(
        "tlsSubjectAsAccount",
        "Whether a request without a signature counts as that of the account which the common name (CN) of the peer's "
        "TLS certificate names.",
        default=False,
    )
    checks: str = setting(
        "accessChecks",
        "Whether requests need what is sensible (strict) or only what RocketMQ checks (rocketmq).",
        default=STRICT,
        choices=(STRICT, ROCKETMQ),
    )
    shows_secrets: bool = setting(
        "accountSecretsVisible",
        "Whether super users get the secrets of accounts when they ask for them; mqadmin copyUser needs it.",
        default=True,
    )
    key_path: str = setting(
        "accountKeyPath",
        "File with the key that encrypts secrets in config/accounts.json; config/accounts.key by default.",
        default="",
    )
    audit_path: str = setting(
        "auditLogPath",
        "File that says who changed what. By default, if there are accounts: audit.log in a broker's storePathRootDir, "
        "or in accountPath.",
        default="",
    )
    audit_bytes_max: int = setting(
        "auditLogFileSize", "Size at which the audit log is rotated.", default=64 << 20, low=4096
    )
    audit_files: int = setting(
        "auditLogFileCount",
        "Full audit logs that are kept.",
        default=10,
        low=1,
        high=1000,
    )

    def __post_init__(self) -> None:
        if self.is_authenticating and not self.users_provider:
            raise ConfigError(
                f"authenticationEnabled=true needs users: set authenticationMetadataProvider={LOCAL_USERS}"
            )
        if self.is_authorizing and not self.acls_provider:
            raise ConfigError(
                f"authorizationEnabled=true needs acls: set authorizationMetadataProvider={LOCAL_ACLS}"
            )
        if self.is_authorizing and not self.is_authenticating and self.is_strict:
            raise ConfigError(
                "authorizationEnabled without authenticationEnabled believes every name that a request carries: set "
                "authenticationEnabled=true, too, or accessChecks=rocketmq if that is meant"
            )
        if self.mode == OPTIONAL and not self.is_authenticating:
            raise ConfigError(
                "authenticationMode=optional has no effect without authenticationEnabled=true"
            )
        if self.subject_is_account and not self.is_enabled:
            raise ConfigError("tlsSubjectAsAccount=true has no effect without accounts")
        found = NOT_FOR_STRANGERS & (self.not_authenticated | self.not_authorized)
        if found and self.is_strict:
            raise ConfigError(
                f"request code {min(found)} must not be in a whitelist: whoever may send it may do everything"
            )
        # Said now, not when it is used.
        _ = self.first_user

    @property
    def is_strict(self) -> bool:
        return self.checks == STRICT

    @property
    def has_users(self) -> bool:
        """Whether users and acls are kept, be they checked or not."""
        return bool(self.users_provider or self.acls_provider)

    @property
    def is_enabled(self) -> bool:
        """Whether anything is checked."""
        return self.is_authenticating or self.is_authorizing

    @property
    def serves_anybody(self) -> bool:
        """Whether requests without an account are served."""
        return not self.is_enabled or self.mode == OPTIONAL

    @property
    def not_authenticated(self) -> frozenset[int]:
        return _codes("authenticationWhitelist", self.authentication_whitelist)

    @property
    def not_authorized(self) -> frozenset[int]:
        return _codes("authorizationWhitelist", self.authorization_whitelist)

    @property
    def first_user(self) -> Credential | None:
        return parse_credential("initAuthenticationUser", self.init_user, "username", "password")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessConfig(AccountsConfig):
    """Of a broker, which also knows the accounts of RocketMQ 4."""

    is_plain: bool = setting(
        "aclEnable",
        "Check every request by the accounts of RocketMQ 4: conf/plain_acl.yml and conf/acl below rocketmqHome.",
        default=False,
    )
    home: str = setting(
        "rocketmqHome",
        "RocketMQ's home directory, where account files of RocketMQ 4 are; by default the environment's ROCKETMQ_HOME.",
        default="",
    )
    migrates: bool = setting(
        "migrateAuthFromV1Enabled",
        "At the start, turn accounts of RocketMQ 4 into users and acls that are not there yet.",
        default=False,
    )

    def __post_init__(self) -> None:
        if self.is_plain and (self.is_authenticating or self.is_authorizing or self.migrates):
            raise ConfigError(
                "aclEnable=true excludes authenticationEnabled, authorizationEnabled and migrateAuthFromV1Enabled: set "
                "it to false to go from accounts of RocketMQ 4 to those of RocketMQ 5"
            )
        if self.is_plain and self.mode == OPTIONAL:
            raise ConfigError(
                "authenticationMode=optional has no effect with aclEnable=true: its white addresses let peers in"
            )
        if (self.is_plain or self.migrates) and not self.home:
            key = "aclEnable" if self.is_plain else "migrateAuthFromV1Enabled"
            raise ConfigError(
                f"{key}=true reads conf/plain_acl.yml below rocketmqHome, which is not set: set it, or ROCKETMQ_HOME"
            )
        AccountsConfig.__post_init__(self)
        if self.migrates and not self.has_users:
            raise ConfigError(
                f"migrateAuthFromV1Enabled=true needs users: set authenticationMetadataProvider={LOCAL_USERS}"
            )

    @property
    def has_users(self) -> bool:
        return not self.is_plain and bool(self.users_provider or self.acls_provider)

    @property
    def is_enabled(self) -> bool:
        return self.is_plain or self.is_authenticating or self.is_authorizing


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccessConfig(AccountsConfig):
    """Of a name server or a controller."""

    path: str = setting(
        "accountPath",
        "Directory of accounts.json, accounts.key and audit.log; by default next to the server's other data.",
        default="",
    )
    sources: str = setting(
        "accountBrokers",
        "Brokers whose users and acls the server copies every three seconds, like 10.0.0.1:10911;10.0.0.2:10911, "
        "signed with innerClientAuthenticationCredentials. Empty: it has its own.",
        default="",
    )

    def __post_init__(self) -> None:
        AccountsConfig.__post_init__(self)
        if not self.sources:
            return
        for address in self.source_addresses:
            try:
                split_address(address)
            except UsageError as error:
                raise ConfigError(f"accountBrokers: {error}") from None
        if not self.has_users or self.inner.credential is None:
            raise ConfigError(
                "accountBrokers needs authenticationMetadataProvider, and innerClientAuthenticationCredentials that "
                "are a super user's at these brokers"
            )

    @property
    def source_addresses(self) -> list[str]:
        return split_addresses(self.sources)


def _codes(key: str, text: str) -> frozenset[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"{key} must be request codes separated by commas")
    return frozenset(map(int, parts))
