"""Where users and acls are kept: ``config/accounts.json``, with the passwords encrypted by a key in a file of its own.

The protocol signs with the password itself, so a hash would not do. The key file protects copies of the table that come
without it: a backup of ``config``, an archive for support, a disk that holds only one of the two. It does not protect
against whoever can read both files, or the memory of the broker.

    {"version": 1, "users": [{"username", "secret", "userType", "userStatus"}], "acls": [as in reply 3010]}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from cometmq.access.accounts.account import Accounts, User, UserStatus, UserType
from cometmq.access.accounts.account_bodies import acls_of, all_acls
from cometmq.access.private_files import check_private, replace_private
from cometmq.base.errors import ConfigError, CorruptFile, ProtocolError
from cometmq.protocol import fastjson
from cometmq.protocol.bodies import auth as bodies
from cometmq.protocol.json_body import JsonBody
from cometmq.protocol.refusal import Refused

VERSION: Final = 1
FILE_NAME: Final = "accounts.json"
KEY_NAME: Final = "accounts.key"


class StoredUser(JsonBody):
    username: str
    secret: str
    user_type: UserType
    user_status: UserStatus


class StoredAccounts(JsonBody):
    LIMITS = fastjson.TABLE

    version: int = VERSION
    users: list[StoredUser] = msgspec.field(default_factory=list)
    acls: list[bodies.Acl] = msgspec.field(default_factory=list)


class AccountFile:
    """Called from worker threads, by one at a time.

    Args:
        key_path: None for ``accounts.key`` next to the file.
    """

    def __init__(self, directory: Path, key_path: Path | None = None) -> None:
        self.path = directory / FILE_NAME
        self.key_path = key_path or directory / KEY_NAME
        self._cipher: Any = None
        self._secrets: dict[User, str] = {}
        """What is encrypted already: it takes half a second for as many users as there may be."""

    def load(self) -> Accounts:
        """What was saved last, or nothing. Creates the key if there is nothing yet.

        Raises:
            ConfigError: the key is missing, not private, or another one; or a package is missing.
            CorruptFile: the file is no table of accounts.
        """
        is_there = self.path.exists()
        self._cipher = _cipher(self._key(create=not is_there), self.key_path)
        if not is_there:
            return Accounts()
        try:
            stored = StoredAccounts.decode(self.path.read_bytes())
            if stored.version != VERSION:
                raise ConfigError(f"{self.path} has version {stored.version}, this is {VERSION}")
            self._secrets = {self._user(one): one.secret for one in stored.users}
            users = {user.username: user for user in self._secrets}
            acls = acls_of(stored.acls)
        except ConfigError:
            raise
        except (ProtocolError, Refused, ValueError) as error:
            raise CorruptFile(
                str(self.path), f"is no table of accounts: {error}", "Restore it from a backup."
            ) from None
        return Accounts(users, acls)

    def save(self, accounts: Accounts) -> None:
        """Raises DiskFull, OSError: the old content is still there."""
        self._secrets = {user: self._secret(user) for user in accounts.users.values()}
        stored = StoredAccounts(
            users=[
                StoredUser(
                    username=user.username,
                    secret=secret,
                    user_type=user.user_type,
                    user_status=user.status,
                )
                for user, secret in self._secrets.items()
            ],
            acls=list(all_acls(accounts)),
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_private(self.path, stored.encode())

    def _secret(self, user: User) -> str:
        known = self._secrets.get(user)
        return known or self._cipher.encrypt(user.password.encode()).decode()

    def _user(self, stored: StoredUser) -> User:
        from cryptography.fernet import InvalidToken

        try:
            password = self._cipher.decrypt(stored.secret.encode()).decode()
        except InvalidToken:
            raise ConfigError(
                f"{self.key_path} is not the key that {self.path} was written with: put the right one there"
            ) from None
        return User(stored.username, password, stored.user_type, stored.user_status)

    def _key(self, *, create: bool) -> bytes:
        if not self.key_path.exists():
            if not create:
                raise ConfigError(
                    f"{self.path} is there, but the key of its secrets is not: put it back to {self.key_path}, "
                    "or remove both to start without accounts"
                )
            self.key_path.parent.mkdir(parents=True, exist_ok=True)
            replace_private(self.key_path, _new_key() + b"\n")
        check_private(self.key_path)
        return self.key_path.read_bytes().strip()

    def __repr__(self) -> str:
        return f"<AccountFile {self.path}>"


def _new_key() -> bytes:
    return bytes(_fernet().generate_key())


def _cipher(key: bytes, path: Path) -> Any:
    try:
        return _fernet()(key)
    except ValueError:
        raise ConfigError(f"{path} holds no key: put the right one there") from None


def _fernet() -> Any:
    try:
        from cryptography.fernet import Fernet
    except ImportError:
        raise ConfigError(
            "accounts need the package cryptography: pip install 'cometmq[accounts]'"
        ) from None
    return Fernet
