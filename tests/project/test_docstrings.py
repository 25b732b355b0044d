"""Every public class, function and method: a numpydoc docstring that tells the truth.

Its parameters are those of the signature, in their order, and its examples run as printed.
"""

import doctest
import inspect

import numpydoc.docscrape
import pytest

import skanneal
import skanneal.schedules
import skanneal.tempering

MODULES = (skanneal, skanneal.schedules, skanneal.tempering)


def public_objects():
    """Yield (name, object) for each public class and function, and each class's own methods.

    Methods that scikit-learn provides (`get_params`, the routing requests) are its own affair.
    """
    for module in MODULES:
        for name in module.__all__:
            member = getattr(module, name)
            if not inspect.isclass(member) and not inspect.isfunction(member):
                continue
            name = f"{module.__name__}.{name}"
            yield name, member
            for method_name, method in inspect.getmembers(member, inspect.isfunction):
                if not method_name.startswith("_") and method.__module__.startswith("skanneal"):
                    yield f"{name}.{method_name}", method


def is_method(name):
    return name.rpartition(".")[0] not in {module.__name__ for module in MODULES}


def is_record(member):
    """Whether a class is a named tuple, whose fields numpydoc lists as attributes."""
    return hasattr(member, "_fields")


OBJECTS = dict(public_objects())
# A class or a function explains itself by example; methods, bases and plain records (named tuples)
# may lean on the examples of what uses them.
WITH_EXAMPLE = {
    name
    for name, member in OBJECTS.items()
    if not is_method(name) and not is_record(member) and ".Base" not in name
}


def parameter_names(signature):
    """Names of a signature's parameters as numpydoc writes them, `self` left out."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        stars.get(parameter.kind, "") + name
        for name, parameter in signature.parameters.items()
        if name != "self"
    ]


def documented_names(doc, section):
    """Names of a docstring's section: "a, b : int" counts as two."""
    return [name.strip() for entry in doc[section] for name in entry.name.split(",")]


def faults(member):
    """Describe what is missing from a docstring or contradicts the signature."""
    doc = numpydoc.docscrape.NumpyDocString(inspect.getdoc(member) or "")
    found = [] if doc["Summary"] else ["no summary"]
    signature = parameter_names(inspect.signature(member))
    documented = documented_names(doc, "Attributes" if is_record(member) else "Parameters")
    if documented != signature:
        found.append(f"documents {documented}, takes {signature}")
    for section in ("Parameters", "Attributes"):
        found += [f"{entry.name}: no text" for entry in doc[section] if not any(entry.desc)]
    return found


def test_public_names_are_found():
    assert "skanneal.AnnealedDPMixture.score_samples" in OBJECTS
    assert "skanneal.schedules.LinearAnneal" in OBJECTS


@pytest.mark.parametrize("name", OBJECTS)
def test_docstring_matches_signature(name):
    assert faults(OBJECTS[name]) == []


@pytest.mark.parametrize("name", OBJECTS)
def test_examples_run(name):
    finder = doctest.DocTestFinder(recurse=False)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    output = []
    # Nothing is put into the example's namespace: it must import what it uses.
    for example in finder.find(OBJECTS[name], name, globs={}):
        runner.run(example, out=output.append)
    assert runner.failures == 0, "".join(output)
    assert runner.tries > 0 or name not in WITH_EXAMPLE, "no example"


def undocumented(a):
    pass


def misdocumented(a, b):
    """Say something.

    Parameters
    ----------
    a : int
        First.
    c : int
        Not a parameter.
    """


def textless(a):
    """Say something.

    Parameters
    ----------
    a : int
    """


@pytest.mark.parametrize("member", [undocumented, misdocumented, textless])
def test_faulty_docstring_is_found(member):
    assert faults(member) != []
