"""The report stands alone and says what was promised and what came."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from tests.chaos.judge.history import Delivery, History, Send, Sighting
from tests.chaos.judge.outcome import Outcome, by_second, conclude, longest_gap, slow_seconds
from tests.chaos.plan.faults import Fault
from tests.chaos.plan.modes import MODES
from tests.chaos.run import command_again
from tests.chaos.show import report, summary

QUEUE = ("b1", 0)


def outcome(*, lost: bool, fault: Fault = Fault.KILL) -> Outcome:
    made = Outcome("cometmq", "async-flush", 7, "proxies", [fault], 3.0)
    made.inflicted = [{"kind": fault, "target": "b1", "began": 1.0, "ended": 2.0, "note": "a < b"}]
    made.roles = [(0.0, "b1", "master"), (1.0, "b1", "down"), (2.0, "b1", "master")]
    history = History(sends=[Send("sends", "sends/0/0", 0.5, 0.6, "SEND_OK", QUEUE, 0)])
    if not lost:
        history.deliveries.append(Delivery("sends", "sends/0/0", True, 0.7, QUEUE, 0))
    conclude(made, history, MODES["async-flush"], [fault])
    return made


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.urls += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "deep" / "chaos.html"
    report.write([outcome(lost=True), outcome(lost=False)], page, "python -m x < y")
    text = page.read_text()
    tags = Tags()
    tags.feed(text)
    assert all(url.startswith("#") for url in tags.urls)
    assert "1 of 2 trials broke a promise" in text
    assert "a &lt; b" in text
    assert "x &lt; y" in text
    assert text.count("<svg") == 2
    trials = json.loads(page.with_suffix(".json").read_text())["trials"]
    assert [trial["counts"]["lost"] for trial in trials] == [1, 0]
    assert [trial["gone"] for trial in trials] == [1, 0]


def test_only_what_was_promised_is_a_broken_promise() -> None:
    assert outcome(lost=True).broken == ["lost"]
    assert outcome(lost=True, fault=Fault.POWER_LOSS).is_good
    assert outcome(lost=False).is_good
    assert not Outcome("cometmq", "async-flush", 7, "proxies", [], 3.0, error="no end").is_good


def test_the_terminal_marks_broken_and_open_counts() -> None:
    assert summary.cell(outcome(lost=True), "lost") == "1!"
    assert summary.cell(outcome(lost=True, fault=Fault.POWER_LOSS), "lost") == "1*"
    assert summary.cell(outcome(lost=False), "lost") == "0"
    assert any("never came" in line for line in summary.lines([outcome(lost=True)]))


def test_the_terminal_shows_how_many_faults_there_were() -> None:
    head, row, *_ = summary.lines([outcome(lost=False)])
    assert head.split()[:4] == ["server", "mode", "faults", "acked"]
    assert row.split()[:4] == ["cometmq", "async-flush", "1", "1"]
    assert len(head) == len(row)
    longest = max(MODES, key=len)
    assert f"{longest} " in summary.lines([replace(outcome(lost=False), mode=longest)])[1]


def elected() -> Outcome:
    """Two kills of a master."""
    made = Outcome("cometmq", "controller", 7, "namespaces", [Fault.MASTER_KILL], 30.0)
    made.inflicted = [
        {
            "kind": Fault.MASTER_KILL,
            "target": "b1",
            "began": at,
            "ended": at + 2,
            "note": "b1 to b1s1",
        }
        for at in (5.0, 20.0)
    ]
    made.roles = [(0.0, "b1", "master 1"), (5.1, "b1s1", "master 2")]
    history = History(
        sends=[
            Send("sends", f"sends/0/{at}", at, at, "SEND_OK", QUEUE, 0)
            for at in (4.0, 4.9, 8.0, 19.5, 21.0, 22.5)
        ]
        + [
            Send("sends", "sends/1/0", 4.95, 5.5, "failed"),
            Send("sends", "sends/1/1", 5.5, 8.0, "SEND_OK", QUEUE, 0),
        ],
        sightings=[
            Sighting(0.0, "c1", "b1", 1, "b1:1", True),
            Sighting(5.5, "c1", "b1", 2, "b1s1:1", True),
        ],
    )
    conclude(made, history, MODES["controller"], [Fault.MASTER_KILL])
    return made


def test_elections_and_the_time_without_a_master_are_shown(tmp_path: Path) -> None:
    made = elected()
    assert [each["stood_still"] for each in made.inflicted] == [3.0, 1.5]
    assert (made.masterless_longest_seconds, made.masterless_seconds) == (11.5, 17.6)
    lines = summary.lines([made, outcome(lost=False)])
    assert "11.5 / 17.6" in lines[1]
    assert "2 master-kill: no send acknowledged for 2.2 s (median), 3.0 s (worst)" in lines[2]
    assert "; 1 of 3 sends meanwhile not acknowledged" in lines[2]
    assert "ended within 2.50 s" in lines[2]
    report.write([made], tmp_path / "chaos.html", "python -m x")
    text = (tmp_path / "chaos.html").read_text()
    assert "b1, epoch 2: b1s1:1 elected at 5.5 s" in text
    assert "3.0 s without a send  b1 to b1s1" in text
    assert "b1: master 1" in text


def test_where_nobody_elects_there_is_no_time_without_a_master() -> None:
    assert summary.masterless(outcome(lost=False)) == "–"
    assert summary.cell(outcome(lost=False), "two masters") == "–"
    assert summary.cell(elected(), "two masters") == "0"
    assert summary.standstills(outcome(lost=False)) == []


def test_the_command_that_repeats_a_run_has_its_seed_and_not_its_files() -> None:
    given = ["--profile", "ci", "--seed=3", "--report", "x y.html", "--keep", "there"]
    assert command_again(given, 3) == "python -m tests.chaos.run --profile ci --seed 3"
    assert command_again(["--faults", "kill"], 8).endswith(" --faults kill --seed 8")


def test_ninety_nine_of_a_hundred_sends_took_no_longer() -> None:
    sends = [Send("sends", str(n), 0.0, n / 100, "SEND_OK") for n in range(1, 101)]
    assert slow_seconds(sends) == 1.0
    assert slow_seconds(sends[:50]) == 0.5
    assert slow_seconds([]) == 0.0


def test_curves() -> None:
    assert by_second([0.1, 0.2, 2.9]) == [2, 0, 1]
    assert by_second([]) == []
    assert longest_gap([1.0, 2.0, 6.0, 9.0], until=7.0) == 4.0
    assert longest_gap([], until=7.0) == 7.0
