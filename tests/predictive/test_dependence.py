"""Whether columns of a view depend on each other, against exact sums over all values."""

import itertools

import numpy as np
import pytest

from oracles.mixtures import COLUMN_FAMILIES, make_mixture, random_column, set_partition
from skanneal import CrossCatPY
from skanneal.encoding._schema import Schema
from skanneal.predictive import _dependence
from skanneal.predictive._dependence import Told, cost, dependences, information, observed
from skanneal.predictive._relevance import relevances
from skanneal.predictive._view import View

PSEUDO_COUNTS = 0.05


def levels(columns, labels, n_levels=2):
    """A view of columns of levels whose rows have these components, and its schema."""
    hyper = {"pseudo_counts": [PSEUDO_COUNTS] * n_levels}
    mixture, _ = make_mixture([("categorical", x.tolist(), hyper) for x in columns.T])
    set_partition(mixture, labels)
    return View(mixture), Schema.of_table(mixture.table)


def exclusive_or(n_rows, n_triples):
    """Triples of columns, the third of which is 1 where one of the others is, and the 4^n
    components."""
    bits = np.random.default_rng(0).integers(2, size=(n_rows, n_triples, 2))
    columns = np.dstack([bits, bits.sum(axis=2) % 2]).reshape(n_rows, -1)
    labels = np.unique(bits.reshape(n_rows, -1), axis=0, return_inverse=True)[1]
    return columns, labels.ravel()


def test_triples_of_one_view():
    """Pairs of a triple depend on each other given its third; those of two triples never. The
    controls: each column has to do with the components; no pair tells of each other."""
    columns, labels = exclusive_or(600, 2)
    view, schema = levels(columns, labels)
    assert min(relevances(view).values()) > 0.999
    found = dependences(view, schema)[1]
    triple = np.arange(6) // 3
    same = (triple[:, None] == triple) & ~np.eye(6, dtype=bool)
    assert found[same].min() > 0.999 and found[triple[:, None] != triple].mean() < 0.1
    one, schema = levels(columns[:, :2], labels)
    assert dependences(one, schema)[1][0, 1] < 0.5


def test_columns_by_distinctions_of_their_own():
    """Two columns of three levels, independent of each other in the nine components that tell both;
    the control has three components, of equal values."""
    rng = np.random.default_rng(0)
    columns = rng.integers(3, size=(400, 2))
    view, schema = levels(columns, 3 * columns[:, 0] + columns[:, 1], 3)
    assert min(relevances(view).values()) > 0.999 and dependences(view, schema)[1][0, 1] < 0.05
    view, schema = levels(columns[:, [0, 0]], columns[:, 0], 3)
    assert dependences(view, schema)[1][0, 1] > 0.999


def exact(view, columns):
    """By columns the squared canonical correlations, and the informations of the first two: of each
    other, and given the third."""
    weights = np.exp(view.log_weights)
    of = [view.level_probabilities(j) for j in columns]  # (K + 1, n_levels)
    squares = []
    for p in of:
        joint = weights[:, None] * p
        ratio = joint / np.sqrt(np.multiply.outer(weights, joint.sum(axis=0)))
        squares.append(np.linalg.svd(ratio, compute_uv=False)[1:] ** 2)
    joint = np.einsum("k,kx,ky,kz->xyz", weights, *of)
    pair, alone, given = joint.sum(axis=2), 0.0, 0.0
    for x, y, z in itertools.product(*map(range, joint.shape)):
        margins = pair.sum(axis=1)[x] * pair.sum(axis=0)[y]
        alone += joint[x, y, z] * np.log(pair[x, y] / margins)
        both = joint[x, :, z].sum() * joint[:, y, z].sum()
        given += joint[x, y, z] * np.log(joint[x, y, z] * joint[:, :, z].sum() / both)
    return squares, alone, given


