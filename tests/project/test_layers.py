"""The package's floors: a module imports only from its own floor or a lower one, without cycles.

The test reads the `import` and `cimport` lines themselves, wherever they stand (a late import
inside a function is an import too), so it needs no compiled package. A `.pyx` and its `.pxd` are
one module.
"""

import graphlib
import re

import pytest

from oracles.places import ROOT

PACKAGE = ROOT / "skanneal"
SUFFIXES = {".py", ".pyx", ".pxd"}

# The first name below skanneal, a room -> its floor; "" is skanneal/__init__.py, which sees all.
FLOORS = {
    "_native": 0,
    "schedules": 0,
    "parallel": 0,
    "summary": 0,
    "families": 1,
    "partition_priors": 1,
    "likelihoods": 2,
    "states": 2,
    "encoding": 2,
    "moves": 3,
    "chains": 4,
    "predictive": 5,
    "tempering": 5,
    "sharded": 6,
    "estimators": 7,
    "displays": 8,
    "": 9,
}

STRING_OR_COMMENT = re.compile(
    r'"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\''
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*',
    re.DOTALL,
)
# Anchored at the line's start, so `cdef extern from "header.h"` is not an import.
FROM = re.compile(
    r"^[ \t]*from[ \t]+(\.*[\w.]*)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n]*)", re.MULTILINE
)
IMPORT = re.compile(r"^[ \t]*c?import[ \t]+([^\n]+)", re.MULTILINE)


def module_files(package):
    """Map each module's dotted name to its source files (.py, .pyx, .pxd)."""
    files = {}
    for path in sorted(package.rglob("*")):
        if path.suffix in SUFFIXES:
            parts = [package.name, *path.relative_to(package).with_suffix("").parts]
            if parts[-1] == "__init__":
                parts.pop()
            files.setdefault(".".join(parts), []).append(path)
    return files


def imported_names(clause):
    """Names of an import clause: "(a as b, c)" -> ["a", "c"]."""
    without_continuation = clause.strip("() \t").replace("\\\n", " ")
    items = (item.split() for item in re.split(r"[,;\n]", without_continuation))
    return [item[0].strip("()") for item in items if item]


def absolute(base, module, is_package):
    """Resolve the part after `from`, relative or not, to a dotted name."""
    n_dots = len(base) - len(base.lstrip("."))
    if n_dots == 0:
        return base
    parents = module.split(".")
    n_up = n_dots - 1 if is_package else n_dots
    parents = parents[: len(parents) - n_up]
    return ".".join([*parents, *filter(None, [base[n_dots:]])])


def module_imports(module, paths, files):
    """Modules of the package that `module` imports, its own name left out."""
    root = module.split(".")[0]
    found = set()
    for path in paths:
        source = path.read_text(encoding="utf-8").replace("\\\n", " ")
        source = STRING_OR_COMMENT.sub('""', source)
        for base, clause in FROM.findall(source):
            base = absolute(base, module, is_package=path.stem == "__init__")
            for name in imported_names(clause):
                # `from package import name` reaches a submodule where there is one of that name.
                submodule = f"{base}.{name}"
                found.add(submodule if submodule in files else base)
        for clause in IMPORT.findall(source):
            found.update(imported_names(clause))
    return {name for name in found if name.split(".")[0] == root and name != module}


def floor(module):
    """The floor of a dotted module name, None where FLOORS does not know it."""
    return FLOORS.get((module.split(".") + [""])[1])


def violations(package):
    """Describe every unknown module, upward import and import cycle below `package`."""
    files = module_files(package)
    graph = {module: module_imports(module, paths, files) for module, paths in files.items()}
    found = [f"{module}: not in FLOORS" for module in graph if floor(module) is None]
    for module, imports in graph.items():
        for imported in sorted(imports):
            if imported not in files:
                found.append(f"{module}: imports {imported}, which does not exist")
            elif (floor(imported) or 0) > (floor(module) or 0):
                found.append(f"{module}: imports upward from {imported}")
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        found.append("cycle: " + " <- ".join(error.args[1]))
    return found


def test_package_has_no_violation():
    assert violations(PACKAGE) == []


def test_every_module_stands_in_a_room():
    assert [path.name for path in PACKAGE.glob("*.p*") if path.suffix in SUFFIXES] == [
        "__init__.py"
    ]


def test_a_plan_is_handed_down_as_it_is_drawn():
    """The design page lists the modules that read a ChainPlan; each hands it to later ones only."""
    page = (ROOT / "doc" / "design.md").read_text(encoding="utf-8")
    listed = re.findall(r"^ +\w+ +chains/(\w+)\.py: ", page, re.MULTILINE)
    files, rooms = module_files(PACKAGE), [f"skanneal.chains.{name}" for name in listed]
    for i, room in enumerate(rooms):
        assert module_imports(room, files[room], files).isdisjoint(rooms[:i])
    sources = {path.stem: path.read_text("utf-8") for path in (PACKAGE / "chains").glob("*.py")}
    codes = {name: STRING_OR_COMMENT.sub('""', source) for name, source in sources.items()}
    assert {name for name in codes if re.search(r"\bplan\b", codes[name])} == set(listed)


