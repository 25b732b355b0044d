"""Rooms of the tests and of the benchmarks: which there are, and which import from which.

Tests share modules of `tests/oracles`; no test module imports from another, so that each may be
moved, split or deleted by itself. Benchmarks share modules of `benchmarks/harness`, which imports
from no other room.
"""

import ast

import pytest

from oracles.places import ROOT

PACKAGE, TESTS, BENCHMARKS = ROOT / "skanneal", ROOT / "tests", ROOT / "benchmarks"
BENCHMARK_ROOMS = {"harness", "kernels", "papers", "peers", "fits"}


def imports(path):
    """Dotted names that a module imports, wherever in it; "from a import b" imports a and a.b."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def faults_of_tests(folder, rooms):
    """What is wrong with a folder of tests whose rooms may have these names."""
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        room = name.parts[0] if len(name.parts) == 2 else None
        if room not in rooms and name.name != "conftest.py":
            yield f"{name} stands in no room"
        for imported in imports(path):
            last = imported.split(".")[-1]
            if last == "conftest" or any(
                part.startswith("test_") for part in imported.split(".")[:2]
            ):
                yield f"{name} imports {imported}"


def faults_of_benchmarks(folder):
    """What is wrong with a folder of benchmarks."""
    stems = {path.stem for path in folder.rglob("*.py")} - BENCHMARK_ROOMS - {"__init__"}
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        room = name.parts[0] if len(name.parts) == 2 else None
        if room not in BENCHMARK_ROOMS:
            yield f"{name} stands in no room"
        for imported in imports(path):
            first = imported.split(".")[0]
            if first in BENCHMARK_ROOMS - {"harness", room}:
                yield f"{name} imports {imported}"
            elif first == "" or first in stems:
                yield f"{name} imports {imported} without its room"


def rooms_of_tests():
    """The package's rooms, and two that stand beside them."""
    return {path.parent.name for path in PACKAGE.glob("*/__init__.py")} | {"oracles", "project"}


def test_tests_stand_in_rooms_and_import_from_no_test():
    assert list(faults_of_tests(TESTS, rooms_of_tests())) == []


def test_benchmarks_import_from_the_harness_alone():
    assert list(faults_of_benchmarks(BENCHMARKS)) == []


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("moves/test_a.py", "from test_b import c", "imports test_b"),
        ("moves/test_a.py", "import moves.test_b as b", "imports moves.test_b"),
        ("moves/test_a.py", "from moves import test_b", "imports moves.test_b"),
        ("moves/test_a.py", "def f():\n    from .test_b import c", "imports .test_b"),
        ("oracles/a.py", "import test_b", "imports test_b"),
        ("moves/test_a.py", "from conftest import ROOT", "imports conftest"),
        ("test_a.py", "", "stands in no room"),
        ("elsewhere/test_a.py", "", "stands in no room"),
        ("moves/deeper/test_a.py", "", "stands in no room"),
    ],
)
def test_a_fault_of_the_tests_is_seen(name, text, fault, tmp_path):
    write(tmp_path, {name: text, "moves/test_b.py": "from oracles.mixtures import make_table"})
    assert any(fault in found for found in faults_of_tests(tmp_path, {"oracles", "moves"}))


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("fits/a.py", "from peers.b import c", "fits/a.py imports peers.b"),
        ("harness/a.py", "def f():\n    from peers import b", "harness/a.py imports peers"),
        ("peers/a.py", "import b", "peers/a.py imports b without its room"),
        ("peers/a.py", "from .b import c", "peers/a.py imports .b without its room"),
        ("a.py", "", "a.py stands in no room"),
    ],
)
def test_a_fault_of_the_benchmarks_is_seen(name, text, fault, tmp_path):
    write(tmp_path, {name: text, "peers/b.py": "from harness.lines import Lines"})
    assert fault in list(faults_of_benchmarks(tmp_path))


def test_what_is_right_has_no_fault(tmp_path):
    write(tmp_path / "tests", {"moves/test_a.py": "from oracles import b", "oracles/b.py": ""})
    assert list(faults_of_tests(tmp_path / "tests", {"oracles", "moves"})) == []
    own = {"fits/fits.py": "from fits.b import c\nfrom harness import d", "fits/b.py": "import os"}
    write(tmp_path / "benchmarks", own | {"harness/d.py": ""})
    assert list(faults_of_benchmarks(tmp_path / "benchmarks")) == []


def write(folder, files):
    """Make files, by their paths in a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
