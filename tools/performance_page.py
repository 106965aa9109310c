"""Puts the figures of ``benchmarks/results`` into docs/performance.md, between the marks that are there for them.

python tools/performance_page.py      after `make bench`
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "benchmarks" / "results"
OURS = "cometmq"
RIVAL = "rocketmq-4.9.7"
COPIED_ROWS = {
    "copied-1k-4x64": "rate of an ASYNC_MASTER with a slave, of that without",
    "copied-sync-1k-4x64": "rate of a SYNC_MASTER with a slave, of an ASYNC_MASTER's without",
}
CONTROLLED = ("elections", "many_groups")
CLIENT_ROWS = {
    "send-64": "sends, 64 in flight, messages/s",
    "send-1": "blocking sends from one thread, messages/s",
    "batch-32": "batches of 32, messages/s",
    "push": "push consumer, empty listener, messages/s",
    "lite-pull": "lite pull consumer, messages/s",
}
SPARK_KINDS = {
    "noop": "batch to nowhere",
    "parquet": "batch into Parquet",
    "stream": "stream into Parquet",
}
SAME = 1.05
"""Peaks that differ by less are the same: allocators do not repeat themselves to the megabyte."""


def main() -> None:
    text = PAGE.read_text()
    for name, part in (
        ("brokers", brokers(_read("compare.json"))),
        ("replication", replication()),
        ("controlled", controlled()),
        ("listings", listings()),
        ("growth", growth()),
        ("others", others()),
        ("clients", clients(_read("clients.json"))),
        ("steps", steps(_read("steps.json"))),
        ("dashboard", dashboard(_read("dashboard.json"))),
        ("dashboard-pages", dashboard_pages(_read("dashboard.json"))),
        ("spark-readers", spark_readers(_read("spark_kafka.json"))),
        ("spark-goals", spark_goals()),
    ):
        text = fill(text, name, part)
    PAGE.write_text(text)
    shutil.copy(RESULTS / "compare.svg", PAGE.parent / "performance.svg")
    if (RESULTS / "growth.svg").exists():
        shutil.copy(RESULTS / "growth.svg", PAGE.parent / "growth.svg")
    print(f"written: {PAGE.relative_to(ROOT)}")


def fill(text: str, name: str, part: str) -> str:
    """The text with what lies between the marks of a name exchanged."""
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    filled, count = pattern.subn(lambda found: f"{found[1]}{part}\n{found[2]}", text)
    if count != 1:
        raise SystemExit(f"expected one part marked {name!r}, found {count}")
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
        verdict = ""
        if goal:
            rival = f", {RIVAL}'s {goal['rival_ratio']:.2f}" if "rival_ratio" in goal else ""
            verdict = f"{sign} {goal['wanted']:g}: {goal['ratio']:.2f}{rival}, {_met(goal['met'])}"
        values = [_number(medians.get(system)) for system in systems]
        lines.append([row["title"], row["unit"], *values, *ratios, verdict])
    machine, plan = result["machine"], result["plan"]
    note = (
        f"{machine['cores']} cores ({machine['cpu']}), Python {machine['python']}; "
        f"{plan['rounds']} rounds of {plan['seconds']:g} s, {plan['rounds_with_goal']} where there is a goal; medians. "
        f"{_calm_rounds(result)}"
    )
    return f"{_table(lines)}\n\n{note}"


def _calm_rounds(result: Mapping[str, Any]) -> str:
    """How many rounds the host of the machine left alone, of those that goals look at."""
    limit = result["plan"]["stolen_share_wanted_at_most"]
    rows = {goal["row"].split()[0] for goal in result["goals"]} | {"topics-1"}
    shares = [one["stolen_share"] for one in result["rounds"] if one["case"] in rows]
    calm = sum(share <= limit for share in shares)
    return (
        f"Of {len(shares)} rounds that goals look at, {calm} lost at most {limit:.0%} of the processors to others "
        "on the same host; the others count only where fewer than three such are left."
    )


def replication() -> str:
    """What masters and slaves are measured by, with their goals."""
    lines = [["what", "goal", "measured", ""]]

    def add(what: str, goal: str, measured: str, is_met: bool | None = None) -> None:
        lines.append([what, goal, measured, "" if is_met is None else _met(is_met)])

    goals = {goal["row"]: goal for goal in _read("compare.json")["goals"]}
    for row, what in COPIED_ROWS.items():
        if (goal := goals.get(row)) is not None:
            rival = goal.get("rival_ratio")
            wanted, measured = f"≥ {goal['wanted']:g}", f"{goal['ratio']:.2f}"
            if rival is not None:
                wanted, measured = f"{wanted}, ≥ {RIVAL}'s", f"{measured}, {RIVAL}'s {rival:.2f}"
            add(what, wanted, measured, goal["met"])
    copied, killed = _read("catch_up.json"), _read("fail_over.json")
    what = f"a slave that is {copied['bytes'] / 1e9:.0f} GB behind: log"
    rate = f"{copied['log_mb_per_second']:.0f} MB/s"
    add(what, f"≥ {copied['goal_mb_per_second']:.0f} MB/s", rate, copied["met"])
    add("the same, and all of it in the queues", "", f"{copied['queues_mb_per_second']:.0f} MB/s")
    disk = " and ".join(f"{one:.0f}" for one in copied["disk_mb_per_second"])
    add("for comparison: the disk alone, before and after", "", f"{disk} MB/s")
    add("for comparison: plain copy by TCP", "", f"{copied['tcp_mb_per_second']:.0f} MB/s")
    lost = killed["lost"] + killed["not_at_slave"]
    what = f"SYNC_MASTER killed {killed['kills']} times at {killed['rate']:,} messages/s: lost"
    add(what, "0", f"{lost} of {killed['acknowledged']:,} acknowledged", lost == 0)
    worst, median = killed["worst_seconds"], killed["median_seconds"]
    what = "from the kill to the first message from the slave, worst"
    limit = killed["goal_seconds"]
    add(what, f"≤ {limit:g} s", f"{worst:.2f} s, median {median:.2f}", worst <= limit)
    synced = _read("metadata_sync.json")
    what = f"metadata of {synced['topics']:,} topics to {synced['slaves']} slaves: longest step of a loop"
    measured = (
        f"{synced['stall_cpu_ms']:.0f} ms of processor time, {synced['stall_ms']:.0f} by the clock"
    )
    add(what, f"≤ {synced['goal_ms']:g} ms", measured, synced["met"])
    return _table(lines)


def controlled() -> str:
    """What groups under a controller are measured by, with their goals."""
    goals = [goal for name in CONTROLLED for goal in _read(f"{name}.json")["goals"]]
    lines = [[one["what"], one["goal"], one["measured"], _met(one["met"])] for one in goals]
    return _table([["what", "goal", "measured", ""], *lines])


def listings() -> str:
    """How long an operator waits for what lists something."""
    goals = _read("admin.json")["goals"]
    lines = [[f"`{one['what']}`", one["goal"], one["measured"], _met(one["met"])] for one in goals]
    return _table([["what", "goal", "measured", ""], *lines])


def growth() -> str:
    """How far the curves fall, and their picture."""
    if not (RESULTS / "growth.json").exists():
        return "Not measured since the last change: `python -m benchmarks.growth` draws the curves."
    lines = [["from the smallest to the largest", "messages/s", "p99, ms", "share kept"]]
    for curve in _read("growth.json").values():
        (low, first, early), (high, last, late) = curve["points"][0], curve["points"][-1]
        title = f"{curve['x_title']}: {low:,g} to {high:,g}"
        delays = "–" if early is None else f"{_number(early)} to {_number(late)}"
        rates = f"{_number(first)} to {_number(last)}"
        lines.append([title, rates, delays, f"{last / first:.2f}"])
    picture = "![Throughput and p99 against what grows](growth.svg)"
    return f"{_table(lines)}\n\n{picture}"


def others() -> str:
    """Medians of other queues beside ours."""
    if not (RESULTS / "others.json").exists():
        return "Not measured since the last change: `python -m benchmarks.others` makes the table."
    result = _read("others.json")
    columns = {
        "send cache": "sent, in the cache",
        "receive cache": "received",
        "send disk": "sent, on the disk",
        "receive disk": "received",
    }
    lines = [["messages/s", *columns.values()]]
    for name, row in result.items():
        lines.append([name, *(_number(statistics.median(row[column])) for column in columns)])
    return _table(lines)


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


def dashboard(result: Mapping[str, Any]) -> str:
    lines = [
        [one["what"], one["goal"], one["measured"], _met(one["met"])] for one in result["goals"]
    ]
    return _table([["what", "goal", "measured", ""], *lines])


def dashboard_pages(result: Mapping[str, Any]) -> str:
    """Of each page its time, and what servers are asked for it, however many rows it shows."""
    lines = [["page", "ms", "requests, 10 rows", "500 rows"]]
    for page, seconds in result["seconds"].items():
        few, many = result["requests"][page]
        lines.append([page, f"{seconds * 1000:.0f}", str(few), str(many)])
    return _table(lines)


def spark_readers(result: Mapping[str, Any]) -> str:
    """A row for each reader; of each kind of run its rate and what that is beside Kafka's connector."""
    kinds = [kind for kind in SPARK_KINDS if kind in result]
    head = [""]
    for kind in kinds:
        head += [f"{SPARK_KINDS[kind]}, rows/s", "× Kafka"]
    lines = [head]
    for reader in result[kinds[0]]:
        line = [reader]
        for kind in kinds:
            figures = result[kind].get(reader, {})
            ratio = figures.get("ratio")
            line += [
                _number(figures.get("rows_per_second")),
                "–" if ratio is None else f"{ratio:.2f}",
            ]
        lines.append(line)
    return _table(lines)


