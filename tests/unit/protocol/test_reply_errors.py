"""Every response code has its exception; refusals carry what the dispatcher needs."""

from __future__ import annotations

import pickle

import pytest

from cometmq.protocol.codes import ResponseCode
from cometmq.protocol.command import Command
from cometmq.protocol.refusal import Refused
from cometmq.protocol.reply_errors import ERRORS, BrokerReplyError, UnknownReply, error_for

# What RocketMQ's producer sends again, those of version 5 included, and its flow control.
RETRYABLE = {1, 2, 14, 16, 17, 204, 205, 215, 1500}


@pytest.mark.parametrize("code", [code for code in ResponseCode if code != ResponseCode.SUCCESS])
def test_every_code_has_a_class_of_its_own(code: ResponseCode) -> None:
    error = error_for(Command(code=code, remark="why", flag=1), "10.0.0.1:10911")
    assert type(error) is ERRORS[code]
    assert type(error) is not UnknownReply
    assert (error.code, error.remark, error.address) == (code, "why", "10.0.0.1:10911")
    assert str(error) == f"10.0.0.1:10911 answered {int(code)} ({code.name}): why"
    assert error.retryable == (code in RETRYABLE)
    assert type(error).__doc__


def test_no_two_classes_share_a_code() -> None:
    classes = [cls for cls in BrokerReplyError.__subclasses__() if cls.CODE is not None]
    assert len({cls.CODE for cls in classes}) == len(classes) == len(ResponseCode) - 1


def test_an_unknown_code_is_never_retried() -> None:
    error = error_for(Command(code=2017), "b:1")
    assert type(error) is UnknownReply
    assert not error.retryable
    assert not error.route_is_stale
    assert str(error) == "b:1 answered 2017 (unknown code): no remark"


def test_a_missing_topic_makes_the_route_stale() -> None:
    assert error_for(Command(code=ResponseCode.TOPIC_NOT_EXIST), "b:1").route_is_stale
    assert not error_for(Command(code=ResponseCode.SYSTEM_BUSY), "b:1").route_is_stale


def test_errors_can_cross_processes() -> None:
    error = pickle.loads(pickle.dumps(error_for(Command(code=17, remark="r"), "b:1")))
    assert (error.code, error.remark, error.address) == (17, "r", "b:1")


def test_a_refusal_carries_the_reply() -> None:
    refusal = Refused(ResponseCode.NO_PERMISSION, "forbidden", {"MSG_REGION": "x"})
    assert (refusal.code, refusal.remark, refusal.ext) == (16, "forbidden", {"MSG_REGION": "x"})
    assert str(refusal) == "16: forbidden"
