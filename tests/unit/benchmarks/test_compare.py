"""What the comparison makes of its figures: choice of cases, medians, goals, table and picture."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from benchmarks.compare import picture, report
from benchmarks.compare.cases import (
    GOALS,
    OURS,
    PEAK_CASE,
    RIVAL,
    SYSTEMS,
    Goal,
    Metric,
    all_cases,
    chosen,
)
from benchmarks.compare.load import LoadFailed
from benchmarks.compare.outcome import JUDGED_TIMES, Outcome, Plan, Row
from benchmarks.compare.rounds import check_pulls
from benchmarks.compare.stolen import STOLEN_MAX


def outcome_of(figures: dict[str, tuple[float, float]], *, lower_is_better: bool) -> Outcome:
    outcome = Outcome()
    for name, (ours, theirs) in figures.items():
        for value in (ours * 0.5, ours, ours * 9):
            outcome.add(OURS, value, Row(name, name, "x", lower_is_better))
        outcome.add(RIVAL, theirs, Row(name, name, "x", lower_is_better))
    return outcome


def test_goals_name_rows_that_exist() -> None:
    rows = {case.row_name(metric) for case in all_cases() for metric in case.metrics}
    assert {goal.row for goal in GOALS} <= rows
    assert {goal.against_row for goal in GOALS if goal.against_row} <= rows
    assert PEAK_CASE in {case.name for case in all_cases()}


def test_rows_with_a_goal_get_more_rounds() -> None:
    plan = Plan(systems=SYSTEMS, cases=all_cases(), rounds=2, seconds=1, warm_seconds=1)
    judged = {case.name for case in all_cases() if plan.rounds_of(case) == 2 * JUDGED_TIMES}
    assert judged == {
        *(f"send-{size}-{how}" for size in ("128", "1k") for how in ("4x64", "4x256", "64x1")),
        *("batch32-128", "batch32-1k", "sync-1k-4x64", "latency-quarter", "latency-half"),
        *("pull-1k-1", "pull-1k-8", "pull-1k-8-tag", "pull-1k-8-sql"),
        *("topics-1", "topics-10000"),
        *("copied-not-1k-4x64", "copied-1k-4x64", "copied-sync-1k-4x64", "copied-sync-latency"),
        *("guarded-not-1k-4x64", "guarded-1k-4x64", "guarded-not-1k-64x1", "guarded-1k-64x1"),
    }
    assert {plan.rounds_of(case) for case in all_cases()} == {2, 2 * JUDGED_TIMES}


def test_rounds_that_only_a_goal_needs_are_for_those_it_compares() -> None:
    plan = Plan(systems=SYSTEMS, cases=[], rounds=2, seconds=1, warm_seconds=1)
    assert plan.systems_in(1) == list(SYSTEMS)
    assert plan.systems_in(2) == [OURS, RIVAL]


def test_pulls_come_before_anything_else_fills_the_log() -> None:
    modes = [case.mode for case in all_cases()]
    assert modes.index("send") > max(at for at, mode in enumerate(modes) if mode == "pull")


def test_pulls_that_bring_less_than_they_ask_for_do_not_count() -> None:
    check_pulls({"messages": 3200, "requests": 100})
    with pytest.raises(LoadFailed, match=r"8\.0 messages a pull, 32 were asked for"):
        check_pulls({"messages": 800, "requests": 100})


def test_rows_that_are_measured_again_take_the_place_of_those_before() -> None:
    plan = Plan(systems=SYSTEMS, cases=[], rounds=1, seconds=1, warm_seconds=1)
    before = outcome_of({"first": (10, 1), "second": (20, 1)}, lower_is_better=False)
    before.details = [{"case": "first", "busy": 0}, {"case": "second", "busy": 0}]
    kept = report.from_json(json.loads(json.dumps(report.as_json(before, plan, {}))))
    assert kept == before
    again = outcome_of({"first": (30, 1)}, lower_is_better=False)
    again.details = [{"case": "first", "busy": 1}]
    kept.take_over(again)
    assert {name: row.median(OURS) for name, row in kept.rows.items()} == {
        "first": 30,
        "second": 20,
    }
    assert kept.details == [{"case": "second", "busy": 0}, {"case": "first", "busy": 1}]


def test_case_names_are_unique() -> None:
    names = [case.name for case in all_cases()]
    assert len(names) == len(set(names))


def test_a_pattern_chooses_cases_and_a_paced_case_brings_its_peak() -> None:
    assert [case.name for case in chosen(all_cases(), ["pull-1k-*"], quick=True)] == [
        "pull-1k-1",
        "pull-1k-1-awake",
        "pull-1k-8",
        "pull-1k-8-tag",
        "pull-1k-8-sql",
    ]
    names = [case.name for case in chosen(all_cases(), ["latency-half"], quick=False)]
    assert names == [PEAK_CASE, "latency-half"]
    assert 0 < len(chosen(all_cases(), [], quick=True)) < len(all_cases())


def test_a_metric_is_found_by_its_path() -> None:
    assert Metric("receive_us.p99").of({"receive_us": {"p99": 7}}) == 7.0


@pytest.mark.parametrize(
    ("ours", "lower_is_better", "is_met"),
    [(50.0, False, True), (49.0, False, False), (50.0, True, True), (51.0, True, False)],
)
def test_a_goal_is_judged_by_medians(ours: float, lower_is_better: bool, is_met: bool) -> None:
    outcome = outcome_of({"a": (ours, 100.0)}, lower_is_better=lower_is_better)
    (verdict,) = report.judge(outcome, [Goal(row="a", ratio=0.5)])
    assert verdict.is_met is is_met


def test_rounds_that_the_host_disturbed_do_not_count_where_enough_others_are_left() -> None:
    row = Row("a", "a", "x", lower_is_better=False)
    for value, share in ((9.0, 0.5), (1.0, 0.0), (2.0, STOLEN_MAX)):
        row.add(OURS, value, share)
    assert row.counted(OURS) == [9.0, 1.0, 2.0]
    row.add(OURS, 3.0, 0.01)
    assert row.counted(OURS) == [1.0, 2.0, 3.0]
    assert row.median(OURS) == 2.0
    assert (row.counted(RIVAL), row.median(RIVAL)) == ([], None)


def test_a_goal_may_compare_two_rows_of_our_own() -> None:
    outcome = outcome_of({"a": (70.0, 1.0), "b": (100.0, 1.0)}, lower_is_better=False)
    (verdict,) = report.judge(outcome, [Goal(row="a", ratio=0.8, against_row="b")])
    assert (verdict.ratio, verdict.is_met) == (0.7, False)


@pytest.mark.parametrize(
    ("theirs", "rival_ratio", "is_met"),
    [(80.0, 0.8, True), (90.0, 0.9, True), (95.0, 0.95, False)],
)
def test_a_goal_may_ask_for_the_share_that_the_rival_keeps(
    theirs: float, rival_ratio: float, is_met: bool
) -> None:
    outcome = outcome_of({"a": (90.0, theirs), "b": (100.0, 100.0)}, lower_is_better=False)
    goal = Goal(row="a", ratio=0.85, against_row="b", is_rivals_too=True)
    (verdict,) = report.judge(outcome, [goal])
    assert (verdict.ratio, verdict.rival_ratio, verdict.is_met) == (0.9, rival_ratio, is_met)
    assert str(verdict) == f"0.85 and {RIVAL}'s {rival_ratio:.2f}: {'met' if is_met else 'MISSED'}"


def test_the_share_of_a_rival_that_was_not_measured_is_not_asked_for() -> None:
    outcome = Outcome()
    outcome.add(OURS, 90.0, Row("a", "a", "x", lower_is_better=False))
    outcome.add(OURS, 100.0, Row("b", "b", "x", lower_is_better=False))
    goal = Goal(row="a", ratio=0.85, against_row="b", is_rivals_too=True)
    (verdict,) = report.judge(outcome, [goal])
    assert (verdict.rival_ratio, verdict.is_met, str(verdict)) == (None, True, "0.85: met")


def test_what_a_slave_costs_is_compared_with_what_it_costs_the_rival() -> None:
    figures = {"copied-not-1k-4x64": (100.0, 200.0), "copied-1k-4x64": (90.0, 150.0)}
    outcome = outcome_of(figures, lower_is_better=False)
    plan = Plan(systems=SYSTEMS, cases=[], rounds=1, seconds=1, warm_seconds=1)
    goals = report.as_json(outcome, plan, {})["goals"]
    (goal,) = [goal for goal in goals if goal["row"] == "copied-1k-4x64"]
    assert goal == {
        "row": "copied-1k-4x64",
        "wanted": 0.85,
        "ratio": 0.9,
        "met": True,
        "rival_ratio": 0.75,
    }


def test_a_goal_without_figures_has_no_verdict() -> None:
    assert report.judge(Outcome(), [Goal(row="a", ratio=0.5)]) == []


def test_refusals_as_busy_are_told_beside_the_figures() -> None:
    outcome = Outcome()
    calm = {"case": "a", "system": OURS, "busy": 0, "requests": 9}
    outcome.details += [calm, calm | {"case": "b", "busy": 1200}]
    assert outcome.busy_notes() == ["cometmq, b: 1,200 requests refused as busy, 9 served"]


def test_the_table_has_medians_ratios_and_gaps() -> None:
    outcome = outcome_of({"pull-1k-1": (150.0, 100.0)}, lower_is_better=False)
    line = report.table(outcome, SYSTEMS).splitlines()[2]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == ["pull-1k-1", "x", "150", "100", "-", "1.50", "-", "≥ 3: MISSED"]


def test_the_kept_file_is_json_and_holds_every_round() -> None:
    outcome = outcome_of({"a": (2.0, 1.0)}, lower_is_better=False)
    plan = Plan(systems=SYSTEMS, cases=[], rounds=3, seconds=1, warm_seconds=1)
    kept = json.loads(json.dumps(report.as_json(outcome, plan, {})))
    assert kept["rows"]["a"]["values"][OURS] == [1.0, 2.0, 18.0]
    assert kept["rows"]["a"]["medians"] == {OURS: 2.0, RIVAL: 1.0}


def test_the_picture_is_well_formed_and_as_long_as_the_ratio() -> None:
    outcome = outcome_of({"a < b": (30.0, 20.0)}, lower_is_better=True)
    root = ElementTree.fromstring(picture.svg(outcome.rows.values(), [OURS, RIVAL]))
    bars = [
        float(rect.get("width", 0))
        for rect in root.findall("{*}rect")
        if rect.get("x") == str(picture.LABEL_WIDTH)
    ]
    assert bars == [1.5 * picture.UNIT_WIDTH, picture.UNIT_WIDTH]
    assert "a < b" in [text.text for text in root.findall("{*}text")]


def test_what_the_rival_keeps_may_be_told_without_being_judged() -> None:
    outcome = outcome_of({"a": (90, 95), "b": (100, 100)}, lower_is_better=False)
    goal = Goal(row="a", ratio=0.9, against_row="b", shows_rivals=True)
    (verdict,) = report.judge(outcome, [goal])
    assert verdict.is_met
    assert str(verdict) == f"0.9: met (ours keeps 0.90, {RIVAL} 0.95)"
