"""The report of a run: one HTML page that needs nothing else, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Final

from tests.chaos.judge.outcome import Outcome
from tests.chaos.plan.faults import WHAT_HAPPENS, Fault
from tests.chaos.plan.modes import MEANING, MODES, Count
from tests.chaos.show.summary import NOTHING, OK, masterless, standstills
from tests.chaos.show.time_line import draw

_STYLE: Final = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 1080px; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse; margin: 1em 0 }
td, th { border: 1px solid #ccc; padding: 3px 8px; text-align: right }
th:first-child, td:first-child, .left { text-align: left } .bad { background: #f8c9c4 } .open { color: #888 }
.good { background: #d8efdd } pre { background: #f4f4f4; padding: .6em; overflow: auto } h2 { margin-top: 2em }
"""


def write(outcomes: Sequence[Outcome], page: Path, command: str) -> None:
    """``page`` and, beside it, the same name with .json."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render(outcomes, command), encoding="utf-8")
    document = {"command": command, "trials": [asdict(outcome) for outcome in outcomes]}
    page.with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def render(outcomes: Sequence[Outcome], command: str) -> str:
    bad = [outcome for outcome in outcomes if not outcome.is_good]
    verdict = (
        f"{len(bad)} of {len(outcomes)} trials broke a promise" if bad else "All promises held"
    )
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>Chaos</title>",
        f"<style>{_STYLE}</style></head><body><h1>{verdict}</h1>",
        f"<pre>{escape(command)}</pre>",
        _overview(outcomes),
        _matrix(outcomes),
        *(_trial(number, outcome) for number, outcome in enumerate(outcomes, 1)),
        _legend(),
        "</body></html>",
    ]
    return "\n".join(parts)


def _overview(outcomes: Sequence[Outcome]) -> str:
    names = [count.value for count in Count]
    head = "".join(f"<th>{name}</th>" for name in names)
    rows = []
    for number, outcome in enumerate(outcomes, 1):
        other = sum(outcome.sends.values()) - outcome.sends.get(OK, 0)
        cells = "".join(_cell(outcome, name) for name in names)
        rows.append(
            f"<tr><td><a href='#t{number}'>{number}</a></td><td>{outcome.server}</td><td class=left>{outcome.mode}</td>"
            f"<td>{outcome.seed}</td><td>{outcome.sends.get(OK, 0)}</td><td>{other}</td>"
            f"<td>{outcome.send_gap_seconds}</td><td>{outcome.delivery_gap_seconds}</td>"
            f"<td>{masterless(outcome)}</td>{cells}</tr>"
        )
    return (
        "<table><tr><th></th><th>server</th><th>mode</th><th>seed</th><th>SEND_OK</th><th>other</th>"
        f"<th>longest s without send</th><th>without delivery</th>"
        f"<th>without a writable master: longest, in all</th>{head}</tr>{''.join(rows)}</table>"
        "<p>Green: promised to be 0, and it was. Red: a broken promise. Grey: not promised after these faults.</p>"
    )


def _cell(outcome: Outcome, name: str) -> str:
    count = outcome.counts.get(name, 0)
    if not MODES[outcome.mode].has(Count(name)):
        return f"<td class=open>{NOTHING}</td>"
    if name in outcome.promised:
        return f"<td class={'bad' if count else 'good'}>{count}</td>"
    return f"<td class=open>{count}</td>"


def _matrix(outcomes: Sequence[Outcome]) -> str:
    """Modes × faults, from the trials that had one kind of fault only: what is gone of what was acknowledged."""
    alone = [outcome for outcome in outcomes if len(outcome.faults) == 1]
    if len(alone) < 2:
        return ""
    rows = []
    for server in dict.fromkeys(outcome.server for outcome in alone):
        columns = [
            mode
            for mode in MODES
            if any(each.mode == mode and each.server == server for each in alone)
        ]
        head = "".join(f"<th>{mode}</th>" for mode in columns)
        rows.append(f"<h2>Which mode loses what: {server}</h2><table><tr><th></th>{head}</tr>")
        for fault in Fault:
            cells = [_lost(alone, server, mode, fault) for mode in columns]
            if any(cells):
                row = "".join(cell or f"<td class=open>{NOTHING}</td>" for cell in cells)
                rows.append(f"<tr><td>{fault}</td>{row}</tr>")
        rows.append("</table>")
    return "".join(rows)


def _lost(alone: Sequence[Outcome], server: str, mode: str, fault: Fault) -> str:
    found = [
        each for each in alone if (each.server, each.mode, each.faults) == (server, mode, [fault])
    ]
    if not found:
        return ""
    lost = sum(each.gone for each in found)
    sent = sum(each.sends.get(OK, 0) for each in found)
    times = sum(len(each.inflicted) for each in found)
    error = " (no end)" if any(each.error for each in found) else ""
    kind = "bad" if lost and fault in MODES[mode].survives else "good" if not lost else "open"
    return f"<td class={kind}>{lost} of {sent}, {times}×{error}</td>"


def _trial(number: int, outcome: Outcome) -> str:
    words = [f"{name}: {each}" for name, found in outcome.violations.items() for each in found]
    faults = [
        f"{each['began']:7.1f} to {each['ended']:6.1f} s  {each['kind']:<16} {each['target']:<7}"
        f"{each['stood_still']:5.1f} s without a send  {each['note']}"
        for each in outcome.inflicted
    ]
    elected = [
        f"{at:7.1f} s  {group}, epoch {epoch}: {master}"
        for at, group, epoch, master in outcome.elections
    ]
    sends = ", ".join(f"{count} {status}" for status, count in outcome.sends.items())
    parts = [
        f"<h2 id=t{number}>{number}. {outcome.server}, {MODES[outcome.mode].what}</h2>",
        f"<p>Seed {outcome.seed}, network by {outcome.network}, {outcome.seconds} s. Sends: {sends}; "
        f"{outcome.delivered} deliveries.</p>",
        f"<p class=bad>{escape(outcome.error)}</p>" if outcome.error else "",
        *(f"<p>{escape(note)}</p>" for note in outcome.notes),
        draw(outcome),
        f"<pre>{escape(chr(10).join(faults))}</pre>",
        f"<h3>Elections</h3><pre>{escape(chr(10).join(elected))}</pre>" if elected else "",
        *(f"<p>{escape(line)}</p>" for line in standstills(outcome)),
        f"<pre>{escape(chr(10).join(words))}</pre>" if words else "",
    ]
    return "".join(parts)


def _legend() -> str:
    counts = "".join(
        f"<tr><td>{name}</td><td class=left>{text}</td></tr>" for name, text in MEANING.items()
    )
    faults = "".join(
        f"<tr><td>{name}</td><td class=left>{text}</td></tr>" for name, text in WHAT_HAPPENS.items()
    )
    return f"<h2>What is counted</h2><table>{counts}</table><h2>Faults</h2><table>{faults}</table>"