def test_expectations_are_those_of_the_law(monkeypatch):
    """Three columns of three levels, which five components tell a little."""
    monkeypatch.setattr(_dependence, "N_SIMULATED", 10_000)
    rng = np.random.default_rng(1)
    labels = np.repeat(np.arange(5), 12)
    columns = (labels[:, None] * [1, 2, 1] + rng.integers(2, size=(60, 3))) % 3
    view, schema = levels(columns, labels, 3)
    squares, alone, given = exact(view, range(3))
    logs, weights = _dependence.simulated(view, schema, [0, 1, 2])
    x, y, z = (Told.of(of, weights) for of in logs)
    for told, expected in zip((x, y, z), squares, strict=True):
        np.testing.assert_allclose(np.sort(told.squares)[::-1][:2], expected[:2], atol=0.03)
        assert np.sort(told.squares)[::-1][2:].max() < 0.03
    assert information(x, y, weights) == pytest.approx(alone, abs=0.02)
    rest = _dependence.components(np.log(weights) + logs[2])
    assert information(x, y, rest) == pytest.approx(given, abs=0.02)
    assert abs(alone - given) > 0.05  # one is not the other


def test_what_freedom_costs():
    """Of groups that do not overlap Schwarz's criterion; no more than K - 1 numbers are free, and
    no fewer than one."""
    x, y = (Told(None, np.r_[np.zeros(9 - g), np.ones(g)]) for g in (2, 3))  # three, four groups
    assert cost(100.0, x, y) == pytest.approx(0.5 * 6 * np.log(101.0))
    assert cost(100.0, y, y) == pytest.approx(0.5 * 8 * np.log(101.0))
    nothing = Told(None, np.zeros(9))
    assert cost(100.0, x, nothing) == pytest.approx(0.5 * np.log(101.0))
    half = Told(None, np.r_[np.zeros(8), 0.5])
    assert cost(100.0, half, half) == pytest.approx(0.5 * np.log(101.0))
    assert cost(100.0, x, half) == pytest.approx(np.log(51.0))


@pytest.mark.parametrize("family", COLUMN_FAMILIES)
def test_cells_are_counted(family):
    rng = np.random.default_rng(0)
    columns = [random_column(family, 30, rng, missing=rate) for rate in (0.0, 0.4)]
    mixture, _ = make_mixture(columns)
    set_partition(mixture, np.repeat([0, 2], 15))
    view = View(mixture)
    counts = dict(pair for block in mixture.blocks for pair in observed(block, view.slots[:-1]))
    table = mixture.table
    assert counts == {j: int((~table.missing(j)).sum()) for j in (0, 1)}
    assert counts[0] == 30 > counts[1]


def test_gaps_are_no_evidence():
    """Rows count as far as both cells are there; the control counts all of them."""
    rng = np.random.default_rng(0)
    x = rng.integers(2, size=300)
    columns = np.column_stack([x, np.where(rng.random(300) < 0.65, x, 1 - x)]).astype(float)
    columns[rng.random(columns.shape) < 0.5] = np.nan
    hyper = {"pseudo_counts": [PSEUDO_COUNTS] * 2}
    mixture, _ = make_mixture([("categorical", of.tolist(), hyper) for of in columns.T])
    set_partition(mixture, x)
    view, schema = View(mixture), Schema.of_table(mixture.table)
    logs, weights = _dependence.simulated(view, schema, [0, 1])
    x, y = (Told.of(of, weights) for of in logs)
    found = _dependence.of_single_columns(view, schema, [0, 1])[0, 1]
    seen = 300 * np.prod(np.mean(~np.isnan(columns), axis=0))
    odds = [n * information(x, y, weights) - cost(n, x, y) for n in (seen, 300)]
    assert np.log(found / (1.0 - found)) == pytest.approx(odds[0]) and odds[1] > odds[0] + 1.0


def test_a_finite_prior_may_have_no_further_component():
    """Where a draw has all the components that there can be, a new one has no weight."""
    rng = np.random.default_rng(0)
    sides = rng.choice([-6.0, 0.0, 6.0], size=(120, 1))
    X = np.c_[sides + rng.normal(size=(120, 2)), rng.normal(size=120)]
    model = CrossCatPY(
        partition_prior="finite",
        concentration=2.0,
        expected_clusters=(1, 3),
        schedule="linear_anneal",
        n_chains=1,
        random_state=0,
    ).fit(X)
    found = model.dependence_probability()
    assert found[0, 1] > 0.9 > 0.5 > found[0, 2]
