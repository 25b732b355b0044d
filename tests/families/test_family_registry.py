"""A family's file is the only place that knows it: no second list, and a new one needs no edit."""

import ast
import io
import re
import tokenize
from pathlib import Path

import numpy as np
import pytest

from oracles.places import ROOT
from skanneal import AnnealedDPMixture, CrossCatPY
from skanneal.encoding._codecs import CODECS
from skanneal.families import FAMILIES
from skanneal.schedules import SequentialGibbs

PACKAGE = ROOT / "skanneal"  # the sources: of what is compiled, an installation has none
# Where names of families may stand beside the family's own file, and why.
ALLOWED = {
    "families/__init__.py": "the registry",
    "likelihoods/*.py": "a likelihood has the name of the family that integrates it",
    "sharded/_data.py": "what is automatic among likelihoods, and who reads another's cells",
}


def literals(text):
    """The string literals of a source: docstrings, which are prose, are none."""
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in (tokenize.NL, tokenize.COMMENT)
    ]
    for before, token in zip([None, *tokens], tokens):
        alone = before is None or before.type in (
            tokenize.NEWLINE,
            tokenize.INDENT,
            tokenize.DEDENT,
        )
        if token.type == tokenize.STRING and not alone and "f" not in token.string[:2].lower():
            value = ast.literal_eval(token.string)
            if isinstance(value, str):
                yield value


def second_lists(package):
    """(file, family) for each literal name of a family where none may stand."""
    found = []
    for path in sorted([*package.rglob("*.py"), *package.rglob("*.pyx")]):
        name = path.relative_to(package)
        if any(name.match(pattern) for pattern in ALLOWED):
            continue
        for value in literals(path.read_text(encoding="utf-8")):
            for family in FAMILIES:
                own = name == Path("families", f"_{family}.pyx")
                if not own and re.search(rf"(?<![\w.]){family}(?![\w.])", value):
                    found.append((name.as_posix(), family))
    return found


def test_no_second_list_of_families():
    assert second_lists(PACKAGE) == []


@pytest.mark.parametrize(
    "line",
    ['VARIANCES = {"normal": 1}', 'if name == "poisson":', 'SORTS = ["level", "categorical"]'],
)
def test_a_second_list_is_found(tmp_path, line):
    (tmp_path / "module.py").write_text(f'"""Prose of normal columns."""\n{line}\n    pass\n')
    assert len(second_lists(tmp_path)) == 1


def test_every_family_file_is_in_the_registry():
    named = {
        path.stem[1:]
        for path in Path(PACKAGE, "families").glob("_*.pyx")
        if re.search(r"^    family = \"", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert named == set(FAMILIES)
    assert all(name == family.family for name, family in FAMILIES.items())


@pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))
def test_a_family_says_what_is_asked_of_it(family):
    assert family.cells in CODECS
    assert len(family.forms) == len(family.coordinate_names)
    assert sorted(family.names()) == sorted(family.coordinate_names)
    assert {*family.required, family.bounds_density} - {None} <= set(family.coordinate_names)


@pytest.mark.parametrize("method", ["reserve", "insert", "remove", "from_arrays", "get_hyper"])
def test_bookkeeping_stands_once(method):
    """A column family writes formulas; what it keeps is grown, saved and restored in its bases."""
    sources = [path.read_text(encoding="utf-8") for path in Path(PACKAGE, "families").glob("*.p*")]
    own = re.compile(r"^cdef class \w+\(ColumnFamily\):", re.MULTILINE)
    columns = [text for text in sources if own.search(text)]
    assert len(columns) >= 6
    written = rf"^    (c?def|cdef [\w ]+) {method}\("
    assert any(re.search(written, text, re.MULTILINE) for text in sources)
    allowed = 1 if method == "get_hyper" else 0  # one pseudo-count per level: no matrix
    assert sum(bool(re.search(written, text, re.MULTILINE)) for text in columns) <= allowed


@pytest.mark.parametrize("family", FAMILIES)
def test_documents_name_every_family(family):
    guide = Path(ROOT, "doc", "families.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {family} \| (.*)$", guide, re.MULTILINE)
    assert all(f"`{name}`" in row for name in FAMILIES[family].names())
    algorithms = Path(ROOT, "doc", "algorithms.md").read_text(encoding="utf-8")
    assert f"**{family}.**" in algorithms


# ---- a family that nothing but the registry knows ------------------------------------------------


@pytest.fixture(params=["normal", "gamma_exponential", "poisson"])
def dummy(request, monkeypatch):
    """(name of the family that it is, name of the dummy)."""
    parent = FAMILIES[request.param]
    monkeypatch.setitem(FAMILIES, "dummy", type("Dummy", (parent,), {"family": "dummy"}))
    return request.param, "dummy"


@pytest.mark.parametrize("estimator", [AnnealedDPMixture, CrossCatPY])
def test_a_dummy_family_needs_no_edit(estimator, dummy):
    """Validation, encoding, fit and queries are those of the family that it is, bit for bit."""
    rng = np.random.default_rng(0)
    X = rng.poisson(3 + 20.0 * (np.arange(40) % 2)[:, None], (40, 3)).astype(float)
    gaps = X.copy()
    gaps[rng.random(X.shape) < 0.2] = np.nan
    coordinate = FAMILIES["dummy"].names()[-1]
    seen = []
    for name in dummy:
        model = estimator(
            families=name,
            hyperparameters={name: {coordinate: 2.0}},
            schedule=SequentialGibbs(n_sweeps=4),
            n_chains=1,
            random_state=0,
        ).fit(gaps)
        assert list(model.families_) == [name]
        draw = model.draws_[0][0]
        values = draw.hyperparameters[name]
        assert (values[coordinate] == 2.0).all()
        assert list(values) == list(FAMILIES[name].names())
        seen.append(
            [
                *(np.asarray(values[each]) for each in values),
                model.labels_,
                model.score_samples(gaps),
                model.impute(gaps),
                model.sample(5),
                model.surprisal(gaps),
            ]
        )
    for first, second in zip(*seen, strict=True):
        np.testing.assert_array_equal(first, second)
    with pytest.raises(ValueError, match="'dummy'"):
        estimator(families="dumy").fit(X)
