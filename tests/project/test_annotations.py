"""The public face is annotated: what `py.typed` promises to type checkers."""

import inspect
import re
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from numpydoc.docscrape import NumpyDocString

import skanneal
from skanneal import displays, schedules, summary, tempering

ROOMS = (skanneal, displays, schedules, summary, tempering)
CONSUMER = Path(__file__).with_name("typing_consumer.py")


def functions():
    """The package's own public functions, methods and constructors, by their names."""
    for room in ROOMS:
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


NAMED = {"str": str, "int": int, "float": float, "bool": bool, "None": type(None)}
TAKEN_FOR = {int: {float}, bool: {int, float}}  # what a type checker takes for what


def documented(function):
    """(parameter, type) of the types in a docstring that are plain, a text in quotes being one."""
    for entry in NumpyDocString(inspect.getdoc(function) or "")["Parameters"]:
        text = re.sub(r",? default.*|\(.*?\)", "", entry.type).replace("{", "").replace("}", "")
        for word in re.split(r", | or ", text) if "," not in entry.name else ():
            kind = str if word.startswith('"') else NAMED.get(word.strip())
            if kind is not None:
                yield entry.name, kind


def refused(function, docstring_of):
    """The documented values that the annotations refuse."""
    hints = get_type_hints(function)
    for name, kind in documented(docstring_of):
        union = get_origin(hints[name]) in (Union, UnionType)
        taken = set(get_args(hints[name])) if union else {hints[name]}
        if not taken & {Any, kind, *TAKEN_FOR.get(kind, ())}:
            yield f"{name} is documented as {kind.__name__}, but annotated {hints[name]}"


@pytest.mark.parametrize("name, function", list(functions()))
def test_annotations_take_what_is_documented(name, function):
    of, _, method = name.partition(".")
    if of in OWN_SORT:
        return
    owner = next(getattr(room, of) for room in ROOMS if hasattr(room, of))
    assert [*refused(function, owner if method == "__init__" else function)] == []


def test_a_documented_value_that_is_refused_is_found():
    def sample(n_draws: int = "auto", init: str | float = None):
        """Sample.

        Parameters
        ----------
        n_draws : int or "auto", default="auto"
            How many.
        init : None, "one", int or {"two", "three"}, default=None
            Where from.
        """

    assert [fault.split(",")[0] for fault in refused(sample, sample)] == [
        "n_draws is documented as str",
        "init is documented as NoneType",
    ]


def test_a_function_without_annotations_is_found():
    def fit(self, X: list, y=None):
        return self

    assert lacking(fit) == ["y", "return"]


def test_the_script_for_type_checkers_has_every_estimator():
    text = CONSUMER.read_text(encoding="utf-8")
    assert [name for name in skanneal.__all__ if not re.search(rf"\b{name}\(", text)] == []
