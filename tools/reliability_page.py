"""Puts what the chaos harness has measured into docs/reliability.md, between the marks that are there for it.

python -m tools.reliability_page --modes build/chaos-modes.json --fifty build/chaos-fifty.json
python -m tools.reliability_page --picture build/chaos.json

A report that is given is kept in ``tests/chaos/results``, without curves and single faults; the page is written from
what is there. Without a report it is written again, as after a change of the promises.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from tests.chaos.judge.elections import Election
from tests.chaos.judge.outcome import Outcome
from tests.chaos.plan.faults import Fault
from tests.chaos.plan.modes import ALWAYS, MODES, Count, Mode
from tests.chaos.plan.profiles import PAGE_FAULTS, PAGE_MODES
from tests.chaos.show.time_line import draw
from tools.performance_page import fill

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "reliability.md"
PICTURE: Final = ROOT / "docs" / "elections.svg"
RESULTS: Final = ROOT / "tests" / "chaos" / "results"
OURS: Final = "cometmq"
OF_THE_MODES: Final = "modes"
NOT_MEASURED: Final = "Not measured yet."
WITH_FIGURES: Final = ("fifty", "ten", "hour", "controller", "controller-hour")

HEADS: Final = {
    Fault.ROLLING: "1 stopped",
    Fault.KILL: "2 killed",
    Fault.POWER_LOSS: "3, 4 crash or power loss, comes back as what it was",
    Fault.FAIL_OVER: "3, 4 and another is made master",
    Fault.DISK_LOST: "5, 6 gone for ever",
}
COUNTED: Final = (Count.LOST, Count.MISSING, *sorted(ALWAYS))
COUNTED_IN_ELECTIONS: Final = (
    Count.LOST,
    Count.MISSING,
    Count.DIVERGED,
    Count.TWO_MASTERS,
    Count.EPOCH_BACK,
)

SVG: Final = '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="11" '

Trial = Mapping[str, Any]
Result = Mapping[str, Any]


def main() -> None:
    given = vars(_parser().parse_args())
    picture = given.pop("picture")
    if picture is not None:
        report = json.loads(Path(picture).read_text(encoding="utf-8"))
        PICTURE.write_text(draw_first(report["trials"]) + "\n", encoding="utf-8")
        print(f"written: {PICTURE.relative_to(ROOT)}")
    for name, report in given.items():
        if report is not None:
            kept = strip(json.loads(Path(report).read_text(encoding="utf-8")))
            RESULTS.mkdir(exist_ok=True)
            _file_of(name).write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8"), stored()), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")


def draw_first(trials: Sequence[Trial]) -> str:
    """The first trial as a picture of its own. Pages have a white or a dark ground, so it brings its own."""
    outcome = Outcome(**trials[0])
    outcome.elections = [Election(*each) for each in trials[0]["elections"]]
    head, rest = draw(outcome).split(">", 1)
    size = head.partition('viewBox="0 0 ')[2].partition('"')[0].split()
    ground = f'<rect width="{size[0]}" height="{size[1]}" fill="#fff"/>'
    return f"{head.replace('<svg ', SVG, 1)}>{ground}{rest}"


def stored() -> dict[str, Result]:
    """What was measured last, by profile."""
    names = (OF_THE_MODES, *WITH_FIGURES)
    return {
        name: json.loads(_file_of(name).read_text(encoding="utf-8"))
        for name in names
        if _file_of(name).exists()
    }


def strip(report: Mapping[str, Any]) -> dict[str, Any]:
    """What the page needs of a report that the harness wrote."""
    return {
        "command": report["command"],
        "trials": [_strip_trial(trial) for trial in report["trials"] if trial["server"] == OURS],
    }


def render(text: str, results: Mapping[str, Result]) -> str:
    text = fill(text, "modes", modes_part(results.get(OF_THE_MODES)))
    rows = [
        (name, trial)
        for name in WITH_FIGURES
        if name in results
        for trial in results[name]["trials"]
    ]
    elected = [row for row in rows if MODES[row[1]["mode"]].controllers]
    text = fill(text, "elections", elections_part(elected))
    others = [row for row in rows if row not in elected]
    commands = [results[name]["command"] for name in WITH_FIGURES if name in results]
    return fill(text, "figures", figures_part(others, commands))


def modes_part(result: Result | None) -> str:
    """Modes × kinds of failure: what is promised, and what was measured."""
    trials: Sequence[Trial] = result["trials"] if result else ()
    lines = [["`flushDiskType`, `brokerRole`", *(HEADS[fault] for fault in PAGE_FAULTS)]]
    for name in PAGE_MODES:
        mode = MODES[name]
        lines.append([title(mode), *(cell(mode, fault, trials) for fault in PAGE_FAULTS)])
    table = _table(lines, ":---")
    if result is None:
        return table
    wrong = ", ".join(f"{_sum(trials, count)} {count}" for count in sorted(ALWAYS))
    return f"{table}\n\n`{result['command']}`. All trials together: {wrong}."


def title(mode: Mode) -> str:
    if mode.controllers:
        return f"{mode.flush}, {mode.what.partition(',')[0]}"
    slaves = "without slaves" if not mode.slaves else "with a slave"
    return f"{mode.flush}, {mode.role} {slaves}"


def cell(mode: Mode, fault: Fault, trials: Iterable[Trial]) -> str:
    if not mode.fits(fault):
        return "–"
    found = [each for each in trials if (each["mode"], each["faults"]) == (mode.name, [fault])]
    inflicted = sum(each["inflicted"] for each in found)
    promise = mode.may_lose(fault) or "kept"
    if not inflicted:
        return f"{promise} (not measured)"
    gone = sum(each["gone"] for each in found)
    if any(each["error"] for each in found):
        promise = f"{promise}, **but a trial came to no end**"
    elif gone and fault in mode.survives:
        promise = "**promised to be kept**"
    acknowledged = sum(each["acknowledged"] for each in found)
    return f"{promise} ({gone:,} of {acknowledged:,} lost, {inflicted} faults)"


def figures_part(rows: Sequence[tuple[str, Trial]], commands: Sequence[str]) -> str:
    """The long runs, trial by trial, with the profile of each, and the commands that repeat them."""
    if not rows:
        return NOT_MEASURED
    lines = [
        [
            "profile, mode",
            "faults",
            "acknowledged",
            *COUNTED,
            "s without a send",
            "s without a delivery",
            "seed",
        ]
    ]
    lines += [_figures(name, trial) for name, trial in rows]
    listed = "\n".join(commands)
    return f"{_table(lines, '---:')}\n\n```text\n{listed}\n```"


def elections_part(rows: Sequence[tuple[str, Trial]]) -> str:
    """The long runs of modes with controllers, trial by trial, with the profile of each."""
    if not rows:
        return NOT_MEASURED
    lines = [
        [
            "profile, mode",
            "faults",
            "elections",
            "acknowledged",
            *COUNTED_IN_ELECTIONS,
            "s without a writable master: longest, in all",
            "s without a send under a fault: median, worst",
            "seed",
        ]
    ]
    for name, trial in rows:
        masterless, stood_still = trial["masterless_seconds"], trial["stood_still_seconds"]
        lines.append(
            [
                *_what(name, trial),
                str(trial["elections"]),
                f"{trial['acknowledged']:,}",
                *(_count(trial, count) for count in COUNTED_IN_ELECTIONS),
                f"{masterless[0]:.1f}, {masterless[1]:.1f}",
                f"{stood_still[0]:.1f}, {stood_still[1]:.1f}",
                str(trial["seed"]),
            ]
        )
    return _table(lines, "---:")


def _what(profile: str, trial: Trial) -> list[str]:
    kinds = trial["kinds"]
    faults = f"{trial['inflicted']} {kinds[0] if len(kinds) == 1 else f'of {len(kinds)} kinds'}"
    error = f", **no end**: {trial['error']}" if trial["error"] else ""
    return [f"{profile}, {trial['mode']}{error}", faults]


def _figures(profile: str, trial: Trial) -> list[str]:
    return [
        *_what(profile, trial),
        f"{trial['acknowledged']:,}",
        *(_count(trial, count) for count in COUNTED),
        f"{trial['send_gap_seconds']:.1f}",
        f"{trial['delivery_gap_seconds']:.1f}",
        str(trial["seed"]),
    ]


def _count(trial: Trial, count: Count) -> str:
    value = trial["counts"].get(count, 0)
    if not value:
        return "0"
    return f"**{value:,}**" if count in trial["promised"] else f"{value:,}, not promised"


def _strip_trial(trial: Trial) -> dict[str, Any]:
    kept = ("mode", "seed", "faults", "counts", "promised", "gone")
    gaps = ("send_gap_seconds", "delivery_gap_seconds")
    stripped = {
        **{name: trial[name] for name in (*kept, *gaps, "error")},
        "inflicted": len(trial["inflicted"]),
        "kinds": sorted({fault["kind"] for fault in trial["inflicted"]}),
        "acknowledged": trial["sends"].get("SEND_OK", 0),
    }
    if not MODES[trial["mode"]].controllers:
        return stripped
    seconds = [fault["stood_still"] for fault in trial["inflicted"]] or [0.0]
    return stripped | {
        "elections": len(trial["elections"]),
        "masterless_seconds": [trial["masterless_longest_seconds"], trial["masterless_seconds"]],
        "stood_still_seconds": [median(seconds), max(seconds)],
    }


def _sum(trials: Iterable[Trial], count: Count) -> int:
    return sum(trial["counts"].get(count, 0) for trial in trials)


def _table(lines: Sequence[Sequence[str]], align: str) -> str:
    head, *rest = lines
    rule = [":---", *(align for _ in head[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *rest))


def _file_of(profile: str) -> Path:
    return RESULTS / f"{profile}.json"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.reliability_page",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name in (OF_THE_MODES, *WITH_FIGURES):
        parser.add_argument(
            f"--{name}", dest=name, metavar="JSON", help=f"a report of --profile {name}"
        )
    parser.add_argument(
        "--picture", metavar="JSON", help="a report whose first trial becomes docs/elections.svg"
    )
    return parser


if __name__ == "__main__":
    main()
