"""The two doors of the client offer the same: names, parameters, defaults; and say what each of them does."""

from __future__ import annotations

import enum
import inspect
from typing import Any

import pytest

from cometmq.client import aio, sync
from cometmq.client.aio.instance.roles import ConsumerRole

CLASSES = [
    "LitePullConsumer",
    "Producer",
    "PullConsumer",
    "PullSchedule",
    "PushConsumer",
    "TransactionProducer",
    "Turn",
]
TWIN_METHODS = {"__aenter__": "__enter__", "__aexit__": "__exit__", "__aiter__": "__iter__"}
# A push consumer is itself what its instance asks about the group; no user calls these.
ASKED_BY_THE_INSTANCE = {"PushConsumer": set(vars(ConsumerRole)) - {"group"}}


def _members(kind: type) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        members |= vars(base)
    return {
        TWIN_METHODS.get(name, name): member
        for name, member in members.items()
        if not name.startswith("_") or name in TWIN_METHODS or name in TWIN_METHODS.values()
    }


def _parameters(function: Any) -> list[tuple[str, Any, Any]]:
    return [
        (parameter.name, parameter.kind, parameter.default)
        for parameter in inspect.signature(function).parameters.values()
    ]


def test_both_doors_export_the_same_names() -> None:
    assert sync.__all__ == aio.__all__
    for name in sync.__all__:
        assert hasattr(sync, name), name


def test_the_list_of_classes_is_complete() -> None:
    different = [
        name for name in aio.__all__ if getattr(aio, name) is not getattr(sync, name, None)
    ]
    assert different == CLASSES


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_the_same_members(name: str) -> None:
    theirs = set(_members(getattr(aio, name))) - ASKED_BY_THE_INSTANCE.get(name, set())
    assert set(_members(getattr(sync, name))) == theirs


@pytest.mark.parametrize("name", CLASSES)
def test_objects_have_the_same_attributes(name: str) -> None:
    def public(door: Any) -> set[str]:
        needed: dict[str, dict[str, Any]] = {
            "PushConsumer": {"listener": print},
            "TransactionProducer": {"execute": print, "check": print},
        }
        made = (
            getattr(door, name)(door.PullConsumer("group"))
            if name in ("PullSchedule", "Turn")
            else getattr(door, name)("group", **needed.get(name, {}))
        )
        return {attribute for attribute in getattr(made, "__dict__", {}) if attribute[0] != "_"}

    assert public(sync) == public(aio)


@pytest.mark.parametrize("name", CLASSES)
def test_constructors_have_the_same_parameters(name: str) -> None:
    assert _parameters(getattr(sync, name)) == _parameters(getattr(aio, name))


@pytest.mark.parametrize("name", CLASSES)
def test_methods_have_the_same_parameters_and_defaults(name: str) -> None:
    ours, theirs = _members(getattr(sync, name)), _members(getattr(aio, name))
    compared = 0
    for member in ours:
        assert isinstance(ours[member], property) == isinstance(theirs[member], property), member
        if inspect.isfunction(ours[member]):
            assert _parameters(ours[member]) == _parameters(theirs[member]), member
            compared += 1
    assert compared or name == "Turn"


@pytest.mark.parametrize("name", CLASSES)
def test_everything_says_what_it_does_and_nothing_is_a_coroutine(name: str) -> None:
    kind = getattr(sync, name)
    assert kind.__doc__
    for member, value in _members(kind).items():
        if member in ("__enter__", "__exit__"):
            continue
        assert not inspect.iscoroutinefunction(value), member
        if inspect.isfunction(value) or isinstance(value, property):
            assert value.__doc__, f"{name}.{member} has no docstring"


@pytest.mark.parametrize("name", CLASSES)
def test_every_parameter_and_result_has_a_type(name: str) -> None:
    for member, value in _members(getattr(sync, name)).items():
        if inspect.isfunction(value):
            signature = inspect.signature(value)
            assert signature.return_annotation is not inspect.Signature.empty, member
            for parameter in list(signature.parameters.values())[1:]:
                assert parameter.annotation is not inspect.Parameter.empty, (member, parameter)


def test_the_shared_names_are_values_and_functions() -> None:
    for name in set(aio.__all__) - set(CLASSES):
        value = getattr(sync, name)
        assert (
            inspect.isfunction(value)
            or issubclass(value, enum.Enum | Exception)
            or hasattr(value, "__slots__")
        ), name
