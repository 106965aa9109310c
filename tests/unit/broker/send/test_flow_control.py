from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cometmq.broker.config.config_slices import FlowControlConfig
from cometmq.broker.send.flow_control import FlowControl
from cometmq.protocol.command import Command

SEND, PULL, LITE_PULL, HEARTBEAT, ADMIN = 310, 11, 361, 34, 17
POP, ACK, END_TRANSACTION = 200050, 200051, 37


def busy(flow: FlowControl, lag_ms: int, waiting: int = 0) -> None:
    """Too much to do for longer than a moment."""
    flow.measured(lag_ms, waiting)
    flow.measured(lag_ms, waiting)


def test_a_calm_broker_refuses_nothing() -> None:
    flow = FlowControl(FlowControlConfig())
    busy(flow, 200)
    assert [flow.refusal(code) for code in (SEND, PULL, HEARTBEAT, ADMIN)] == [None] * 4


def test_each_kind_of_request_has_its_own_patience() -> None:
    flow = FlowControl(FlowControlConfig())
    busy(flow, 201, 3)
    assert flow.refusal(SEND) == (
        "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
        "period in queue: 201ms, size of queue: 3"
    )
    assert flow.refusal(PULL) is None
    busy(flow, 5001)
    assert flow.refusal(PULL) is not None
    assert flow.refusal(LITE_PULL) is not None
    assert flow.refusal(HEARTBEAT) is None
    assert [flow.refusal(code) is None for code in (POP, END_TRANSACTION, ACK)] == [False] * 3
    busy(flow, 3001)
    assert [flow.refusal(code) is None for code in (POP, END_TRANSACTION, ACK)] == [
        *(True, False, False)
    ]
    busy(flow, 31_001)
    assert flow.refusal(HEARTBEAT) is not None
    assert flow.refusal(ADMIN) is None


def test_it_passes_when_the_loop_is_in_time_again() -> None:
    flow = FlowControl(FlowControlConfig())
    busy(flow, 5000)
    flow.measured(1, 0)
    assert flow.refusal(SEND) is None


def test_what_waited_behind_a_slow_append_is_told_so() -> None:
    flow = FlowControl(FlowControlConfig())
    flow.append_took(1000)
    assert flow.refusal(SEND) is None
    flow.append_took(1001)
    text = flow.refusal(SEND)
    assert text is not None
    assert text.startswith(
        "[PCBUSY_CLEAN_QUEUE]broker busy, start flow control for a while, period"
    )
    assert flow.refusal(PULL) is None
    flow.measured(1200, 0)
    assert flow.refusal(SEND) is None, "what waited behind it has been answered by now"


def test_a_single_stall_is_over_when_it_is_noticed() -> None:
    flow = FlowControl(FlowControlConfig())
    flow.measured(900, 0)
    assert flow.refusal(SEND) is None
    assert flow.lag_ms == 900
    flow.measured(0, 0)
    flow.measured(900, 0)
    assert flow.refusal(SEND) is None
    flow.measured(300, 0)
    assert "period in queue: 300ms" in (flow.refusal(SEND) or "")


def test_too_many_replies_that_wait_for_the_disk_are_an_overload() -> None:
    flow = FlowControl(FlowControlConfig(sends_waiting_max=2))
    assert flow.overload(1) is None
    assert flow.overload(2) == "[OVERLOAD]system busy, start flow control for a while"


def test_fast_failure_can_be_switched_off_while_running(make_peer: Callable[..., Any]) -> None:
    flow = FlowControl(FlowControlConfig())
    busy(flow, 999)
    request = Command(code=SEND, opaque=9)
    refusal = flow.guard(make_peer(), request)
    assert refusal is not None
    assert (refusal.code, refusal.opaque) == (2, 9)
    flow.apply(FlowControlConfig(fast_failure=False))
    assert flow.guard(make_peer(), request) is None


def test_what_is_not_on_disk_is_bounded_by_files_of_the_log() -> None:
    config = FlowControlConfig(has_unflushed_limit=True, unflushed_files_max=3, fast_failure=False)
    flow = FlowControl(config, log_file_bytes=100)
    assert (flow.unflushed_files_left, flow.is_calm) == (3, True)
    flow.measured(0, 0, 299)
    assert (flow.unflushed_files_left, flow.is_calm, flow.refusal(SEND)) == (1, True, None)
    flow.measured(0, 0, 300)
    assert (flow.unflushed_files_left, flow.is_calm) == (0, False)
    assert flow.refusal(SEND) == (
        "[REJECTREQUEST]system busy, start flow control for a while, bytes not on disk: 300"
    )
    assert flow.refusal(PULL) is None
    flow.measured(0, 0, 10)
    assert flow.is_calm
    flow.measured(0, 0, 10**12)
    flow.apply(FlowControlConfig())
    assert (flow.unflushed_files_left, flow.is_calm) == (2**31 - 1, True)
