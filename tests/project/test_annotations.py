"""The public face is annotated: what `py.typed` promises to type checkers."""

import inspect
import re
from pathlib import Path

import pytest

import skanneal
from skanneal import displays, schedules, summary, tempering

CONSUMER = Path(__file__).with_name("typing_consumer.py")


def functions():
    """The package's own public functions, methods and constructors, by their names."""
    for room in (skanneal, displays, schedules, summary, tempering):
        for name in room.__all__:
            member = getattr(room, name)
            if inspect.isclass(member) and issubclass(member, tuple):
                continue
            for of, function in methods(member) if inspect.isclass(member) else [("", member)]:
                if inspect.isfunction(function) and function.__module__.startswith("skanneal"):
                    yield f"{name}.{of}".rstrip("."), function


def methods(cls):
    """Names and functions of the methods that a class has, of its bases too."""
    for name in dir(cls):
        if name == "__init__" or not name.startswith("_"):
            yield name, getattr(getattr(cls, name, None), "__func__", getattr(cls, name, None))


def lacking(function):
    """The parameters without an annotation, and "return"."""
    signature = inspect.signature(function)
    parameters = [p.name for p in signature.parameters.values() if p.annotation is p.empty]
    result = ["return"] if signature.return_annotation is signature.empty else []
    return [name for name in parameters if name not in ("self", "cls")] + result


OWN_SORT = {"Pacer", "Path", "Segment", "resolve_schedule", "size_at"}  # of the chains' own use


@pytest.mark.parametrize("name, function", list(functions()))
def test_public_functions_are_annotated(name, function):
    if name.split(".")[0] not in OWN_SORT:
        assert lacking(function) == [], name


def test_a_function_without_annotations_is_found():
    def fit(self, X: list, y=None):
        return self

    assert lacking(fit) == ["y", "return"]


def test_the_script_for_type_checkers_has_every_estimator():
    text = CONSUMER.read_text(encoding="utf-8")
    assert [name for name in skanneal.__all__ if not re.search(rf"\b{name}\(", text)] == []
