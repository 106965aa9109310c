"""Puts the figures of ``benchmarks/results`` into docs/performance.md, between the marks that are there for them.

python tools/performance_page.py      after `make bench`
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "benchmarks" / "results"
OURS = "cometmq"
CLIENT_ROWS = {
    "send-64": "sends, 64 in flight, messages/s",
    "send-1": "blocking sends from one thread, messages/s",
    "batch-32": "batches of 32, messages/s",
    "push": "push consumer, empty listener, messages/s",
    "lite-pull": "lite pull consumer, messages/s",
}


def main() -> None:
    text = PAGE.read_text()
    for name, part in (
        ("brokers", brokers(_read("compare.json"))),
        ("clients", clients(_read("clients.json"))),
        ("steps", steps(_read("steps.json"))),
    ):
        text = fill(text, name, part)
    PAGE.write_text(text)
    shutil.copy(RESULTS / "compare.svg", PAGE.parent / "performance.svg")
    print(f"written: {PAGE.relative_to(ROOT)}")


def fill(text: str, name: str, part: str) -> str:
    """The text with what lies between the marks of a name exchanged."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    filled, count = pattern.subn(lambda found: f"{found[1]}{part}\n{found[2]}", text)
    if count != 1:
        raise SystemExit(f"{PAGE}: expected one part marked {name!r}, found {count}")
    return filled


def brokers(result: Mapping[str, Any]) -> str:
    systems = result["plan"]["systems"]
    others = [system for system in systems if system != OURS]
    goals = {goal["row"]: goal for goal in result["goals"]}
    lines = [["what", "unit", *systems, *(f"ours : {system}" for system in others), "goal"]]
    for name, row in result["rows"].items():
        medians = row["medians"]
        ours = medians.get(OURS)
        ratios = [
            f"{ours / medians[other]:.2f}" if medians.get(other) and ours else ""
            for other in others
        ]
        sign = "≤" if row["lower_is_better"] else "≥"
        goal = goals.get(name)
        verdict = (
            f"{sign} {goal['wanted']:g}: {goal['ratio']:.2f}, {'met' if goal['met'] else '**missed**'}"
            if goal
            else ""
        )
        values = [_number(medians.get(system)) for system in systems]
        lines.append([row["title"], row["unit"], *values, *ratios, verdict])
    machine, plan = result["machine"], result["plan"]
    note = (
        f"{machine['cores']} cores ({machine['cpu']}), Python {machine['python']}; "
        f"{plan['rounds']} rounds of {plan['seconds']:g} s, medians."
    )
    return f"{_table(lines)}\n\n{note}"


def clients(result: Mapping[str, Any]) -> str:
    makes = list(result["clients"])
    lines = [["what", *makes]]
    for name, title in CLIENT_ROWS.items():
        values = [_number(result["clients"][make].get(name, {}).get("rate")) for make in makes]
        lines.append([title, *values])
    for name, title in (("p50_ms", "p50"), ("p99_ms", "p99")):
        values = [_number(result["clients"][make].get("latency", {}).get(name)) for make in makes]
        lines.append([f"send to listener, {title}, ms", *values])
    return _table(lines)


def steps(result: Mapping[str, float]) -> str:
    lines = [["step", "µs"]]
    for name, microseconds in result.items():
        depth = (len(name) - len(name.lstrip())) // 2
        lines.append(["&nbsp;" * 4 * depth + name.strip(), f"{microseconds:.1f}"])
    return _table(lines)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _table(lines: list[list[str]]) -> str:
    head, *rest = lines
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *rest))


def _read(name: str) -> Any:
    path = RESULTS / name
    if not path.exists():
        raise SystemExit(f"{path} is not there; `make bench` makes it")
    return json.loads(path.read_text())


if __name__ == "__main__":
    main()