def spark_goals() -> str:
    readers = _read("spark_kafka.json")
    lines = [["what", "goal", "measured", ""]]

    def add(what: str, goal: str, measured: str, is_met: bool) -> None:
        lines.append([what, goal, measured, _met(is_met)])

    for kind, title in SPARK_KINDS.items():
        for reader, figures in readers.get(kind, {}).items():
            if (goal := figures["goal"]) is not None:
                ratio = figures["ratio"]
                add(f"{reader}, {title}", f"≥ {goal:g} × Kafka", f"{ratio:.2f}", ratio >= goal)
    for reader in ("rocketmq", "rocketmq (6 columns)"):
        rate = readers["stream"][reader]["running_rows_per_second"]
        what = f"{reader}, {SPARK_KINDS['stream']}, while it runs"
        add(what, "≥ 110,000 rows/s", f"{rate:,}", rate >= 110_000)
    rate = statistics.median(_read("spark_sink.json")["batch"]["messages_per_second"])
    add("sink, acknowledged", "≥ 40,000 messages/s", f"{rate:,.0f}", rate >= 40_000)
    p50 = _read("spark_source.json")["latency"]["p50_ms"]
    add("send to the rows of a micro-batch, p50", "< 700 ms", f"{p50} ms", p50 < 700)
    peaks: dict[str, dict[int, list[int]]] = {}
    for read in _read("spark_memory.json")["reads"]:
        of_format = peaks.setdefault(read["format"], {})
        of_format.setdefault(read["messages"], []).append(read["worker_peak_mb"][0])
    for format_, by_size in peaks.items():
        tenth, whole = (round(statistics.mean(by_size[size])) for size in sorted(by_size))
        add(
            f"{format_}: largest Python worker, 1 and 10 million messages",
            "no more",
            f"{tenth} and {whole} MB",
            whole <= tenth * SAME,
        )
    return _table(lines)


def _met(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


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
