"""Where users are kept: encrypted, private, and refused if anything is wrong with it."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path

import pytest

from cometmq.access.accounts.account import Accounts, User, UserType
from cometmq.access.accounts.account_file import AccountFile
from cometmq.access.accounts.changes import merge_acl
from cometmq.base.errors import ConfigError, CorruptFile
from cometmq.protocol.bodies.auth import Acl, Policy, PolicyEntry

SECRET = "s3cret-of-root"
ACL = Acl(policies=[Policy(entries=[PolicyEntry(resource="*", actions=["All"], decision="Allow")])])
MADE = merge_acl(Accounts({"root": User("root", SECRET, UserType.SUPER)}), "User:root", ACL)


def saved(directory: Path) -> AccountFile:
    file = AccountFile(directory)
    assert file.load() == Accounts()
    file.save(MADE)
    return file


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    saved(tmp_path / "config")
    assert AccountFile(tmp_path / "config").load() == MADE


def test_both_files_are_private_and_the_table_has_no_secret_in_it(tmp_path: Path) -> None:
    file = saved(tmp_path)
    for path in (file.path, file.key_path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = file.path.read_text()
    assert SECRET not in text
    assert json.loads(text)["users"][0]["username"] == "root"
    assert SECRET not in repr(file)


def test_a_key_elsewhere(tmp_path: Path) -> None:
    key = tmp_path / "keys" / "mine"
    AccountFile(tmp_path, key).load()
    assert key.exists()
    assert not (tmp_path / "accounts.key").exists()


def test_a_missing_key_refuses_the_start(tmp_path: Path) -> None:
    saved(tmp_path).key_path.unlink()
    with pytest.raises(ConfigError, match=r"put it back to .*accounts\.key"):
        AccountFile(tmp_path).load()


def test_another_key_refuses_the_start(tmp_path: Path) -> None:
    file = saved(tmp_path)
    AccountFile(tmp_path / "other").load()
    file.key_path.write_bytes((tmp_path / "other" / "accounts.key").read_bytes())
    with pytest.raises(ConfigError, match="is not the key"):
        AccountFile(tmp_path).load()


def test_a_key_that_is_none_refuses_the_start(tmp_path: Path) -> None:
    saved(tmp_path).key_path.write_text("nonsense")
    with pytest.raises(ConfigError, match="holds no key"):
        AccountFile(tmp_path).load()


def test_a_key_that_others_may_read_refuses_the_start(tmp_path: Path) -> None:
    saved(tmp_path).key_path.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        AccountFile(tmp_path).load()


@pytest.mark.parametrize("content", ["", "[]", '{"users":[{"username":1}]}', "{"])
def test_a_damaged_table_refuses_the_start(tmp_path: Path, content: str) -> None:
    saved(tmp_path).path.write_text(content)
    with pytest.raises(CorruptFile, match="no table of accounts"):
        AccountFile(tmp_path).load()


def test_a_later_version_refuses_the_start(tmp_path: Path) -> None:
    saved(tmp_path).path.write_text('{"version":2}')
    with pytest.raises(ConfigError, match="has version 2"):
        AccountFile(tmp_path).load()


def test_a_missing_package_refuses_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
    with pytest.raises(ConfigError, match=r"pip install 'cometmq\[accounts\]'"):
        AccountFile(tmp_path).load()


def test_a_password_is_encrypted_once(tmp_path: Path) -> None:
    file = saved(tmp_path)
    before = json.loads(file.path.read_text())["users"]
    again = AccountFile(tmp_path)
    made = again.load()
    more = Accounts({**made.users, "bob": User("bob", "pw")}, made.acls)
    again.save(more)
    after = json.loads(file.path.read_text())["users"]
    assert after[:1] == before
    assert AccountFile(tmp_path).load() == more


def test_what_a_crash_left_behind_does_not_stand_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "accounts.json.tmp").write_text("half")
    saved(tmp_path)
    assert not (tmp_path / "accounts.json.tmp").exists()
