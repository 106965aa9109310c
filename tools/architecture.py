"""Writes docs/architecture.md from the import graph and the docstrings of the packages.

python tools/architecture.py          # write the page (`make architecture`)
python tools/architecture.py --check  # exit 1 when the page is not what it would be written as

The drawings are plain text: they are read in an editor, in the repository and on a built page alike.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src"
PACKAGE: Final = "cometmq"
PAGE: Final = ROOT / "docs" / "architecture.md"
BOX_WIDTH: Final = 34

HEAD = """# Architecture

Written by `tools/architecture.py` from the import graph; do not edit, run `make architecture`.

A *house* is a package of `cometmq`, a *room* is a package inside a house, and a *door* is a module of a room that other
rooms import. Modules that lie directly in a house make a room of the same name. `make check` sees to it that houses are
stacked as drawn here; [the life of a message](life-of-a-message.md) tells how a message goes through them.

## The houses

Imports go down only: a house imports from the floors below it, never from one beside or above it.
"""

ROOMS_NOTE = """
Which room imports from which: the one on the left from the one whose number is above an `x`. An `o` goes against the
order of the list: both rooms import from each other, directly or by way of a third.
"""

DOORS_NOTE = "The doors of houses without rooms. The number behind a door, here and below, says how many rooms use it."


class NoPurpose(Exception):
    """A package or module without a docstring."""


@dataclass
class Graph:
    """Which module imports which, by their names inside the package: ``store.log.commit_log``."""

    imports: Mapping[str, frozenset[str]]
    packages: frozenset[str]

    def room_of(self, module: str) -> str:
        """A package two levels deep, or what is on the first level."""
        two = ".".join(module.split(".")[:2])
        return two if two in self.packages else house_of(module)

    @cached_property
    def rooms(self) -> list[str]:
        return sorted({self.room_of(module) for module in self.imports})

    @cached_property
    def doors(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        """By room: those of its modules that others import, and which rooms do."""
        found: dict[str, dict[str, set[str]]] = {room: defaultdict(set) for room in self.rooms}
        for module, imported in self.imports.items():
            user = self.room_of(module)
            for other in imported:
                if (room := self.room_of(other)) != user:
                    found[room][other].add(user)
        return {
            room: {door: frozenset(users) for door, users in doors.items()}
            for room, doors in found.items()
        }

    @cached_property
    def room_imports(self) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = {room: set() for room in self.rooms}
        for room, doors in self.doors.items():
            for users in doors.values():
                for user in users:
                    found[user].add(room)
        return {room: frozenset(others) for room, others in found.items()}

    @cached_property
    def house_imports(self) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = {house_of(room): set() for room in self.rooms}
        for room, others in self.room_imports.items():
            found[house_of(room)].update({house_of(other) for other in others} - {house_of(room)})
        return {house: frozenset(others) for house, others in found.items()}

    def rooms_in(self, house: str) -> list[str]:
        return [room for room in self.rooms if house_of(room) == house]


def house_of(name: str) -> str:
    return name.partition(".")[0]


def read_graph() -> Graph:
    sys.path.insert(0, str(SOURCE))
    found = grimp.build_graph(PACKAGE, cache_dir=None)
    prefix = f"{PACKAGE}."
    modules = sorted(found.modules - {PACKAGE})
    return Graph(
        imports={
            module.removeprefix(prefix): frozenset(
                other.removeprefix(prefix)
                for other in found.find_modules_directly_imported_by(module) - {PACKAGE}
            )
            for module in modules
        },
        packages=frozenset(
            name for module in modules if _is_package(name := module.removeprefix(prefix))
        ),
    )


def page(graph: Graph) -> str:
    parts = [HEAD, _text_block(draw_houses(graph)), "", *_houses_table(graph)]
    is_first = True
    for house in _from_the_top(graph.house_imports):
        rooms = graph.rooms_in(house)
        if len(rooms) > 1:
            parts.append(f"\n## {house}\n\n{purpose_of(house)}")
            parts += [ROOMS_NOTE] if is_first else [""]
            inside = {room: graph.room_imports[room] & set(rooms) for room in rooms}
            parts += [_text_block(draw_matrix(inside)), "", *_table(graph, _from_the_top(inside))]
            is_first = False
    return "\n".join(parts) + "\n"


def draw_houses(graph: Graph) -> list[str]:
    """Boxes on floors: each house stands above all that it imports from."""
    floors: dict[int, list[str]] = defaultdict(list)
    for house in sorted(graph.house_imports):
        floors[_height(house, graph.house_imports)].append(house)
    drawn: list[str] = []
    for height in sorted(floors, reverse=True):
        boxes = [_box(house, graph.rooms_in(house)) for house in floors[height]]
        if drawn:
            drawn += [" " * 8 + "|", " " * 8 + "v"]
        drawn += [
            "  ".join(cells).rstrip()
            for cells in zip_longest(*map(_padded, boxes, [max(map(len, boxes))] * len(boxes)))
        ]
    return drawn


def draw_matrix(imports: Mapping[str, frozenset[str]]) -> list[str]:
    """A row and a column for each room; ``imports`` has what they import from each other."""
    order = _from_the_top(imports)
    names = [_shown(room) for room in order]
    width = max(map(len, names))
    drawn = [" " * (width + 5) + "".join(f"{number:3}" for number in range(1, len(order) + 1))]
    for row, (room, name) in enumerate(zip(order, names, strict=True)):
        cells = [
            "." if row == column else _mark(row, column) if other in imports[room] else " "
            for column, other in enumerate(order)
        ]
        drawn.append(
            f"{row + 1:3}  {name:{width}}" + "".join(f"{cell:>3}" for cell in cells).rstrip()
        )
    return drawn


def purpose_of(name: str) -> str:
    """The first line of a package's or module's docstring, as Markdown. Raises NoPurpose."""
    file = _file(f"{PACKAGE}.{name}")
    docstring = ast.get_docstring(ast.parse(file.read_text()))
    if not docstring:
        raise NoPurpose(f"{file.relative_to(ROOT)} has no docstring: one line on what it is for")
    return docstring.partition("\n")[0].replace("``", "`").replace("|", "\\|")


def _houses_table(graph: Graph) -> Iterator[str]:
    order = _from_the_top(graph.house_imports)
    yield "| house | what it is for | imports from |"
    yield "| --- | --- | --- |"
    for house in order:
        below = [other for other in order if other in graph.house_imports[house]]
        yield f"| `{_shown(house)}` | {purpose_of(house)} | {', '.join(below) or 'nothing'} |"
    alone = [house for house in order if len(graph.rooms_in(house)) == 1]
    yield f"\n{DOORS_NOTE}\n"
    yield "| house | doors |"
    yield "| --- | --- |"
    for house in alone:
        yield f"| `{_shown(house)}` | {_doors(graph, house)} |"


def _table(graph: Graph, rooms: Sequence[str]) -> Iterator[str]:
    yield "| room | what it is for | doors |"
    yield "| --- | --- | --- |"
    for room in rooms:
        yield f"| `{_shown(room)}` | {purpose_of(room)} | {_doors(graph, room)} |"


def _doors(graph: Graph, room: str) -> str:
    doors = graph.doors[room]
    most_used_first = sorted(doors, key=lambda door: (-len(doors[door]), door))
    return (
        ", ".join(f"`{_door(room, each)}` {len(doors[each])}" for each in most_used_first) or "none"
    )


def _door(room: str, module: str) -> str:
    if module == room and _is_package(module):
        return "__init__"
    return module.removeprefix(f"{room}.")


def _box(house: str, rooms: Sequence[str]) -> list[str]:
    inner = [room.removeprefix(f"{house}.") for room in rooms if room != house]
    lines = textwrap.wrap("  ".join(inner), BOX_WIDTH, break_on_hyphens=False)
    width = max(len(house) + 2, *map(len, lines), 0)
    bottom = f"+{'-' * (width + 2)}+"
    top = f"+-{f' {house} '.ljust(width, '-')}-+"
    return [top, *(f"| {line:{width}} |" for line in lines), bottom]


def _padded(box: list[str], height: int) -> list[str]:
    return [*([" " * len(box[0])] * (height - len(box))), *box]


def _height(house: str, imports: Mapping[str, frozenset[str]]) -> int:
    return max((_height(other, imports) + 1 for other in imports[house]), default=0)


def _from_the_top(imports: Mapping[str, frozenset[str]]) -> list[str]:
    """Importers before what they import. Those that import each other: whoever imports more, and is imported less."""

    def rank(name: str) -> tuple[int, int, str]:
        users = sum(name in others for others in imports.values())
        return -len(_reached(name, imports)), users - len(imports[name]), name

    return sorted(imports, key=rank)


def _reached(name: str, imports: Mapping[str, frozenset[str]]) -> set[str]:
    """All that it imports, directly or not, and itself."""
    seen = {name}
    left = [name]
    while left:
        for other in imports[left.pop()] - seen:
            seen.add(other)
            left.append(other)
    return seen


def _mark(row: int, column: int) -> str:
    return "x" if column > row else "o"


def _shown(name: str) -> str:
    return name.replace(".", "/") + ("/" if _is_package(name) else "")


def _is_package(name: str) -> bool:
    return _file(f"{PACKAGE}.{name}").name == "__init__.py"


def _file(module: str) -> Path:
    """Of a module or package."""
    path = SOURCE.joinpath(*module.split("."))
    package = path / "__init__.py"
    return package if package.is_file() else path.with_suffix(".py")


def _text_block(lines: Sequence[str]) -> str:
    return "\n".join(("```text", *lines, "```"))


def main() -> None:
    text = page(read_graph())
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        raise SystemExit(f"{PAGE.name} is out of date: run make architecture")


if __name__ == "__main__":
    try:
        main()
    except NoPurpose as error:
        raise SystemExit(str(error)) from None
