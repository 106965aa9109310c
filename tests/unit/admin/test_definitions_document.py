"""A file of definitions: what is read, and what is wrong with it, all at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cometmq.admin import Definitions, DefinitionsError, GroupDefinition, TopicDefinition
from cometmq.protocol.bodies.auth import Acl, Policy, PolicyEntry, User

GOLDEN = Path(__file__).parents[2] / "golden"


def _mistakes(document: object) -> list[str]:
    with pytest.raises(DefinitionsError) as error:
        Definitions.parse(json.dumps(document))
    assert "nothing was changed" in str(error.value)
    return error.value.mistakes


def test_what_is_written_is_read_again() -> None:
    definitions = Definitions(
        topics=[
            TopicDefinition(topic_name="orders", perm=4, attributes={"message.type": "FIFO"}),
            TopicDefinition(topic_name="bills", brokers=["broker-a"]),
        ],
        groups=[GroupDefinition(group_name="billing", retry_max_times=3)],
        users=[User(username="shop", password="secret", user_type="Normal")],
        acls=[
            Acl(
                subject="User:shop",
                policies=[
                    Policy(
                        entries=[PolicyEntry(resource="Topic:*", actions=["Pub"], decision="Allow")]
                    )
                ],
            )
        ],
    )
    text = definitions.text()
    assert '"topicName": "orders"' in text
    assert "null" not in text
    assert Definitions.parse(text) == definitions


def test_the_files_of_a_rocketmq_broker_are_read() -> None:
    topics = {
        "topicConfigTable": {
            "orders": {"topicName": "orders", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6}
        },
        "dataVersion": {"counter": 1, "timestamp": 2},
    }
    groups = {"subscriptionGroupTable": {"billing": {"groupName": "billing", "brokerId": 0}}}
    assert Definitions.parse(json.dumps(topics)).topics[0].read_queue_nums == 4
    assert Definitions.parse(json.dumps(groups)).groups[0].group_name == "billing"


def test_all_mistakes_are_told_with_their_places() -> None:
    assert _mistakes(
        {
            "topics": [
                {"topicName": "orders", "readQueNums": 4},
                {"topicName": "bills", "perm": "RW"},
                {"readQueueNums": 4},
                {"topicName": "no name!", "writeQueueNums": 0},
                "orders",
            ],
            "groups": {"groupName": "billing"},
            "users": [{"username": ""}],
            "acls": [{"subject": "shop"}],
            "grups": [],
        }
    ) == [
        "topics[0]: unknown key 'readQueNums'; did you mean readQueueNums?",
        "topics[1]: perm: Expected int, got str",
        "topics[2]: Object missing required field topicName",
        "topics[4]: expected an object, got a text",
        "groups: expected a list, got an object",
        "unknown key 'grups'; did you mean groups?",
        "topic 'no name!': The specified topic contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$",
        "topic 'no name!': expected writeQueueNums from 1 to 65536, got 0",
        "users: a user without a username",
        "acls: expected a subject such as User:alice, got 'shop'",
    ]


def test_a_name_may_occur_twice_only_for_different_brokers() -> None:
    first, second = (
        {"topicName": "orders", "brokers": ["a"]},
        {"topicName": "orders", "brokers": ["b"]},
    )
    assert len(Definitions.parse(json.dumps({"topics": [first, second]})).topics) == 2
    expected = ["topic 'orders': defined twice for the same broker"]
    assert _mistakes({"topics": [first, first]}) == expected
    assert _mistakes({"topics": [first, {"topicName": "orders"}]}) == expected
    assert _mistakes({"topics": [{"topicName": "orders"}, first]}) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "expected a JSON text"), ("[]", "expected an object with topics"), ("\xff", "JSON")],
)
def test_what_is_no_document_is_told(text: str, said: str) -> None:
    with pytest.raises(DefinitionsError, match=said):
        Definitions.parse(text.encode("latin-1"))


def test_many_mistakes_are_counted_and_not_all_shown() -> None:
    mistakes = _mistakes({"topics": [{"topicName": f"a b{number}"} for number in range(50)]})
    assert len(mistakes) == 50
    shown = str(DefinitionsError(mistakes))
    assert shown.startswith("50 mistakes in the definitions")
    assert "and 30 more" in shown
