"""Every request has a declared need, and what it reads from a request is what the request is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from cometmq.access.access_config import LOCAL_USERS
from cometmq.access.rules.need import Action, Kind, Need
from cometmq.access.rules.request_rules import RULES, SUBJECTS
from cometmq.access.rules.rocketmq_rules import PLAIN_ROCKETMQ_RULES, ROCKETMQ_RULES
from cometmq.access.rules.rule import Demand
from cometmq.controller.controller_config import SCHEMA
from cometmq.controller.server import Controller
from cometmq.namesrv.namesrv_config import load_namesrv_config
from cometmq.namesrv.server import NameServer
from cometmq.protocol import fastjson
from cometmq.protocol.codes import RequestCode
from cometmq.protocol.command import Command

HEARTBEAT = fastjson.dumps(
    {
        "clientID": "c",
        "producerDataSet": [{"groupName": "p"}],
        "consumerDataSet": [
            {
                "groupName": "g",
                "subscriptionDataSet": [{"topic": "T", "subString": "*"}, {"topic": "%RETRY%g"}],
            }
        ],
    }
)


@pytest.mark.parametrize("code", RequestCode)
def test_every_request_is_declared_once(code: RequestCode) -> None:
    assert [subject for subject, rules in SUBJECTS.items() if code in rules] != []
    assert sum(code in rules for rules in SUBJECTS.values()) == 1
    assert code in RULES
    assert code in ROCKETMQ_RULES
    assert code in PLAIN_ROCKETMQ_RULES


@pytest.mark.parametrize("code", RequestCode)
def test_a_rule_that_demands_resources_names_them(code: RequestCode) -> None:
    for rules in (RULES, ROCKETMQ_RULES, PLAIN_ROCKETMQ_RULES):
        rule = rules[code]
        says = bool(rule.fields or rule.names or rule.cluster)
        assert says == (rule.demand is Demand.RESOURCES)
        assert str(rule)


def test_what_name_servers_and_controllers_serve_is_declared(tmp_path: Path) -> None:
    kept = {
        "authenticationMetadataProvider": LOCAL_USERS,
        "authenticationEnabled": "true",
    }
    names = NameServer(load_namesrv_config({**kept, "accountPath": str(tmp_path)})[0])
    masters = Controller(SCHEMA.load({**kept, "controllerStorePath": str(tmp_path)})[0])
    for server, subject in ((names, "Name server"), (masters, "Controller")):
        for code in server.dispatcher.codes:
            assert RULES[code].demand in (Demand.RESOURCES, Demand.NOTHING), code
        assert SUBJECTS[subject].keys() <= server.dispatcher.codes


def needs(code: int, ext: dict[str, str] | None = None, body: bytes = b"") -> list[str]:
    command = Command(code, ext, body)
    return [_text(need) for need in RULES[code].needs(command, "C")]


def _text(need: Need) -> str:
    return f"{need} {'|'.join(sorted(need.actions))}"


def test_sending() -> None:
    assert needs(310, {"a": "g", "b": "T"}) == ["Topic:T Pub"]
    assert needs(320, {"a": "g", "b": "T"}) == ["Topic:T Pub"]
    assert needs(10, {"topic": "T"}) == ["Topic:T Pub"]
    assert needs(325, {"b": "T"}) == ["Topic:T Pub"]
    assert needs(310, {}) == ["Topic: Pub"]


def test_a_retry_topic_is_its_groups_whatever_group_the_sender_names() -> None:
    assert needs(310, {"a": "mine", "b": "%RETRY%other"}) == ["Group:other Sub"]
    assert needs(11, {"consumerGroup": "mine", "topic": "%RETRY%other"}) == [
        "Group:other Sub",
        "Group:mine Sub",
    ]
    assert needs(11, {"consumerGroup": "g", "topic": "%RETRY%g"}) == ["Group:g Sub"]
    assert needs(200051, {"consumerGroup": "g", "topic": "%RETRY%g+T"}) == ["Group:g Sub"]
    assert needs(310, {"a": "g", "b": "%DLQ%g"}) == ["Topic:%DLQ%g Pub"]


def test_rocketmq_takes_the_senders_word_for_the_group() -> None:
    command = Command(310, {"a": "mine", "b": "%RETRY%other"})
    [need] = ROCKETMQ_RULES[310].needs(command, "C")
    assert _text(need) == "Group:mine Sub"
    [need] = ROCKETMQ_RULES[33].needs(Command(33, {"topic": "T"}), "C")
    assert str(need) == "Topic:T"
    assert ROCKETMQ_RULES[33].needs(Command(33, {}), "C") == []
    assert ROCKETMQ_RULES[25].demand is Demand.NOTHING
    assert PLAIN_ROCKETMQ_RULES[320].demand is Demand.NOTHING
    assert PLAIN_ROCKETMQ_RULES[17].demand is Demand.SUPER
    pull = Command(11, {"consumerGroup": "mine", "topic": "%RETRY%other"})
    [need] = ROCKETMQ_RULES[11].needs(pull, "C")
    assert _text(need) == "Group:mine Sub"


def test_consuming() -> None:
    consume = {"consumerGroup": "g", "topic": "T"}
    for code in (11, 361, 29001, 200050, 200051, 200052, 200053, 200054):
        assert needs(code, consume) == ["Topic:T Sub", "Group:g Sub"]
    assert needs(15, consume) == ["Topic:T Sub|Update", "Group:g Sub|Update"]
    assert needs(14, consume) == ["Topic:T Get|Sub", "Group:g Get|Sub"]
    assert needs(36, {"group": "g", "offset": "0"}) == ["Group:g Sub"]
    assert needs(35, {"clientID": "c", "producerGroup": "p"}) == []
    assert needs(35, {"clientID": "c", "consumerGroup": "g"}) == ["Group:g Sub"]
    assert needs(34, None, HEARTBEAT) == ["Group:g Sub", "Topic:T Sub"]


def test_bodies() -> None:
    queue = {"topic": "T", "brokerName": "b", "queueId": 0}
    lock = fastjson.dumps({"clientId": "c", "consumerGroup": "g", "mqSet": [queue]})
    assert needs(41, None, lock) == needs(42, None, lock) == ["Group:g Sub", "Topic:T Sub"]
    assign = fastjson.dumps({"topic": "T", "consumerGroup": "g", "clientId": "c"})
    assert needs(400, None, assign) == ["Group:g Sub", "Topic:T Sub"]
    assert needs(401, None, assign) == ["Group:g Update", "Topic:T Update"]
    check = fastjson.dumps(
        {"clientId": "c", "group": "g", "subscriptionData": {"topic": "T", "subString": "*"}}
    )
    assert needs(46, None, check) == ["Group:g Sub", "Topic:T Sub"]
    assert needs(200, None, fastjson.dumps({"groupName": "g"})) == ["Group:g Create"]
    groups = fastjson.dumps({"groupConfigList": [{"groupName": "g"}, {"groupName": "h"}]})
    assert needs(225, None, groups) == ["Group:g Create", "Group:h Create"]
    topics = fastjson.dumps({"topicConfigList": [{"topicName": "T"}]})
    assert needs(18, None, topics) == ["Topic:T Create"]
    ack = {"c": "g", "t": "T", "so": 0, "q": 0, "rq": 0, "pt": 0, "it": 0, "b": "AQ=="}
    assert needs(200151, None, fastjson.dumps({"acks": [ack, ack]})) == [
        "Group:g Sub",
        "Topic:T Sub",
    ]


def test_lists_in_headers() -> None:
    assert needs(208, {"consumerGroup": "g", "topicList": "A;B", "topic": ""}) == [
        "Group:g Get",
        "Topic:A Get",
        "Topic:B Get",
    ]
    # As its handler reads it: otherwise a right on ``A*`` would be one on B.
    assert needs(208, {"consumerGroup": "g", "topic": "A;B"}) == [
        "Group:g Get",
        "Topic:A Get",
        "Topic:B Get",
    ]
    assert needs(308, {"topic": "T", "compareGroup": "g", "filterGroups": "h,i"}) == [
        "Topic:T Get",
        "Group:g Get",
        "Group:h Get",
        "Group:i Get",
    ]


def test_the_cluster_and_its_accounts() -> None:
    assert needs(25) == ["Cluster:C Update"]
    assert needs(26) == needs(28) == needs(43) == needs(3005) == ["Cluster:C Get"]
    assert needs(3001) == needs(50) == needs(29005) == ["Cluster:C Update"]
    for code in (100, 101, 103, 104, 205, 318, 901, 1001, 1002, 1003, 1009, 1011, 1013):
        assert needs(code) in (["Cluster:C Update"], ["Cluster:C Get"]), code


def test_routes() -> None:
    assert needs(105, {"topic": "T"}) == ["Topic:T Get|Pub|Sub"]
    assert needs(105, {"topic": "%RETRY%g"}) == ["Group:g Get|Sub"]
    assert needs(105, {"topic": "TBW102"}) == []
    assert needs(105) == ["Topic: Get|Pub|Sub"]


def test_what_is_for_super_users_or_for_nobody() -> None:
    assert RULES[54].demand is RULES[29007].demand is Demand.SUPER
    assert RULES[40].demand is Demand.NEVER


def test_decisions_are_kept_by_the_fields_they_depend_on() -> None:
    assert RULES[310].keys == ("b",)
    assert RULES[11].keys == ("topic", "consumerGroup")
    assert RULES[34].keys is None
    assert ROCKETMQ_RULES[310].keys == ("b", "a")
    assert ROCKETMQ_RULES[11].keys == ("topic", "consumerGroup")
    assert Need(Kind.TOPIC, "T", frozenset({Action.PUB})) == Need(
        Kind.TOPIC, "T", frozenset({Action.PUB})
    )
