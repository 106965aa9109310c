"""Configuration of the documentation site, which `make docs` builds with Sphinx from the Markdown files as they are.

The source directory is the root of the repository. Links between documents, to README.md and to files such as
conf/broker.conf therefore mean the same on the site and on a code host.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent

project = "CometMQ"
author = "the CometMQ maintainers"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/**.md",
    "examples/README.md",
    "benchmarks/README.md",
    "tests/*/README.md",
]
exclude_patterns = [".*", "build", "dist", "site", "src", "var"]

# Code hosts make anchors from headings of all levels; no page here goes deeper than the fourth.
myst_heading_anchors = 4

html_theme = "furo"
html_title = "CometMQ"
html_copy_source = False
html_show_copyright = False
html_permalinks_icon = "#"

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#]+\.md)\)")


def setup(app: Any) -> None:
    app.connect("source-read", _add_contents)


def _add_contents(app: Any, page: str, source: list[str]) -> None:
    """Adds the tree of pages that is shown next to each page, from the tables of contents in the documents."""
    if page == "README":
        contents = (DOCS / "README.md").read_text()
        source[0] += _tree("", ["docs/README.md"])
        _, *parts = _HEADING.split(contents)
        for title, section in zip(parts[::2], parts[1::2], strict=True):
            source[0] += _tree(title, [f"docs/{link}" for link in _LINK.findall(section)])
    elif page == "docs/decisions/README":
        source[0] += _tree("", [f"docs/decisions/{link}" for link in _LINK.findall(source[0])])


def _tree(title: str, pages: list[str]) -> str:
    paths = dict.fromkeys("/" + posixpath.normpath(page) for page in pages)
    caption = [f":caption: {title}"] if title else []
    return "\n".join(["", "", "```{toctree}", ":hidden:", *caption, "", *paths, "```"])
