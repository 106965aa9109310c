"""The decision of RocketMQ 4's access control: order, texts, and where ours asks for more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cometmq.access.identity import Identity
from cometmq.access.plain.addresses import matcher
from cometmq.access.plain.plain_account import PlainTable, parse_account
from cometmq.access.plain.plain_judge import PlainJudge
from cometmq.access.refusals import AccessRefused
from cometmq.access.rules.need import SUB
from cometmq.access.rules.request_rules import RULES
from cometmq.access.rules.rocketmq_rules import PLAIN_ROCKETMQ_RULES
from cometmq.base.errors import ConfigError
from cometmq.protocol.command import Command
from cometmq.protocol.request_signature import sign

PREFIX = "org.apache.rocketmq.acl.common.AclException: "
HOST = "10.0.0.7"


def table(*accounts: Mapping[str, Any], white: tuple[str, ...] = ()) -> PlainTable:
    parsed = [parse_account({"secretKey": "12345678", **one}) for one in accounts]
    return PlainTable(
        {one.access_key: one for one in parsed}, white, tuple(matcher(text) for text in white)
    )


ACCOUNTS = table(
    {
        "accessKey": "RocketMQ",
        "whiteRemoteAddress": "192.168.0.*",
        "defaultTopicPerm": "DENY",
        "defaultGroupPerm": "SUB",
        "topicPerms": ["topicA=DENY", "topicB=PUB|SUB", " topicC = SUB ", "topicD=PUB"],
        "groupPerms": ["groupA=DENY", "groupB=PUB|SUB"],
    },
    {"accessKey": "rocketmq2", "admin": True},
    {"accessKey": "listed-admin", "admin": "true", "topicPerms": ["topicB=PUB"]},
    white=("10.10.103.*",),
)


def signed(
    code: int, ext: dict[str, str] | None = None, key: str = "RocketMQ", secret: str = "12345678"
) -> Command:
    command = Command(code, ext)
    sign(command, key, secret)
    return command


def decide(command: Command, host: str = HOST, *, rules: Any = RULES) -> Identity:
    judge = PlainJudge(ACCOUNTS, rules)
    identity = judge.identify(host, command)
    judge.permit(identity, host, command)
    return identity


def refusal(command: Command, host: str = HOST, *, rules: Any = RULES) -> str:
    with pytest.raises(AccessRefused) as caught:
        decide(command, host, rules=rules)
    assert caught.value.code == 1
    assert caught.value.remark.startswith(PREFIX)
    return caught.value.remark.removeprefix(PREFIX)


def test_a_white_address_needs_no_account() -> None:
    assert decide(Command(25), "10.10.103.9").is_free


def test_who_it_is() -> None:
    assert refusal(Command(310)) == "No accessKey is configured"
    assert refusal(Command(310, {"b": "topicB"})) == "No accessKey is configured"
    assert refusal(signed(310, key="somebody")) == "No acl config for somebody"
    wrong = signed(310, {"b": "topicB"}, secret="87654321")
    assert refusal(wrong) == "Check signature failed for accessKey=RocketMQ"
    assert decide(Command(25, {"AccessKey": "RocketMQ"}), "192.168.0.3").is_free


def test_permissions_by_topic_and_group() -> None:
    decide(signed(310, {"b": "topicB"}))
    decide(signed(310, {"b": "topicD"}))
    assert refusal(signed(310, {"b": "topicA"})) == "No default permission for topic:topicA"
    assert refusal(signed(310, {"b": "topicC"})) == "No default permission for topic:topicC"
    assert refusal(signed(310, {"b": "other"})) == "No default permission for topic:other"
    decide(signed(11, {"topic": "topicC", "consumerGroup": "any"}))
    assert refusal(signed(11, {"topic": "topicC", "consumerGroup": "groupA"})) == (
        "No default permission for group:groupA"
    )
    assert refusal(signed(11, {"topic": "topicD", "consumerGroup": "groupB"})) == (
        "No default permission for topic:topicD"
    )
    decide(signed(310, {"a": "groupB", "b": "%RETRY%groupB"}))


def test_everybody_may_trace() -> None:
    decide(signed(310, {"b": "RMQ_SYS_TRACE_TOPIC"}))


@pytest.mark.parametrize("code", [17, 25, 207, 215])
def test_operators_are_admins(code: int) -> None:
    ext = {"topic": "topicB", "groupName": "groupB"}
    assert refusal(signed(code, ext)) == (
        f"Need admin permission for request code={code}, but accessKey=RocketMQ is not"
    )
    decide(signed(code, ext, "rocketmq2"))


@pytest.mark.parametrize("code", [26, 28, 43, 45, 50, 51, 52, 53, 54, 201, 222, 29005, 29006])
def test_where_rocketmq_asks_nothing_ours_asks_for_an_admin(code: int) -> None:
    ext = {"topic": "topicB", "group": "groupB"}
    assert "Need admin permission" in refusal(signed(code, ext))
    decide(signed(code, ext), rules=PLAIN_ROCKETMQ_RULES)
    decide(signed(code, ext, "rocketmq2"))


def test_what_only_reads_about_a_topic_needs_any_permission_for_it() -> None:
    decide(signed(202, {"topic": "topicD"}))
    assert refusal(signed(202, {"topic": "topicA"})) == "No default permission for topic:topicA"


def test_batches_need_the_topic_too() -> None:
    assert refusal(signed(320, {"b": "topicA"})) == "No default permission for topic:topicA"
    decide(signed(320, {"b": "topicA"}), rules=PLAIN_ROCKETMQ_RULES)


def test_rights_of_another_group_do_not_open_a_retry_topic() -> None:
    ext = {"a": "groupB", "b": "%RETRY%groupA"}
    assert refusal(signed(310, ext)) == "No default permission for group:groupA"
    decide(signed(310, ext), rules=PLAIN_ROCKETMQ_RULES)


def test_an_admin_with_listed_permissions_is_checked_by_them() -> None:
    decide(signed(25, None, "listed-admin"))
    decide(signed(310, {"b": "topicB"}, "listed-admin"))
    assert refusal(signed(310, {"b": "topicA"}, "listed-admin")) == (
        "No default permission for topic:topicA"
    )


def test_what_is_not_declared_is_refused_to_everybody() -> None:
    assert "served to nobody" in refusal(signed(9999, None, "rocketmq2"))
    assert "served to nobody" in refusal(signed(40, None, "rocketmq2"))
    assert "served to nobody" in refusal(Command(9999), "10.10.103.9")


def test_records_named_by_their_place() -> None:
    judge = PlainJudge(ACCOUNTS, RULES)
    me = judge.identify(HOST, signed(33))
    judge.permit_topic(me, HOST, "topicC", SUB)
    with pytest.raises(AccessRefused):
        judge.permit_topic(me, HOST, "topicA", SUB)
    PlainJudge(ACCOUNTS, RULES, checks_records=False).permit_topic(me, HOST, "topicA", SUB)


@pytest.mark.parametrize(
    "given",
    [
        {"accessKey": "short", "secretKey": "12345678"},
        {"accessKey": "long enough", "secretKey": "hush"},
        {"accessKey": "long enough"},
        {"accessKey": "long enough", "secretKey": "12345678", "topicPerms": ["a"]},
        {"accessKey": "long enough", "secretKey": "12345678", "topicPerms": "a=PUB"},
        {"accessKey": "long enough", "secretKey": "12345678", "whiteRemoteAddress": "x"},
    ],
)
def test_bad_accounts_are_refused_without_their_secret(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_account(given)
    assert "hush" not in str(caught.value)
    assert "12345678" not in str(caught.value)


def test_numbers_are_text_and_no_repr_shows_a_secret() -> None:
    account = parse_account({"accessKey": 12345678, "secretKey": 87654321})
    assert account.access_key == "12345678"
    assert "87654321" not in repr(account)
    assert "12345678" not in repr(PlainTable({"a": account}).accounts["a"].verifier)


def test_where_messages_of_all_topics_wait_only_an_administrator_reads() -> None:
    reader = table({"accessKey": "reader-1", "defaultTopicPerm": "SUB", "defaultGroupPerm": "SUB"})
    read = signed(11, {"topic": "SCHEDULE_TOPIC_XXXX", "consumerGroup": "g"}, "reader-1")
    for rules in (RULES, PLAIN_ROCKETMQ_RULES):
        judge = PlainJudge(reader, rules, checks_records=rules is RULES)
        identity = judge.identify(HOST, read)
        if rules is RULES:
            with pytest.raises(AccessRefused, match="Need admin permission"):
                judge.permit(identity, HOST, read)
        else:
            judge.permit(identity, HOST, read)
