"""Writes the blocking face of the admin library, src/cometmq/admin/sync, from its asyncio classes.

python tools/admin_sync.py          # write the modules
python tools/admin_sync.py --check  # exit 1 if one is out of date

Each coroutine method becomes a method that runs it on the loop of the blocking clients and waits; each asynchronous
iterator an iterator. Names, parameters, defaults and docstrings are the same. `admin.py` and `room.py` are written by
hand.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
TARGET = SOURCE / "cometmq" / "admin" / "sync"

MODULES: dict[str, dict[str, list[str]]] = {
    "servers": {
        "cometmq.admin.servers.clusters": ["Clusters"],
        "cometmq.admin.servers.brokers": ["Brokers"],
        "cometmq.admin.servers.name_servers": ["NameServers", "KeyValues"],
        "cometmq.admin.servers.controllers": ["Controllers"],
        "cometmq.admin.servers.replication": ["Replication"],
    },
    "topics": {"cometmq.admin.topics.topics": ["Topics"]},
    "groups": {
        "cometmq.admin.groups.groups": ["Groups"],
        "cometmq.admin.groups.connections": ["Connections"],
        "cometmq.admin.groups.offsets": ["Offsets"],
    },
    "messages": {
        "cometmq.admin.messages.messages": ["Messages"],
        "cometmq.admin.messages.dead_letters": ["DeadLetters"],
        "cometmq.admin.messages.traces": ["Traces"],
    },
    "accounts": {
        "cometmq.admin.accounts.users": ["Users", "Acls"],
        "cometmq.admin.accounts.plain_accounts": ["PlainAccounts"],
    },
    "definitions": {"cometmq.admin.definitions.transfer": ["Transfer"]},
}

HEAD = '''"""The blocking face of ``{house}``. Written by tools/admin_sync.py; do not edit."""

from __future__ import annotations

'''


@dataclass
class Module:
    """A module with asyncio classes: where its names come from, and its classes."""

    name: str
    tree: ast.Module

    @classmethod
    def read(cls, name: str) -> Module:
        path = SOURCE.joinpath(*name.split(".")).with_suffix(".py")
        return cls(name, ast.parse(path.read_text()))

    def sources(self) -> dict[str, str]:
        """The line that imports each name that the module has."""
        found: dict[str, str] = {}
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found[alias.name] = f"from {node.module} import {alias.name}"
            elif isinstance(node, ast.ClassDef):
                found[node.name] = f"from {self.name} import {node.name}"
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found[target.id] = f"from {self.name} import {target.id}"
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = f"from {self.name} import {node.target.id}"
        return found

    def find(self, name: str) -> ast.ClassDef:
        return next(
            node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == name
        )


Function = ast.FunctionDef | ast.AsyncFunctionDef


def blocking_module(house: str, classes: dict[str, list[str]]) -> str:
    imports = {"from cometmq.admin.sync.room import Room"}
    bodies: list[str] = []
    for module_name, names in classes.items():
        module = Module.read(module_name)
        sources = module.sources()
        for name in names:
            found = module.find(name)
            imports.add(f"from {module_name} import {name} as Async{name}")
            methods = list(_methods(found))
            for method in methods:
                imports |= {sources[word] for word in _words(method) if word in sources}
            bodies.append(_class(name, found, methods))
    text = "\n\n".join(bodies)
    if "Iterator[" in text:
        imports.add("from collections.abc import Iterator")
    imports.discard("from collections.abc import AsyncIterator")
    return (
        HEAD.format(house=f"cometmq.admin.{house}") + "\n".join(sorted(imports)) + "\n\n\n" + text
    )


def _methods(found: ast.ClassDef) -> Iterator[Function]:
    for node in found.body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            yield node


def _class(name: str, found: ast.ClassDef, methods: list[Function]) -> str:
    parts = [f"class {name}(Room[Async{name}]):", _docstring(found), ""]
    for method in methods:
        parts += [textwrap.indent(_method(method), "    "), ""]
    return "\n".join(parts)


def _method(method: Function) -> str:
    is_property = any(
        isinstance(mark, ast.Name) and mark.id == "property" for mark in method.decorator_list
    )
    assert method.returns is not None, method.name
    returns = ast.unparse(method.returns).replace("AsyncIterator[", "Iterator[")
    head = "@property\n" if is_property else ""
    head += f"def {method.name}({ast.unparse(method.args)}) -> {returns}:"
    arguments = [argument.arg for argument in method.args.args[1:]]
    arguments += [f"{argument.arg}={argument.arg}" for argument in method.args.kwonlyargs]
    if is_property:
        call = f"self._aio.{method.name}"
    elif "Iterator[" in returns:
        call = f"self._each(self._aio.{method.name}({', '.join(arguments)}))"
    elif isinstance(method, ast.AsyncFunctionDef):
        call = f"self._run({', '.join([f'self._aio.{method.name}', *arguments])})"
    else:
        raise SystemExit(f"{method.name}: expected a coroutine, a property or an async iterator")
    return "\n".join([head, _docstring(method), f"    return {call}"])


def _docstring(node: Function | ast.ClassDef) -> str:
    text = ast.get_docstring(node)
    if text is None:
        return ""
    lines = text.splitlines()
    if len(lines) == 1:
        return f'    """{text}"""'
    return textwrap.indent(
        '"""' + "\n".join(lines) + '\n"""', "    ", lambda line: bool(line.strip())
    )


def _words(method: Function) -> set[str]:
    """Names in its annotations and defaults."""
    nodes: list[ast.AST] = [method.args, *([method.returns] if method.returns else [])]
    return {node.id for outer in nodes for node in ast.walk(outer) if isinstance(node, ast.Name)}


def formatted(path: Path, text: str) -> str:
    """As `make format` would have it."""
    for command in (
        ["check", "--quiet", "--select", "I", "--fix"],
        ["format", "--quiet"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(path), "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        )
        text = done.stdout
    return text


def main() -> None:
    for house, classes in MODULES.items():
        path = TARGET / f"{house}.py"
        text = formatted(path, blocking_module(house, classes))
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            raise SystemExit(f"{path.name} is out of date: run python tools/admin_sync.py")


if __name__ == "__main__":
    main()
