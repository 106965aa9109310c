"""The tables of codes: numbers are RocketMQ's, names appear once, classes are named by their role."""

from __future__ import annotations

import pytest
from tests.protocol_registry import (
    REPLY_BODIES,
    REPLY_HEADERS,
    REQUEST_BODIES,
    REQUEST_HEADERS,
)

from cometmq.protocol.codes import LanguageCode, RequestCode, ResponseCode
from cometmq.protocol.fields import Header

WITHOUT_REQUEST_CONTENT = {
    RequestCode.GET_BROKER_CONFIG,
    RequestCode.GET_BROKER_RUNTIME_INFO,
    RequestCode.GET_ALL_CONSUMER_OFFSET,
    RequestCode.GET_ALL_DELAY_OFFSET,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO,
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG,
    RequestCode.GET_TIMER_CHECK_POINT,
    RequestCode.GET_SINK_LANES,
    RequestCode.GET_ACCOUNTS,
    RequestCode.GET_TIMER_METRICS,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
    RequestCode.CLEAN_UNUSED_TOPIC,
    RequestCode.GET_ALL_PRODUCER_INFO,
    RequestCode.DELETE_EXPIRED_COMMITLOG,
    RequestCode.GET_ALL_MESSAGE_REQUEST_MODE,
    RequestCode.GET_BROKER_HA_STATUS,
    RequestCode.GET_BROKER_EPOCH_CACHE,
    RequestCode.GET_COLD_DATA_FLOW_CTR_INFO,
    RequestCode.GET_BROKER_LITE_INFO,
    RequestCode.GET_BROKER_CLUSTER_INFO,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS,
    RequestCode.GET_UNIT_TOPIC_LIST,
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
    RequestCode.GET_NAMESRV_CONFIG,
    RequestCode.CONTROLLER_GET_METADATA_INFO,
    RequestCode.GET_CONTROLLER_CONFIG,
    RequestCode.POP_ROLLBACK,
}
PROPERTIES_AS_BODY = {
    RequestCode.UPDATE_BROKER_CONFIG,
    RequestCode.UPDATE_NAMESRV_CONFIG,
    RequestCode.UPDATE_CONTROLLER_CONFIG,
    RequestCode.UPDATE_COLD_DATA_FLOW_CTR_CONFIG,
    RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG,
}


@pytest.mark.parametrize("code", RequestCode)
def test_every_request_is_typed_or_known_to_be_bare(code: RequestCode) -> None:
    is_typed = code in REQUEST_HEADERS or code in REQUEST_BODIES
    assert is_typed != (code in WITHOUT_REQUEST_CONTENT | PROPERTIES_AS_BODY)


def test_header_classes_are_named_by_their_role() -> None:
    assert all(cls.__name__.endswith(("Header", "HeaderV2")) for cls in REQUEST_HEADERS.values())
    assert all(cls.__name__.endswith("Reply") for cls in REPLY_HEADERS.values())


def test_every_header_class_is_listed() -> None:
    listed = {*REQUEST_HEADERS.values(), *REPLY_HEADERS.values()}
    declared = {cls for cls in Header.__subclasses__() if "protocol.headers" in cls.__module__}
    assert {cls.__name__ for cls in declared - listed} == {"PullForbiddenReply"}


def test_replies_with_bodies_belong_to_known_requests() -> None:
    assert set(REPLY_BODIES) <= set(RequestCode)


def test_enums_have_no_aliases() -> None:
    for enum in (RequestCode, ResponseCode, LanguageCode):
        assert len(enum) == len(enum.__members__)
