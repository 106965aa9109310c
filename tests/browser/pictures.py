"""How pages look: accessible, and in pictures for the documents, PNG files with few colours so that they stay small."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final, cast

from PIL import Image
from tests.browser.visitor import Visitor

DIRECTORY: Final = Path(__file__).parents[2] / "docs" / "pictures" / "dashboard"
COLOURS: Final = (128, 64, 32)
BYTES_MAX: Final = 60_000


def picture_path(name: str, theme: str, language: str) -> Path:
    return DIRECTORY / f"{name}-{theme}-{language}.png"


def check_look(visitor: Visitor, name: str, theme: str, language: str, *, writes: bool) -> None:
    """What is on the screen is accessible, and its picture is among the documents; ``writes``: made anew.

    Raises AssertionError.
    """
    assert visitor.violations() == []
    path = picture_path(name, theme, language)
    if writes:
        write_picture(path, visitor.page.screenshot())
    assert path.is_file(), f"{path.name} is missing: make pictures"


def write_picture(path: Path, screenshot: bytes) -> None:
    """With as many colours as fit. Raises AssertionError: too large for the repository, whatever is done."""
    with Image.open(io.BytesIO(screenshot)) as image:
        pixels = image.convert("RGB")
    content = next(
        (found for colours in COLOURS if len(found := _png(pixels, colours)) <= BYTES_MAX), None
    )
    assert content is not None, f"{path.name} has more than {BYTES_MAX} bytes"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _png(pixels: Image.Image, colours: int) -> bytes:
    """Half of the colours are the most frequent ones, so that surfaces keep theirs; the others cover what is rare."""
    counts = cast("list[tuple[int, tuple[int, int, int]]]", pixels.getcolors(1 << 24))
    frequent = [colour for _, colour in sorted(counts, reverse=True)[: colours // 2]]
    rare = pixels.quantize(colours // 2, Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([*(part for colour in frequent for part in colour), *rare])
    content = io.BytesIO()
    few = pixels.quantize(palette=palette, dither=Image.Dither.NONE)
    few.save(content, "PNG", optimize=True)
    return content.getvalue()
