"""The account files of RocketMQ 4: read unchanged, noticed when they change, rewritten with care."""

from __future__ import annotations

import logging
import os
import stat
import sys
from pathlib import Path

import pytest

from cometmq.access.accounts.account import Accounts, PolicyType, User, UserType
from cometmq.access.accounts.migration import migrated
from cometmq.access.plain.plain_account import Perm
from cometmq.access.plain.plain_changes import (
    updated_account,
    with_white_addresses,
    without_account,
)
from cometmq.access.plain.plain_files import PlainFiles, read_content
from cometmq.base.errors import ConfigError
from cometmq.protocol.headers.auth import UpdateAclConfigHeader

# As RocketMQ 4.9 ships it.
SHIPPED = """
globalWhiteRemoteAddresses:
  - 10.10.103.*
  - 192.168.0.*

accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - topicA=DENY
      - topicB=PUB|SUB
      - topicC=SUB
    groupPerms:
      # the group should convert to retry topic
      - groupA=DENY
      - groupB=PUB|SUB
      - groupC=SUB

  - accessKey: rocketmq2
    secretKey: 12345678
    whiteRemoteAddress: 192.168.1.*
    # if it is admin, it could access all resources
    admin: true
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(tmp_path / "conf" / "plain_acl.yml", SHIPPED)
    return tmp_path


def write(path: Path, text: str, age: int = 100) -> None:
    """A file that was written some seconds ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))


def test_what_rocketmq_ships_is_read_unchanged(home: Path) -> None:
    table = PlainFiles(home).load()
    assert table.white_texts == ("10.10.103.*", "192.168.0.*")
    assert list(table.accounts) == ["RocketMQ", "rocketmq2"]
    account = table.accounts["RocketMQ"]
    assert account.secret_key == "12345678"
    assert account.topics == {
        "topicA": Perm.DENY,
        "topicB": Perm.PUB | Perm.SUB,
        "topicC": Perm.SUB,
    }
    assert (account.default_topic, account.default_group) == (Perm.DENY, Perm.SUB)
    assert table.accounts["rocketmq2"].is_admin


