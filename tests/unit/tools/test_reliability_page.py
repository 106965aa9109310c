"""The page about what is never lost: promises of the modes beside what reports of the chaos harness say."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.chaos.judge.outcome import Outcome
from tests.chaos.plan.faults import Fault
from tests.chaos.plan.modes import MODES
from tools import reliability_page
from tools.reliability_page import (
    NOT_MEASURED,
    cell,
    draw_first,
    elections_part,
    figures_part,
    modes_part,
    render,
    strip,
)


def trial(mode: str, *faults: Fault, gone: int = 0, times: int = 4, **values: Any) -> Any:
    counts = {"lost": gone, "missing": 0, "altered": 0, "phantom": 0, "diverged": 0}
    return {
        "mode": mode,
        "seed": 7,
        "faults": list(faults),
        "counts": counts | values.pop("counts", {}),
        "promised": sorted(MODES[mode].promised(faults)),
        "gone": gone,
        "send_gap_seconds": 3.14,
        "delivery_gap_seconds": 4.0,
        "error": "",
        "inflicted": times,
        "kinds": sorted(faults),
        "acknowledged": 2000,
        **values,
    }


def test_a_cell_is_a_promise_and_what_was_measured() -> None:
    mode = MODES["async-flush"]
    trials = [trial("async-flush", Fault.KILL), trial("async-flush", Fault.POWER_LOSS, gone=12)]
    assert cell(mode, Fault.KILL, trials) == "kept (0 of 2,000 lost, 4 faults)"
    lossy = cell(mode, Fault.POWER_LOSS, trials)
    assert lossy == "the last ones may be lost (12 of 2,000 lost, 4 faults)"
    assert cell(mode, Fault.FAIL_OVER, trials) == "–"


def test_trials_of_a_cell_are_added_up_and_no_others() -> None:
    trials = [
        trial("async-flush", Fault.KILL),
        trial("async-flush", Fault.KILL, times=50),
        trial("async-flush", Fault.KILL, Fault.POWER_LOSS, gone=9),
        trial("sync-flush", Fault.KILL, gone=9),
    ]
    text = cell(MODES["async-flush"], Fault.KILL, trials)
    assert text == "kept (0 of 4,000 lost, 54 faults)"


def test_a_broken_promise_is_not_called_kept() -> None:
    mode = MODES["sync-master"]
    broken = cell(mode, Fault.DISK_LOST, [trial("sync-master", Fault.DISK_LOST, gone=1)])
    assert broken == "**promised to be kept** (1 of 2,000 lost, 4 faults)"
    failed = cell(mode, Fault.KILL, [trial("sync-master", Fault.KILL, error="ServerFailed")])
    assert "**but a trial came to no end**" in failed


def test_what_was_not_measured_is_said_so() -> None:
    assert cell(MODES["sync-flush"], Fault.DISK_LOST, []).endswith("(not measured)")
    without_faults = [trial("sync-flush", Fault.KILL, times=0)]
    assert cell(MODES["sync-flush"], Fault.KILL, without_faults) == "kept (not measured)"


def test_the_table_has_every_mode_and_the_counts_that_are_always_0() -> None:
    measured = trial("sync-flush", Fault.KILL, counts={"phantom": 2})
    lines = modes_part({"command": "run it", "trials": [measured]}).splitlines()
    assert len(lines) == 2 + 9 + 2
    assert {line.count("|") for line in lines[:11]} == {7}
    assert lines[8].startswith("| ASYNC_FLUSH, three replicas under a controller | kept (not meas")
    assert lines[-1] == "`run it`. All trials together: 0 altered, 0 diverged, 2 phantom."


def test_figures_show_each_trial_and_how_to_repeat_it() -> None:
    trials = [
        trial("async-flush", Fault.KILL, times=50),
        trial("sync-flush", Fault.KILL, Fault.CUT, times=80, counts={"missing": 3}),
        trial("async-master", Fault.FAIL_OVER, counts={"missing": 1234}),
    ]
    text = figures_part([("fifty", each) for each in trials], ["run it --seed 7"])
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in text.splitlines()[2:5]]
    times, open_count = ["3.1", "4.0", "7"], "1,234, not promised"
    assert rows == [
        ["fifty, async-flush", "50 kill", "2,000", "0", "0", "0", "0", "0", *times],
        ["fifty, sync-flush", "80 of 2 kinds", "2,000", "0", "**3**", "0", "0", "0", *times],
        ["fifty, async-master", "4 fail-over", "2,000", "0", open_count, "0", "0", "0", *times],
    ]
    assert text.endswith("```text\nrun it --seed 7\n```")


ELECTED: dict[str, Any] = {
    "elections": 51,
    "masterless_seconds": [2.5, 30.0],
    "stood_still_seconds": [0.31, 2.5],
}


def test_elections_have_a_table_of_their_own() -> None:
    assert elections_part([]) == figures_part([], []) == NOT_MEASURED
    one = trial("controller", Fault.MASTER_KILL, times=50, counts={"two masters": 1}, **ELECTED)
    *_, row = elections_part([("fifty", one)]).splitlines()
    cells = [part.strip() for part in row.split("|")[1:-1]]
    assert cells[:4] == ["fifty, controller", "50 master-kill", "51", "2,000"]
    assert cells[4:] == ["0", "0", "0", "**1**", "0", "2.5, 30.0", "0.3, 2.5", "7"]
    page = "<!-- modes -->\n<!-- end -->\n<!-- elections -->\n<!-- end -->\n<!-- figures -->\n<!-- end -->\n"
    other = trial("async-flush", Fault.KILL)
    text = render(page, {"fifty": {"command": "run it", "trials": [one, other]}})
    assert text.count("fifty, controller") == text.count("fifty, async-flush") == 1


def test_a_report_of_elections_is_stripped() -> None:
    ours = Outcome("cometmq", "controller", 7, "namespaces", [Fault.MASTER_KILL], 20.0)
    ours.inflicted = [
        {"kind": "master-kill", "stood_still": seconds} for seconds in (0.2, 0.4, 3.0)
    ]
    ours.masterless_longest_seconds, ours.masterless_seconds = 2.5, 4.0
    [one] = strip({"command": "run it", "trials": [asdict(ours)]})["trials"]
    assert one["stood_still_seconds"] == [0.4, 3.0]
    assert one["masterless_seconds"] == [2.5, 4.0]
    assert one["elections"] == 0


def test_a_report_of_the_harness_is_stripped() -> None:
    ours = Outcome("cometmq", "async-flush", 7, "proxies", [Fault.KILL], 20.0)
    ours.sends = {"SEND_OK": 12, "failed": 3}
    ours.sent_by_second = [1, 2, 3]
    ours.inflicted = [{"kind": "kill"}] * 4
    theirs = Outcome("rocketmq-5.5.0", "async-flush", 7, "proxies", [Fault.KILL], 20.0)
    kept = strip({"command": "run it", "trials": [asdict(ours), asdict(theirs)]})
    [one] = kept["trials"]
    assert (one["inflicted"], one["kinds"], one["acknowledged"]) == (4, ["kill"], 12)
    assert not {"sent_by_second", "roles", "violations"} & set(one)
    assert set(one) == set(trial("async-flush", Fault.KILL))


def test_only_the_marked_parts_of_the_page_change() -> None:
    elections = "<!-- elections -->\n<!-- end -->\n"
    page = (
        f"a\n<!-- modes -->\nold\n<!-- end -->\nb\n{elections}<!-- figures -->\n<!-- end -->\nc\n"
    )
    text = render(page, {})
    assert render(text, {}) == text
    assert "old" not in text
    assert [line for line in text.splitlines() if line in "abc"] == ["a", "b", "c"]
    with pytest.raises(SystemExit, match="expected one part marked 'modes', found 0"):
        render("nothing", {})


def test_the_page_is_what_modes_and_results_say() -> None:
    page = reliability_page.PAGE.read_text()
    assert render(page, reliability_page.stored()) == page, "run python -m tools.reliability_page"


def test_the_first_trial_becomes_a_picture_of_its_own() -> None:
    trial = {
        "server": "cometmq",
        "mode": "controller",
        "seed": 1,
        "network": "namespaces",
        "faults": ["master-kill"],
        "seconds": 4.0,
        "sent_by_second": [1, 2, 3, 4],
        "roles": [[0.0, "b1", "master 1"], [2.0, "b1", "down"]],
        "elections": [[0.0, "b", 1, "10.0.0.1:10911"], [2.5, "b", 2, "10.0.0.2:10911"]],
    }
    picture = ElementTree.fromstring(draw_first([trial]))
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    titles = [title.text for title in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert "b1: down" in titles
    assert "b, epoch 2: 10.0.0.2:10911 elected at 2.5 s" in titles
