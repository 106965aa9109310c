"""The table at the end of a run, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from tests.chaos.judge.outcome import Outcome
from tests.chaos.plan.faults import Fault
from tests.chaos.plan.modes import MODES, Count

OK = "SEND_OK"
NOTHING = "–"


def lines(outcomes: Iterable[Outcome]) -> list[str]:
    """``*`` marks a count that this run did not promise to be 0, ``!`` a promise that did not hold."""
    names = [count.value for count in Count]
    head = (
        f"{'server':<15}{'mode':<24}{'faults':>7}{'acked':>8}{'other':>7}{'masterless s':>14}"
        + "".join(f"{name:>12}" for name in names)
    )
    rows = [head]
    for outcome in outcomes:
        other = sum(outcome.sends.values()) - outcome.sends.get(OK, 0)
        row = (
            f"{outcome.server:<15}{outcome.mode:<24}{len(outcome.inflicted):>7}"
            f"{outcome.sends.get(OK, 0):>8}{other:>7}{masterless(outcome):>14}"
        )
        rows.append(row + "".join(f"{cell(outcome, name):>12}" for name in names))
        rows += [f"  {line}" for line in standstills(outcome)]
        rows += [f"  {outcome.mode}: {outcome.error}"] if outcome.error else []
        for name in outcome.broken:
            rows += [f"  {name}: {each}" for each in outcome.violations.get(name, [])[:5]]
    return rows


def cell(outcome: Outcome, name: str) -> str:
    if not MODES[outcome.mode].has(Count(name)):
        return NOTHING
    count = outcome.counts.get(name, 0)
    if name in outcome.broken:
        return f"{count}!"
    return f"{count}" if name in outcome.promised else f"{count}*"


def masterless(outcome: Outcome) -> str:
    """The longest time in which no broker of a group took messages, and all of them together."""
    if not MODES[outcome.mode].controllers:
        return NOTHING
    return f"{outcome.masterless_longest_seconds:.1f} / {outcome.masterless_seconds:.1f}"


def standstills(outcome: Outcome) -> list[str]:
    """For how long clients could not send under each kind of fault, where controllers elect."""
    if not MODES[outcome.mode].controllers:
        return []
    lines = []
    for kind in Fault:
        faults = [each for each in outcome.inflicted if each["kind"] == kind]
        if faults:
            still = [each["stood_still"] for each in faults]
            sends = sum(each["sends"] for each in faults)
            failed = sum(each["unacknowledged"] for each in faults)
            slow = max(each["slow_seconds"] for each in faults)
            lines.append(
                f"{len(faults)} {kind}: no send acknowledged for {median(still):.1f} s (median), "
                f"{max(still):.1f} s (worst); {failed} of {sends} sends meanwhile not acknowledged, "
                f"99 % of those under one fault ended within {slow:.2f} s"
            )
    return lines
