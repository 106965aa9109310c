"""YAML text into values that know their line. Nothing here knows what a pipeline is.

Every mistake is collected, so that one look at a file tells all of them; ``Reader.finish`` raises them together.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import yaml

from cometmq.base.errors import ConfigError

_PLACEHOLDER: Final = re.compile(r"\$(\$\{)|\$\{([^}]*)\}")
_NULL_TAG: Final = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong, and the line where it stands."""

    line: int
    text: str


class PipelineFileError(ConfigError):
    """A pipeline file cannot be used. One line for each mistake: file, line, what was expected, what came."""

    def __init__(self, file: str, mistakes: Iterable[Mistake]) -> None:
        self.file = file
        self.mistakes = tuple(sorted(mistakes, key=lambda mistake: mistake.line))
        super().__init__("\n".join(f"{file}:{each.line}: {each.text}" for each in self.mistakes))

    def __reduce__(self) -> tuple[type[PipelineFileError], tuple[str, tuple[Mistake, ...]]]:
        return type(self), (self.file, self.mistakes)


@dataclass(frozen=True, slots=True)
class Text:
    """A scalar as it is written; ``None`` where nothing is. ``text_line`` is where a block's own text begins."""

    value: str | None
    line: int
    text_line: int
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    values: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Fields:
    values: Mapping[str, Node]
    lines: Mapping[str, int]
    line: int

    def line_of(self, key: str) -> int:
        return self.lines.get(key, self.line)


Node = Text | Items | Fields


