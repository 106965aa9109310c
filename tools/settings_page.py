"""Writes docs/reference/settings.md from the rows that the servers themselves read their settings by.

python tools/settings_page.py          # write the page
python tools/settings_page.py --check  # exit 1 when the page is not what it would be written as
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from cometmq.base.settings import Row, render, rows
from cometmq.broker.config import broker_rows
from cometmq.namesrv.config import NamesrvConfig

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "settings.md"

HEAD = """# Settings

Written by `tools/settings_page.py` from the software; do not edit. Keys are RocketMQ's where it has one.

What becomes of a setting that is sent to a running server (`updateBrokerConfig`, `updateNamesrvConfig`): *live* takes
effect at once; *next start* is written into the file and takes effect when the server starts again; all others are
refused. A RocketMQ key that is not here is accepted and has no effect; the log names it once. Keys that ask for
protection that is not there are [refused](../operating.md#configuration).
"""


def page() -> str:
    return "\n".join(
        (
            HEAD,
            "## Broker (`broker.conf`)\n",
            *_table(broker_rows().values()),
            "\n## Name server\n",
            *_table(rows(NamesrvConfig)),
            "",
        )
    )


def _table(settings: Iterable[Row]) -> Iterable[str]:
    yield "| key | default | changes | meaning |"
    yield "| --- | --- | --- | --- |"
    for row in settings:
        default = render(row.default).replace("|", "\\|")
        bounds = _bounds(row)
        meaning = f"{row.help} {bounds}".strip().replace("|", "\\|")
        shown = f"`{default}`" if default else ""
        changes = "live" if row.live else "next start" if row.next_start else ""
        yield f"| `{row.key}` | {shown} | {changes} | {meaning} |"


def _bounds(row: Row) -> str:
    if row.choices:
        return f"One of {', '.join(row.choices)}."
    if row.low is not None and row.high is not None:
        return f"From {row.low} to {row.high}."
    if row.low is not None:
        return f"At least {row.low}."
    if row.high is not None:
        return f"At most {row.high}."
    return ""


def main() -> None:
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text() != page():
            raise SystemExit(f"{PAGE.name} is out of date: run python tools/settings_page.py")
        return
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
