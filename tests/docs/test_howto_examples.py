"""Every Python example of the tutorial, the how-to pages and the page for Java users runs, against a real cluster.

The ``python`` blocks of a page run in order, in one namespace, and a cluster is started for each page: the address
127.0.0.1:9876 in an example is replaced by its own. A block that defines ``test_...`` functions is given to pytest. A
page says what its examples print in a ``text`` block right behind them; the lines must appear in that order.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cometmq.testing import cluster

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "docs" / "coming-from-java.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
]
ADDRESS = "127.0.0.1:9876"

_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)

# Examples come from this repository, and run as a reader would run them: as programs.
_RUNNER = (
    "import sys; exec(compile(sys.stdin.read(), sys.argv[1], 'exec'), {'__name__': '__main__'})"
)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_examples_run_and_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    blocks = _BLOCK.findall(page.read_text())
    program = "\n".join(text for kind, text in blocks if kind == "python" and not _is_test(text))
    tests = "\n".join(text for kind, text in blocks if kind == "python" and _is_test(text))
    # Settings that make waiting short: a reader has time, a test has not.
    settings = {"messageDelayLevel": "1s " * 18, "transactionCheckInterval": "1000"}
    settings["traceTopicEnable"] = "true"
    settings["filterFunctionDirectory"] = str(tmp_path / "functions")
    with cluster(settings=settings) as servers:
        command = [sys.executable, "-W", "error", "-c", _RUNNER, page.name]
        printed = _run(command, tmp_path, program.replace(ADDRESS, servers.name_servers))
    position = 0
    for line in "".join(text for kind, text in blocks if kind == "text").splitlines():
        found = printed.find(line, position)
        assert found >= 0, f"{page.name}: {line!r} does not follow in\n{printed}"
        position = found + len(line)
    if tests:
        (tmp_path / "test_example.py").write_text(tests)
        # Without the options of this repository: a reader has others.
        _run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], tmp_path, "")


def _is_test(text: str) -> bool:
    return re.search(r"^(async )?def test_", text, re.MULTILINE) is not None


def _run(command: list[str], directory: Path, stdin: str) -> str:
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, cwd=directory, timeout=60, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