def test_the_directory_comes_before_the_default_file(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = "accounts: [{accessKey: RocketMQ, secretKey: another-secret}]"
    write(home / "conf" / "acl" / "deep" / "team.yaml", other)
    write(home / "conf" / "acl" / "notes.txt", "accounts: 1")
    write(home / "conf" / "tools.yml", "accessKey: RocketMQ")
    table = PlainFiles(home).load()
    assert table.accounts["RocketMQ"].secret_key == "another-secret"
    assert len(table.versions) == 2
    assert "another file has it" in caplog.text
    assert "another-secret" not in caplog.text


def test_no_file_at_all_refuses_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are no accounts"):
        PlainFiles(tmp_path).load()


@pytest.mark.parametrize(
    "text",
    [
        "accounts: [{accessKey: RocketMQ, secretKey: hush-hush-hush",
        "accounts: {secretKey: hush-hush-hush}",
        "accounts: [hush-hush-hush]",
        "- hush-hush-hush",
        "globalWhiteRemoteAddresses: 10.0.0.1",
        "globalWhiteRemoteAddresses: [nowhere]",
        "accounts: [{accessKey: short, secretKey: hush-hush-hush}]",
        "a: *unknown # hush-hush-hush",
        "!!python/object/apply:os.system [hush-hush-hush]",
    ],
)
def test_bad_content_refuses_the_start_and_shows_no_secret(home: Path, text: str) -> None:
    write(home / "conf" / "plain_acl.yml", text)
    with pytest.raises(ConfigError, match=r"plain_acl\.yml") as caught:
        PlainFiles(home).load()
    assert "hush" not in str(caught.value)


def test_a_change_is_noticed_by_time_and_by_number(home: Path) -> None:
    files = PlainFiles(home)
    files.load()
    assert files.changed() is None
    write(home / "conf" / "plain_acl.yml", SHIPPED.replace("rocketmq2", "rocketmq3"), age=50)
    table = files.changed()
    assert table is not None
    assert "rocketmq3" in table.accounts
    assert files.changed() is None
    more = home / "conf" / "acl" / "more.yml"
    write(more, "accounts: [{accessKey: another, secretKey: 12345678}]")
    assert len((files.changed() or table).accounts) == 3
    more.unlink()
    assert len((files.changed() or table).accounts) == 2


def test_bad_content_is_complained_about_once(home: Path) -> None:
    files = PlainFiles(home)
    files.load()
    write(home / "conf" / "plain_acl.yml", "accounts: 1", age=50)
    with pytest.raises(ConfigError):
        files.changed()
    assert files.changed() is None


def test_a_file_that_is_being_written_takes_no_account_away(home: Path) -> None:
    files = PlainFiles(home)
    files.load()
    path = home / "conf" / "plain_acl.yml"
    write(path, "", age=50)
    with pytest.raises(ConfigError, match=r"plain_acl.yml is empty; expected accounts"):
        files.changed()
    write(path, SHIPPED, age=40)
    table = files.changed()
    assert table is not None
    assert len(table.accounts) == 2


def test_an_edit_keeps_the_mode_and_what_is_not_ours(home: Path) -> None:
    path = home / "conf" / "plain_acl.yml"
    path.chmod(0o640)
    files = PlainFiles(home)
    files.edit(path, lambda content: {**content, "x": 1})
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert read_content(path)["x"] == 1
    new = home / "conf" / "acl" / "new.yml"
    files.edit(new, lambda content: {"accounts": []})
    assert stat.S_IMODE(new.stat().st_mode) == 0o600


def test_only_its_own_files_are_edited(home: Path) -> None:
    files = PlainFiles(home)
    assert files.known(None) == files.known(str(files.default_path)) == files.default_path
    for foreign in ("/etc/passwd", f"{home}/conf/../conf/plain_acl.yml", f"{home}/conf/tools.yml"):
        with pytest.raises(ConfigError, match="no account file"):
            files.known(foreign)


def test_a_missing_package_refuses_the_start(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ConfigError, match=r"pip install 'cometmq\[accounts\]'"):
        PlainFiles(home).load()


def header(**given: object) -> UpdateAclConfigHeader:
    return UpdateAclConfigHeader(
        **{"access_key": "RocketMQ", "secret_key": "new-secret", **given}  # type: ignore[arg-type]
    )


def test_an_update_changes_what_it_gives(home: Path) -> None:
    content = read_content(home / "conf" / "plain_acl.yml")
    changed = updated_account(content, header(topic_perms="t1=PUB, t2=SUB|PUB"), 5)
    account = changed["accounts"][0]
    assert account["secretKey"] == "new-secret"
    assert account["topicPerms"] == ["t1=PUB", "t2=SUB|PUB"]
    assert account["defaultGroupPerm"] == "SUB"
    assert account["admin"] is False
    assert changed["dataVersion"] == [{"counter": 1, "timestamp": 5}]
    again = updated_account(changed, header(access_key="newcomer", admin=True), 6)
    assert again["accounts"][-1]["accessKey"] == "newcomer"
    assert again["dataVersion"] == [{"counter": 2, "timestamp": 6}]
    without = without_account(again, "newcomer", 7)
    assert [one["accessKey"] for one in without["accounts"]] == ["RocketMQ", "rocketmq2"]
    white = with_white_addresses(content, ["10.0.0.1"], 8)
    assert white["globalWhiteRemoteAddresses"] == ["10.0.0.1"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"topic_perms": "t1=FOO"},
            "Parse resource permission error for t1=FOO.\n"
            "The expected permissions are 'SUB' or 'PUB' or 'SUB|PUB' or 'PUB|SUB'.",
        ),
        (
            {"group_perms": "g"},
            "Parse Resource format error for g.\n"
            "The expected resource format is 'Res=Perm'. For example: topicA=SUB",
        ),
        ({"white_remote_address": "x"}, "Netaddress examine Exception netaddress is x"),
        ({"access_key": "short"}, "length should longer than 6"),
        ({"secret_key": "hush"}, "length should longer than 6"),
        ({"secret_key": None}, "length should longer than 6"),
    ],
)
def test_updates_are_refused_as_by_rocketmq(given: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        updated_account({}, header(**given), 1)
    assert text in str(caught.value)
    assert "hush" not in str(caught.value)


def test_migration(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    known = User("rocketmq2", "its own")
    accounts, count = migrated(Accounts({"rocketmq2": known}), PlainFiles(home).load())
    assert count == 1
    assert accounts.users["rocketmq2"] is known
    assert accounts.users["RocketMQ"].user_type is UserType.NORMAL
    policies = accounts.acls["RocketMQ"].policies
    shown = {
        policy: [(str(e.resource), "+".join(e.actions), e.decision.value) for e in entries]
        for policy, entries in policies.items()
    }
    assert shown == {
        PolicyType.CUSTOM: [
            ("Topic:topicA", "All", "Deny"),
            ("Topic:topicB", "Pub+Sub", "Allow"),
            ("Topic:topicC", "Sub", "Allow"),
            ("Group:groupA", "All", "Deny"),
            ("Group:groupB", "Pub+Sub", "Allow"),
            ("Group:groupC", "Sub", "Allow"),
        ],
        PolicyType.DEFAULT: [("Topic:*", "All", "Deny"), ("Group:*", "Sub", "Allow")],
    }
    assert migrated(accounts, PlainFiles(home).load())[1] == 0
