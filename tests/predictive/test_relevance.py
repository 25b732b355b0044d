"""Whether a column has to do with the components of its view, by the formulas of reference.py."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp

from oracles.mixtures import (
    COLUMN_FAMILIES,
    hyper_mapping,
    hyper_vector,
    make_mixture,
    random_column,
    set_partition,
)
from oracles.reference import log_marginal
from skanneal import CrossCatPY
from skanneal.predictive._dependence import dependences
from skanneal.predictive._relevance import relevances
from skanneal.predictive._view import View

PSEUDO_COUNTS, SHAPES = np.geomspace(1e-3, 10**1.5, 10), np.geomspace(0.1, 100.0, 16)
# By family the coordinates that are multiplied, the grid of the one that leads them (the largest
# where it is None), and which of them weighs rows (the sum where it is None).
STRONGER = {
    "categorical": ([0, 1, 2], None, PSEUDO_COUNTS, None),
    "bernoulli": ([0, 1], None, PSEUDO_COUNTS, None),
    "semi_continuous": ([4, 5], None, PSEUDO_COUNTS, None),
    "semi_continuous_log_normal": ([4, 5], None, PSEUDO_COUNTS, None),
    "poisson": ([0, 1], 0, SHAPES, 1),
    "gamma_exponential": ([0, 1], 0, SHAPES, 0),
    "negative_binomial": ([1, 2], 1, SHAPES, 2),
}


def expected(column, labels, most=None):
    """The probability, from the formulas; strengths up to `most` rows for the relevant."""
    family, values, hyper = column
    vector, groups = hyper_vector(family, hyper), [labels == k for k in np.unique(labels)]
    at, first, grid, weight = STRONGER.get(family, ([], None, [1.0], None))
    most = len(labels) / len(groups) if most is None else most
    apart, one = [], []
    for point in grid:
        stronger = vector.copy()
        if at:
            leading = vector[at].max() if first is None else vector[first]
            stronger[at] *= point / leading
        own = hyper_mapping(family, stronger)
        one.append(log_marginal(family, values, own))
        rows = stronger[at].sum() if weight is None else stronger[weight]
        if rows <= most:
            of = ([values[i] for i in np.flatnonzero(group)] for group in groups)
            apart.append(sum(log_marginal(family, x, own) for x in of))
    return expit(logsumexp(apart) - np.log(len(apart)) - logsumexp(one) + np.log(len(one)))


@pytest.mark.parametrize("family", COLUMN_FAMILIES)
def test_it_is_the_posterior_of_the_indicator(family):
    """Of a column without gaps and one with some; the control takes all strengths for both."""
    rng = np.random.default_rng(1)
    columns = [random_column(family, 24, rng, missing=rate) for rate in (0.0, 0.2)]
    mixture, _ = make_mixture(columns)
    labels = np.repeat([0, 1, 3], 8)
    set_partition(mixture, labels)
    before = mixture.to_arrays()
    found = relevances(View(mixture))
    assert [found[j] for j in (0, 1)] == pytest.approx(
        [expected(column, labels) for column in columns], rel=1e-6
    )
    if family in STRONGER:
        assert found[0] != pytest.approx(expected(columns[0], labels, np.inf), rel=1e-3)
    assert all(np.array_equal(before[name], of) for name, of in mixture.to_arrays().items())


def test_a_view_of_one_component_says_nothing():
    rng = np.random.default_rng(0)
    mixture, _ = make_mixture([random_column("normal", 10, rng)])
    set_partition(mixture, np.zeros(10, dtype=int))
    assert relevances(View(mixture)) == {0: 0.0}


def test_what_components_tell_and_what_they_do_not():
    """Two columns of levels, one of which the components tell, in 200 rows of ten components."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), 20)
    told = np.where(rng.random(200) < 0.8, labels % 3, rng.integers(3, size=200))
    hyper = {"pseudo_counts": [PSEUDO_COUNTS[-1]] * 3}
    columns = [("categorical", x.tolist(), hyper) for x in (told, rng.integers(3, size=200))]
    mixture, _ = make_mixture(columns)
    set_partition(mixture, labels)
    found = relevances(View(mixture))
    assert found[0] > 0.999 and found[1] < 0.05


@pytest.mark.slow
def test_a_pair_depends_where_a_view_makes_it():
    """By columns and draws; a column with itself always does."""
    rng = np.random.default_rng(0)
    side = rng.integers(2, size=120)
    X = pd.DataFrame({"a": 4.0 * side + rng.normal(size=120)})
    X["b"] = np.where(rng.random(120) < 0.9, side, 1 - side).astype(str)
    X["c"] = rng.integers(4, size=120).astype(str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CrossCatPY(n_chains=2, n_draws=4, random_state=0).fit(X)
    found, total = np.asarray(model.dependence_probability()), 0.0
    queries = model._queries()
    schema = queries.encoder.table_schema
    for views, weight in zip(queries.predictor.draws, queries.draw_weights, strict=True):
        for view in views:
            columns, pairs = dependences(view, schema)
            if {0, 1} <= set(columns):
                relevant = relevances(view)
                most = relevant[0] * relevant[1]
                pair = pairs[columns.index(0), columns.index(1)]
                assert 0.0 < pair <= most
                total += weight * pair
    assert found[0, 1] == pytest.approx(total / queries.draw_weights.sum())
    assert found[0, 1] > 0.99 and found[0, 2] < 0.3
    np.testing.assert_array_equal(np.diag(found), 1.0)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_independent_levels_are_said_to_be_so():
    """Four levels in ten columns. The control: most pairs share a view in some draws."""
    X = np.random.default_rng([0, 7]).integers(0, 4, (300, 10)).astype("U1")
    model = CrossCatPY(random_state=0).fit(X)
    pairs = np.triu_indices(10, 1)
    assert np.asarray(model.dependence_probability())[pairs].mean() < 0.05
    views = np.array([draw.view_labels for chain in model.draws_ for draw in chain])
    assert (views[:, :, None] == views[:, None, :]).mean(axis=0)[pairs].mean() > 0.2
