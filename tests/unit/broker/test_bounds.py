"""Each bound of a broker is reached once: what is answered, and that it is counted among the broker's figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.broker.rig import pull_ext

from cometmq.protocol.command import Command

MakeRig = Callable[..., Any]

SYSTEM_ERROR, SYSTEM_BUSY, NOT_FOUND, PARSE_FAILED = 1, 2, 19, 23


def reached(rig: Any) -> dict[str, str]:
    """The figures of GET_BROKER_RUNTIME_INFO about bounds."""
    table = rig.json(28)["table"]
    prefix = "boundReached_"
    return {key.removeprefix(prefix): value for key, value in table.items() if prefix in key}


def beat(rig: Any, *, peer: Any = None, client_id: str = "c", **groups: list[Any]) -> Any:
    consumers = [
        {"groupName": group, "subscriptionDataSet": wishes} for group, wishes in groups.items()
    ]
    return rig.ask(34, None, {"clientID": client_id, "consumerDataSet": consumers}, peer)


def wish(topic: str, text: str = "*", kind: str = "TAG", **more: Any) -> dict[str, Any]:
    return {
        "topic": topic,
        "subString": text,
        "subVersion": 5,
        "expressionType": kind,
        **more,
    }


def test_an_idle_broker_tells_of_no_bound(make_rig: MakeRig) -> None:
    assert reached(make_rig()) == {}


def test_topics_created_by_sends(make_rig: MakeRig) -> None:
    rig = make_rig(autoCreateTopicsMax="0")
    assert rig.send("New").code == 17
    assert reached(rig) == {"autoCreateTopicsMax": "1"}


def test_groups_created_by_use(make_rig: MakeRig) -> None:
    rig = make_rig(autoCreateGroupsMax="0")
    assert beat(rig, CG=[wish("T")]).code == 26
    assert reached(rig) == {"autoCreateGroupsMax": "1"}


def test_creations_of_one_connection(make_rig: MakeRig) -> None:
    rig = make_rig(autoCreatePerConnectionMax="1")
    assert rig.send("First").code == 0
    assert rig.send("Second").code == 17
    assert reached(rig) == {"autoCreatePerConnectionMax": "1"}


def test_creations_per_second(make_rig: MakeRig) -> None:
    rig = make_rig(autoCreatePerSecondMax="1")
    codes = {rig.send(f"T{number}").code for number in range(11)}
    assert codes == {0, SYSTEM_BUSY}
    assert reached(rig) == {"autoCreatePerSecondMax": "1"}


def test_groups_of_a_connection_and_of_all(make_rig: MakeRig) -> None:
    rig = make_rig(clientGroupsPerConnectionMax="1", clientMembershipsMax="1")
    assert beat(rig, A=[], B=[]).code == SYSTEM_ERROR
    assert beat(rig, A=[]).code == 0
    assert beat(rig, peer=rig.make_peer(2), A=[]).code == SYSTEM_BUSY
    assert reached(rig) == {"clientGroupsPerConnectionMax": "1", "clientMembershipsMax": "1"}


def test_the_length_of_a_client_id(make_rig: MakeRig) -> None:
    rig = make_rig(clientIdLengthMax="10")
    refused = beat(rig, client_id="x" * 11, CG=[])
    assert (refused.code, refused.remark) == (
        SYSTEM_ERROR,
        "a client's id may have at most 10 characters (clientIdLengthMax), not 11",
    )
    assert not rig.clients.consumers
    assert beat(rig, client_id="x" * 10, CG=[]).code == 0
    assert reached(rig) == {"clientIdLengthMax": "1"}


def test_subscriptions_of_a_connection(make_rig: MakeRig) -> None:
    rig = make_rig(clientSubscriptionsMax="3")
    two = [wish("A"), wish("B")]
    assert beat(rig, G=two).code == 0
    assert beat(rig, G=two).code == 0, "they are its own already"
    refused = beat(rig, H=two)
    assert refused.code == SYSTEM_ERROR
    assert "it would have 4" in refused.remark
    assert beat(rig, G=two[:1], H=two).code == 0
    assert reached(rig) == {"clientSubscriptionsMax": "1"}


def test_bytes_of_all_subscriptions(make_rig: MakeRig) -> None:
    rig = make_rig(clientSubscriptionBytesMax="2000")
    first, second = rig.make_peer(1), rig.make_peer(2)
    large = wish("T", "x" * 1000)
    assert beat(rig, peer=first, G=[large]).code == 0
    assert beat(rig, peer=second, G=[large]).code == SYSTEM_BUSY
    assert beat(rig, peer=first, G=[wish("T")]).code == 0
    assert beat(rig, peer=second, G=[large]).code == 0, "there is room again"
    rig.ports.closed(first)
    rig.ports.closed(second)
    assert rig.clients.subscription_bytes == 0
    assert reached(rig) == {"clientSubscriptionBytesMax": "1"}


def test_tags_of_a_subscription(make_rig: MakeRig) -> None:
    rig = make_rig(subscriptionTagsMax="2")
    rig.send("T")
    tags = ["a", "b", "c"]
    assert beat(rig, G=[wish("T", "a||b||c", tagsSet=tags)]).code == SYSTEM_ERROR
    pulled = rig.pull("T", 0, sysFlag="4", subscription="a||b||c")
    assert pulled.code == PARSE_FAILED
    assert "at most 2 tags in a subscription (subscriptionTagsMax), not 3" in pulled.remark
    assert reached(rig) == {"subscriptionTagsMax": "2"}


@pytest.mark.parametrize(
    ("setting", "value", "expression"),
    [
        ("filterExpressionLengthMax", "10", "a = 1 AND b = 2"),
        ("filterExpressionDepthMax", "2", "((a = 1))"),
        ("filterExpressionPartsMax", "6", "a = 1 AND b = 2"),
    ],
)
def test_expressions(make_rig: MakeRig, setting: str, value: str, expression: str) -> None:
    rig = make_rig(**{setting: value})
    rig.send("T")
    short = rig.pull("T", 0, sysFlag="4", subscription="a = 1", expressionType="SQL92")
    assert short.code != PARSE_FAILED
    pulled = rig.pull("T", 0, sysFlag="4", subscription=expression, expressionType="SQL92")
    assert pulled.code == PARSE_FAILED
    assert f"({setting})" in pulled.remark
    asked = {"subscriptionData": wish("T", expression, "SQL92"), "group": "G", "clientId": "c"}
    assert rig.ask(46, None, asked).code == PARSE_FAILED
    assert beat(rig, G=[wish("T", expression, "SQL92")]).code == 0, "its pulls find no filter"
    assert rig.filters.get("T", "G") is None
    assert reached(rig) == {setting: "3"}


def test_the_time_of_one_pull_for_its_expression(make_rig: MakeRig) -> None:
    """A pull of few messages that fit, in a queue of many that do not, gives up early and goes on with the next."""
    rig = make_rig(filterScanMicrosMax="100")
    for _ in range(50):
        rig.send("T", e="0")
    pulled = rig.pull("T", 0, sysFlag="4", subscription="a = 1", expressionType="SQL92")
    assert 1 <= int(pulled.ext["nextBeginOffset"]) < 50


def test_filters_of_all_groups(make_rig: MakeRig) -> None:
    rig = make_rig(consumerFiltersMax="1")
    beat(rig, G=[wish("T", "a = 1", "SQL92"), wish("U", "a = 1", "SQL92")])
    assert rig.filters.get("T", "G") is not None
    assert rig.filters.get("U", "G") is None
    beat(rig, G=[wish("T", "a = 2", "SQL92") | {"subVersion": 6}])
    assert rig.filters.get("T", "G").expression == "a = 2", "a changed one is no new one"
    assert reached(rig) == {"consumerFiltersMax": "1"}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("pullThreadPoolQueueCapacity", "1"),
        ("clientParkedRequestsMax", "1"),
        ("queueParkedPullsMax", "1"),
        ("parkedRequestBytesMax", "1024"),
    ],
)
def test_pulls_that_wait(make_rig: MakeRig, setting: str, value: str) -> None:
    rig = make_rig(**{setting: value})
    rig.send("T", e="0")
    peer = rig.make_peer(2)
    long = "x||" * 200 + "x"
    first = pull(rig, peer, long)
    assert first == []
    (answered,) = pull(rig, peer, long)
    assert answered.code == NOT_FOUND
    assert reached(rig) == {setting: "1"}


def pull(rig: Any, peer: Any, subscription: str) -> list[Any]:
    ext = pull_ext("T", 1, sysFlag="6", subscription=subscription)
    answers: list[Any] = rig.dispatch(Command(11, ext), peer)
    return answers


def test_messages_of_a_batch(make_rig: MakeRig) -> None:
    rig = make_rig(batchMessagesMax="2")
    elements = [(b"x", "")] * 3
    refused = rig.batch("T", *elements)
    assert refused.code == 13
    assert "(batchMessagesMax)" in refused.remark
    assert rig.batch("T", *elements[:2]).code == 0
    assert reached(rig) == {"batchMessagesMax": "1"}


def test_what_breaks_the_protocol_is_counted(make_rig: MakeRig) -> None:
    """Depth of JSON, sizes, counts and types that are fixed: the answer says what was wrong."""
    rig = make_rig()
    refused = rig.ask(34, None, b"[" * 500 + b"]" * 500)
    assert refused.code == SYSTEM_ERROR
    assert reached(rig) == {"malformed": "1"}


def test_requests_per_second_follow_the_settings_of_a_running_broker(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.live.update({"clientRequestsPerSecondMax": "5"})
    codes = [rig.ask(28).code for _ in range(7)]
    assert codes.count(SYSTEM_BUSY) == 2
    rig.live.update({"clientRequestsPerSecondMax": "0"})
    assert reached(rig) == {"clientRequestsPerSecondMax": "2"}