class Reader:
    """Reads values out of nodes, and remembers what was wrong with them. One for each file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.mistakes: list[Mistake] = []

    def mistake(self, line: int, text: str) -> None:
        self.mistakes.append(Mistake(line, text))

    def finish(self) -> None:
        """Raises PipelineFileError if there was any mistake."""
        if self.mistakes:
            raise PipelineFileError(self.file, self.mistakes)

    def parse(self, text: str) -> Node:
        """Raises PipelineFileError when the text is no YAML, or empty."""
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            raise PipelineFileError(
                self.file, [Mistake(line, f"this is no YAML: {error.problem or error.context}")]
            ) from None
        except yaml.YAMLError as error:
            raise PipelineFileError(self.file, [Mistake(1, f"this is no YAML: {error}")]) from None
        if root is None:
            self.mistake(1, "the file is empty; expected the keys sources and sinks")
            self.finish()
        return self._node(root)

    def _node(self, node: yaml.Node) -> Node:
        line = node.start_mark.line + 1
        if isinstance(node, yaml.ScalarNode):
            # The text of a block, after "|" or ">", begins one line below its mark.
            text_line = line + 1 if node.style in ("|", ">") else line
            value = None if node.tag == _NULL_TAG else node.value
            return Text(value, line, text_line, is_quoted=node.style is not None)
        if isinstance(node, yaml.SequenceNode):
            return Items(tuple(self._node(each) for each in node.value), line)
        assert isinstance(node, yaml.MappingNode), node
        values: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for key_node, value in node.value:
            key = str(key_node.value)
            key_line = key_node.start_mark.line + 1
            if key in values:
                self.mistake(key_line, f"{key!r} was given before, in line {lines[key]}; keep one")
            values[key] = self._node(value)
            lines[key] = key_line
        return Fields(values, lines, line)

    def fields(self, node: Node | None, what: str, known: Iterable[str] | None = None) -> Fields:
        """A mapping; empty when there is none. Keys that are not ``known`` are mistakes."""
        if node is None or (isinstance(node, Text) and node.value is None):
            return Fields({}, {}, node.line if node else 1)
        if not isinstance(node, Fields):
            self.mistake(
                node.line, f"{what} must be a mapping of names to values, not {_kind(node)}"
            )
            return Fields({}, {}, node.line)
        if known is not None:
            names = list(known)
            for key in node.values:
                if key not in names:
                    self.mistake(node.line_of(key), unknown(key, names, what))
        return node

    def text(self, node: Node | None, what: str) -> str | None:
        """A scalar, or None where the file has nothing."""
        if node is None:
            return None
        if not isinstance(node, Text):
            self.mistake(node.line, f"{what} must be a single value, not {_kind(node)}")
            return None
        return node.value

    def required(self, fields: Fields, key: str, what: str, advice: str) -> str:
        """A scalar that must be there and not empty."""
        value = self.text(fields.values.get(key), f"{key} of {what}")
        if not value and not isinstance(fields.values.get(key), Items | Fields):
            self.mistake(fields.line_of(key), f"{what} needs {key}: {advice}")
        return value or ""

    def choice(self, node: Node | None, what: str, choices: Iterable[str]) -> str | None:
        value = self.text(node, what)
        names = list(choices)
        if value is not None and value not in names:
            assert node is not None
            self.mistake(
                node.line,
                f"{what} must be one of {', '.join(names)}, not {value!r}{_near(value, names)}",
            )
            return None
        return value

    def needed_choice(self, fields: Fields, key: str, what: str, choices: Iterable[str]) -> str:
        """Like ``choice``, of a key that must be there; empty after a mistake."""
        names = list(choices)
        node = fields.values.get(key)
        if node is None:
            self.mistake(fields.line, f"{what} needs {key}: one of {', '.join(names)}")
            return ""
        return self.choice(node, f"{key} of {what}", names) or ""

    def flag(self, node: Node | None, what: str) -> bool | None:
        value = self.choice(node, what, ("true", "false"))
        return None if value is None else value == "true"

    def texts(self, node: Node | None, what: str) -> tuple[str, ...]:
        """A list of scalars; one scalar counts as a list of one."""
        if node is None:
            return ()
        if isinstance(node, Text):
            return (node.value,) if node.value else ()
        if not isinstance(node, Items):
            self.mistake(node.line, f"{what} must be a list, not {_kind(node)}")
            return ()
        found = (self.text(each, f"each item of {what}") for each in node.values)
        return tuple(each for each in found if each is not None)

    def values(self, node: Node | None, what: str) -> dict[str, Value]:
        """Like ``pairs``, with numbers and flags as such."""
        found = self.fields(node, what).values
        return {
            key: plain_value(each) if isinstance(each := found[key], Text) else value
            for key, value in self.pairs(node, what).items()
        }

    def pairs(self, node: Node | None, what: str) -> dict[str, str]:
        """A mapping of names to scalars. A name without a value is a mistake."""
        pairs: dict[str, str] = {}
        for key, each in self.fields(node, what).values.items():
            value = self.text(each, f"{key} of {what}")
            if value is not None:
                pairs[key] = value
            elif isinstance(each, Text):
                self.mistake(each.line, f"{key} of {what} has no value; give one or leave it out")
        return pairs


Value = str | int | float | bool


def plain_value(node: Text) -> Value:
    """A number, true or false where a scalar without quotes is one, else the text."""
    text = node.value or ""
    if node.is_quoted:
        return text
    if text in ("true", "false"):
        return text == "true"
    for kind, pattern in ((int, r"-?\d+"), (float, r"-?\d+\.\d+")):
        if re.fullmatch(pattern, text):
            return kind(text)
    return text


def replace_placeholders(
    node: Node, value_of: Callable[[str], str], mistake: Callable[[int, str], None]
) -> Node:
    """``${name}`` in every scalar by what ``value_of`` gives; ``$${`` stays as ``${``.

    ``value_of`` raises ConfigError for a name that has no value.
    """
    if isinstance(node, Items):
        return Items(
            tuple(replace_placeholders(each, value_of, mistake) for each in node.values), node.line
        )
    if isinstance(node, Fields):
        replaced = {
            key: replace_placeholders(each, value_of, mistake) for key, each in node.values.items()
        }
        return Fields(replaced, node.lines, node.line)
    if node.value is None:
        return node

    text = node.value

    def replacement(match: re.Match[str]) -> str:
        if match[1]:
            return "${"
        try:
            return value_of(match[2].strip())
        except ConfigError as error:
            mistake(node.text_line + text.count("\n", 0, match.start()), str(error))
            return ""

    return replace(node, value=_PLACEHOLDER.sub(replacement, text))


def unknown(key: str, known: Iterable[str], what: str) -> str:
    names = list(known)
    return f"{what} has no key {key!r}{_near(key, names)}; known: {', '.join(names)}"


def _near(name: str, names: list[str]) -> str:
    by_lower = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f" (did you mean {by_lower[near[0]]}?)" if near else ""


def _kind(node: Node) -> str:
    if isinstance(node, Text):
        return "nothing" if node.value is None else f"the text {node.value!r}"
    return "a list" if isinstance(node, Items) else "a mapping"
