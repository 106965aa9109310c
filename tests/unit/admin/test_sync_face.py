"""The blocking face offers what the asyncio library does, and is what its tool would write now."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cometmq.admin import Admin, sync
from cometmq.client.errors import ClientClosed

ROOT = Path(__file__).parents[3]


def _rooms(kind: type) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(kind).items()
        if isinstance(value, property) and name[0] != "_"
    }


def _room_class(admin: type, room: str) -> type:
    function = _rooms(admin)[room].fget
    return function.__globals__[inspect.signature(function).return_annotation]  # type: ignore[no-any-return]


def _public(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if name[0] != "_"}


def test_the_modules_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "admin_sync.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_both_have_the_same_subjects() -> None:
    assert _rooms(Admin)
    assert set(_rooms(sync.Admin)) == set(_rooms(Admin))
    ours, theirs = (
        [(one.name, one.default) for one in inspect.signature(kind).parameters.values()]
        for kind in (sync.Admin, Admin)
    )
    assert ours == theirs


def test_all_subjects_have_the_same_actions_with_the_same_parameters() -> None:
    for room in _rooms(Admin):
        ours, theirs = _public(_room_class(sync.Admin, room)), _public(_room_class(Admin, room))
        assert ours.keys() == theirs.keys(), room
        for name, function in ours.items():
            if isinstance(function, property):
                continue
            assert not inspect.iscoroutinefunction(function), name
            assert function.__doc__, f"{room}.{name} has no docstring"
            assert (
                inspect.signature(function).parameters == inspect.signature(theirs[name]).parameters
            ), f"{room}.{name}"


class _Twin:
    """Any method of it is its name."""

    def __getattr__(self, name: str) -> str:
        return name


class _Runner:
    """Says what was to be run, and with what."""

    def _run(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        return function, args, kwargs


def test_every_action_hands_its_arguments_on() -> None:
    for room in _rooms(Admin):
        kind = _room_class(sync.Admin, room)
        made = kind(_Runner(), _Twin())
        for name, function in _public(kind).items():
            if isinstance(function, property):
                assert getattr(made, name) == name
                continue
            signature = inspect.signature(function)
            if str(signature.return_annotation).startswith("Iterator"):
                continue  # they ask the twin itself; tests/integration/admin runs them
            parameters = list(signature.parameters.values())[1:]
            given = {one.name: object() for one in parameters}
            asked, args, kwargs = getattr(made, name)(**given)
            assert asked == name
            bound = dict(zip([one.name for one in parameters], args, strict=False)) | kwargs
            assert bound == given, f"{room}.{name}"
            keywords = {one.name for one in parameters if one.kind is one.KEYWORD_ONLY}
            assert set(kwargs) == keywords, f"{room}.{name}"


def test_all_subjects_of_a_blocking_admin_that_is_not_running_say_so() -> None:
    admin = sync.Admin("127.0.0.1:9876")
    for room in _rooms(sync.Admin):
        with pytest.raises(ClientClosed):
            getattr(admin, room)
