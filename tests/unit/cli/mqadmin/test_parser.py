"""Options as Commons CLI reads them."""

from __future__ import annotations

import pytest

from cometmq.base.errors import UsageError
from cometmq.cli.mqadmin.arguments import Arguments, milliseconds
from cometmq.cli.mqadmin.call import Call
from cometmq.cli.mqadmin.command import Command
from cometmq.cli.mqadmin.options import flag, needed, value
from cometmq.cli.mqadmin.parser import check_complete, parse


async def nothing(call: Call) -> None:
    raise AssertionError("only parsed")


COMMAND = Command(
    name="try",
    summary="Try.",
    run=nothing,
    options=(
        needed("t", "topic", "a topic"),
        value("b", "brokerAddr", "an address"),
        value("bn", "brokerName", "a name"),
        value("c", "clusterName", "a cluster"),
        value("o", "offset", "a number"),
        flag("m", "moreStats", "more"),
        flag("l", "list", "as a list"),
        value("", "attributes", "only long"),
    ),
    groups=(("b", "c"),),
)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("-t Orders", {"t": "Orders"}),
        ("-tOrders", {"t": "Orders"}),
        ("-t=Orders", {"t": "Orders"}),
        ("--topic Orders", {"t": "Orders"}),
        ("--topic=Orders", {"t": "Orders"}),
        ("--top Orders", {"t": "Orders"}),
        ("-topic Orders", {"t": "Orders"}),
        ("-topic=Orders", {"t": "Orders"}),
        ("-t a=b", {"t": "a=b"}),
        ("--topic=a=b", {"t": "a=b"}),
        ("-bn broker-a", {"bn": "broker-a"}),
        ("-bbroker-a", {"b": "broker-a"}),
        ("--brokerName broker-a", {"bn": "broker-a"}),
        ("-ml", {"m": "", "l": ""}),
        ("-mt Orders", {"m": "", "t": "Orders"}),
        ("-o -1", {"o": "-1"}),
        ("-t -z", {"t": "-z"}),
        ("-t -", {"t": "-"}),
        ("-t one -t two", {"t": "one"}),
        ("--attributes +a=b,-c", {"attributes": "+a=b,-c"}),
        ('-t "Orders"', {"t": "Orders"}),
        ("--json -t Orders --watch 5", {"json": "", "t": "Orders", "watch": "5"}),
        ("-h", {"h": ""}),
    ],
)
def test_ways_to_give_an_option(words: str, found: dict[str, str]) -> None:
    assert parse(COMMAND, words.split(" ")) == found


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("-x", "Unrecognized option: -x"),
        ("--nothing", "Unrecognized option: --nothing"),
        ("--broker x", "Ambiguous option: '--broker' (could be: --brokerAddr, --brokerName)"),
        ("-t", "Missing argument for option: t"),
        ("-t -m", "Missing argument for option: t"),
        ("-b -t x", "Missing argument for option: b"),
        ("-t x more", "expected an option, got the word 'more'"),
        ("--list=yes", "expected no value for the option --list, got 'yes'"),
        ("-mx", "Unrecognized option: -mx"),
        ("--js", "Unrecognized option: --js"),
        ("--", "Unrecognized option: --"),
    ],
)
def test_words_that_are_no_options(words: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(COMMAND, words.split())
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({"b": "x"}, "Missing required option: t"),
        ({}, "Missing required options: t, one of [-b (an address), -c (a cluster)]"),
        (
            {"t": "x", "b": "y", "c": "z"},
            "The option 'c' was specified but an option from this group",
        ),
    ],
)
def test_what_is_missing_or_too_much(found: dict[str, str], text: str) -> None:
    with pytest.raises(UsageError, match="option") as caught:
        check_complete(COMMAND, found)
    assert text in str(caught.value)


def test_values() -> None:
    args = Arguments({"t": " Orders ", "o": "17", "y": "TRUE", "e": "", "l": "a, b,,c"})
    assert (args.text("t"), args.raw("t")) == ("Orders", " Orders ")
    assert (args.text("e", "none"), args.text("z")) == ("none", None)
    assert (args.number("o", 3), args.number("z", 3)) == (17, 3)
    assert (args.truth("y", False), args.truth("z", True)) == (True, True)
    assert args.names("l") == ["a", "b", "c"]
    for wrong in (
        lambda: args.needed("e"),
        lambda: args.number("t"),
        lambda: args.number("o", low=18),
        lambda: args.truth("o"),
        lambda: args.time("t"),
    ):
        with pytest.raises(UsageError, match="expected"):
            wrong()


def test_times() -> None:
    assert milliseconds("0") == 0
    assert milliseconds("1779048900000") == 1779048900000
    moment = milliseconds("2026-05-17#20:15:00:250")
    assert moment % 1000 == 250
    assert milliseconds("2026-05-17 20:15:00") == moment - 250
    assert milliseconds("2026-05-17T20:15:01:250") == moment + 1000
    for text in ("yesterday", "2026-05-17", "2026-13-01#00:00:00:000", "1e3"):
        with pytest.raises(UsageError, match="expected a time"):
            milliseconds(text)
