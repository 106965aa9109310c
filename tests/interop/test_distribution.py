"""Which tests stay together when several workers share them."""

from __future__ import annotations

from .distribution import ALONE, BY_CLIENT, LONG, group_of, rank
from .servers import HERE, REPOSITORY


def test_tests_of_one_program_stay_together_and_the_others_go_anywhere() -> None:
    java = "tests/interop/test_java_client.py"
    assert group_of(f"{java}::test_java_client[4.9.8-JSON-send-sync]") == f"{java} 4.9.8"
    assert group_of(f"{java}::test_java_client[5.5.0-ROCKETMQ-send-sync]") == f"{java} 5.5.0"
    alone = "tests/interop/test_store_exchange.py::test_store_is_handed_on[rocketmq-4.9.7-a]"
    assert group_of(alone) == alone
    traces = ("tests/interop/test_trace.py", "tests/integration/client/test_trace.py")
    assert [group_of(f"{path}::test_it[4.9.8]") for path in traces] == list(traces)


def test_long_files_come_first() -> None:
    assert rank(LONG[0]) < rank(LONG[1]) < rank("test_of_no_length.py")


def test_all_files_that_are_named_are_there() -> None:
    places = (HERE, REPOSITORY / "tests" / "integration" / "client")
    there = {file.name for place in places for file in place.glob("test_*.py")}
    assert {*ALONE, *BY_CLIENT, *LONG} <= there