# What is longer than 500 lines: one algorithm, whose formulas are read side by side.
LONG = {
    "families/_multinomial.pyx": "rows of counts, dense and sparse, with one set of statistics",
    "families/_multivariate_normal.pyx": "updates of Cholesky factors beside what they score",
    "families/_multivariate_t.pyx": "the sum over a row's weight beside what is drawn given it",
    "moves/_order_programs.pyx": "the exact, the quadratic and the beam program over one order",
}


def test_files_are_short():
    lengths = {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8").count("\n")
        for path in PACKAGE.rglob("*")
        if path.suffix in SUFFIXES
    }
    assert {name for name, length in lengths.items() if length > 500} == LONG.keys()
    assert max(lengths.values()) <= 600


def test_reader_sees_the_package():
    """Guards the test above against passing because it read nothing."""
    files = module_files(PACKAGE)
    graph = {module: module_imports(module, paths, files) for module, paths in files.items()}
    assert {floor(module) for module in graph} >= set(range(10))
    assert any(floor(name) == 1 for name in graph["skanneal.states._mixture"])


SOUND = {
    "__init__.py": "from .estimators import Fit\n",
    "_native/_math.pxd": "cdef extern from 'math.h' nogil:\n    double log(double x)\n",
    "schedules/__init__.py": '"""Doc.\n\nimport skanneal.chains\n"""\n# import skanneal.chains\n',
    "families/__init__.py": "from ._base import FamilyBlock\n",
    "families/_base.pxd": "from .._native._math cimport log\n",
    "families/_base.pyx": "from skanneal._native._math cimport log\n",
    "states/__init__.py": "",
    "states/_mixture.pyx": "from skanneal.families._base cimport (\n    FamilyBlock,\n)\n",
    "chains/__init__.py": "from .. import schedules\nfrom ..states import (\n    _mixture,\n)\n",
    "estimators/__init__.py": "from skanneal import chains\n",
}

# A fault planted in the sound tree -> (the file or files that hold it, what must be reported).
FAULTS = {
    "absolute import": (
        {"states/_mixture.pyx": "from skanneal.chains import run_chain\n"},
        "skanneal.states._mixture: imports upward from skanneal.chains",
    ),
    "relative cimport": (
        {"families/_base.pyx": "from ..states._mixture cimport Mixture\n"},
        "skanneal.families._base: imports upward from skanneal.states._mixture",
    ),
    "module named after import": (
        {"schedules/__init__.py": "from skanneal import chains\n"},
        "skanneal.schedules: imports upward from skanneal.chains",
    ),
    "over several lines": (
        {"schedules/__init__.py": "from .. import (\n    chains,\n)\n"},
        "skanneal.schedules: imports upward from skanneal.chains",
    ),
    "plain cimport": (
        {"_native/_math.pxd": "cimport skanneal.families._base as base\n"},
        "skanneal._native._math: imports upward from skanneal.families._base",
    ),
    "inside a function": (
        {"schedules/__init__.py": "def f():\n    import skanneal.chains\n"},
        "skanneal.schedules: imports upward from skanneal.chains",
    ),
    "the package itself": (
        {"chains/__init__.py": "from skanneal import Fit\n"},
        "skanneal.chains: imports upward from skanneal",
    ),
    "after a string of quotes": (
        {"schedules/__init__.py": 'x = \'"""\'\nfrom .. import chains\n'},
        "skanneal.schedules: imports upward from skanneal.chains",
    ),
    "cycle on a floor": (
        {
            "families/_base.pxd": "from ._table cimport Table\n",
            "families/_table.pyx": "from ._base import FamilyBlock\n",
        },
        "cycle: ",
    ),
    "unknown module": ({"helpers.py": ""}, "skanneal.helpers: not in FLOORS"),
    "absent module": (
        {"chains/__init__.py": "import skanneal.nowhere\n"},
        "skanneal.chains: imports skanneal.nowhere, which does not exist",
    ),
}


def write_package(folder, files):
    for name, text in files.items():
        path = folder / "skanneal" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "skanneal"


def test_sound_tree_passes(tmp_path):
    assert violations(write_package(tmp_path, SOUND)) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found(tmp_path, fault):
    files, report = FAULTS[fault]
    found = violations(write_package(tmp_path, SOUND | files))
    assert any(line.startswith(report) for line in found), found
