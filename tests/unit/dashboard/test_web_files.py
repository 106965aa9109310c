"""What the browser gets, read as text: words in both languages, and nothing that the security policy forbids."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cometmq.dashboard.views.parts.remarks import REMARKS
from cometmq.dashboard.watch.notes import WORDS

WEB = Path(__file__).parents[3] / "src" / "cometmq" / "dashboard" / "web"
TABLES = sorted((WEB / "js" / "texts").glob("*.js"))
CODE = [path for path in sorted((WEB / "js").rglob("*.js")) if path not in TABLES]

_ROW = re.compile(r'^  (?P<key>"[^"]+"): (?P<texts>\[".*"\]),$')
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_USED = re.compile(r'\bt\(\s*"([^"]+)"')
_CHOSEN = re.compile(r'\bt\([^()]*\? "([^"]+)" : "([^"]+)"')
_PREFIX = re.compile(r"\bt\(\s*`([a-z_.-]+)\$\{")
_IMPORT = re.compile(r'from "(\.[^"]+)"|import\("(\.[^"$]+)"\)')


def _texts() -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {}
    for path in TABLES:
        for line in path.read_text().splitlines():
            if not line.startswith('  "'):
                continue
            row = _ROW.match(line)
            assert row is not None, f"{path.name}: not a row of two texts: {line}"
            key = json.loads(row["key"])
            assert key not in texts, f"{path.name}: {key} is there twice"
            texts[key] = json.loads(row["texts"])
    return texts


TEXTS = _texts()


def test_each_text_is_there_in_both_languages_with_the_same_values() -> None:
    for key, texts in TEXTS.items():
        assert len(texts) == 2, key
        assert all(texts), key
        english, chinese = (set(_PLACEHOLDER.findall(text)) for text in texts)
        # "one|many": a language may leave the number out where it is one.
        assert english | {"count"} == chinese | {"count"}, key


def test_each_text_that_is_used_exists() -> None:
    missing = []
    for path in CODE:
        source = path.read_text()
        used = {*_USED.findall(source), *(key for pair in _CHOSEN.findall(source) for key in pair)}
        missing += [f"{path.name}: {key}" for key in used if key not in TEXTS]
        missing += [
            f"{path.name}: {prefix}…"
            for prefix in _PREFIX.findall(source)
            if not any(key.startswith(prefix) for key in TEXTS)
        ]
    assert not missing


def test_each_text_is_used() -> None:
    source = "\n".join(path.read_text() for path in CODE)
    prefixes = {*re.findall(r"`([a-z_.-]+)\$\{", source), "broker.drain.", "broker.undrain."}
    unused = [
        key
        for key in TEXTS
        if f'"{key}"' not in source and not any(key.startswith(prefix) for prefix in prefixes)
    ]
    assert not unused


@pytest.mark.parametrize("code", WORDS)
def test_the_page_has_words_for_everything_that_may_be_wrong(code: str) -> None:
    told = set(re.findall(r"\{(\w+)[:}]", WORDS[code].text))
    assert set(_PLACEHOLDER.findall(TEXTS[f"note.{code}"][1])) == told
    assert f"note.{code}.fix" in TEXTS


def test_the_page_says_everything_that_answers_say() -> None:
    told = {key.removeprefix("remark."): texts for key, texts in TEXTS.items() if "remark." in key}
    assert set(told) == set(REMARKS)
    for code, text in REMARKS.items():
        params = set(_PLACEHOLDER.findall(text))
        assert all(set(_PLACEHOLDER.findall(one)) <= params for one in told[code]), code


def test_no_words_are_left_of_something_that_is_never_told() -> None:
    codes = {key.split(".")[1] for key in TEXTS if key.startswith("note.")}
    assert codes == set(WORDS)


def test_imports_lead_to_files() -> None:
    for path in [*CODE, *TABLES]:
        for found in _IMPORT.findall(path.read_text()):
            target = found[0] or found[1]
            assert (path.parent / target).is_file(), f"{path.name}: {target}"


def test_nothing_that_the_security_policy_forbids_and_nothing_from_elsewhere() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\sstyle=|https?://(?!www\.w3\.org/2000/svg)"
    )
    for path in WEB.rglob("*"):
        if path.suffix in {".js", ".html", ".css"}:
            found = forbidden.search(path.read_text())
            assert found is None, f"{path.name}: {found and found[0]}"
    page = (WEB / "index.html").read_text()
    assert "<style" not in page
    assert not re.search(r"<script(?![^>]* src=)", page)
