"""Questions to a CrossCatPY whose views have one normal law for their numbers, by slow formulas.

The draws have chosen partitions, so that no answer depends on what chains found; what a query is
compared with is written from the normal-inverse-Wishart formulas and the cells of the members.
"""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp

from oracles.crosscat_fits import all_draws
from oracles.gaps_reference import of_columns
from oracles.links import links_of, log_law
from oracles.reference import log_predictive
from skanneal import CrossCatPY
from skanneal.families import Table
from skanneal.predictive._covariance_odds import covariance_odds
from skanneal.predictive._point import crosscat_arrays
from skanneal.predictive._relevance import relevances
from skanneal.schedules import SequentialGibbs

FAMILY, NUMBERS, N = "multivariate_normal", ["a", "b", "c", "d"], 30
VIEWS = ([0, 0, 1, 1, 0], [0, 1, 1, 1, 1])  # of the numbers and of the levels, in the two draws
CORRELATED = np.full((3, 3), 0.5) + np.eye(3)
QUICK = {"n_chains": 1, "schedule": SequentialGibbs(n_sweeps=3), "random_state": 0}


def frame(seed=0):
    """Numbers on lines in pairs, and levels that go with the first of them."""
    rng = np.random.default_rng(seed)
    one, two = rng.normal(size=(2, N, 1))
    numbers = np.hstack([one, one, two, two]) * [1, -2, 3, 40] + 0.3 * rng.normal(size=(N, 4))
    X = pd.DataFrame(np.float32(numbers).astype(float), columns=NUMBERS)
    return X.assign(k=np.where(one[:, 0] + 0.3 * rng.normal(size=N) > 0, "high", "low"))


@pytest.fixture(scope="module", params=[False, True], ids=["independent", "linked"])
def fitted(request):
    X = frame()
    families, linked = {FAMILY: NUMBERS, "categorical": ["k"]}, {"linked_views": request.param}
    model = CrossCatPY(families=families, point_estimate="map", n_draws=2, **QUICK, **linked).fit(X)
    rng, encoder = np.random.default_rng(1), model._encoder
    table = Table(*encoder.table_schema)
    table.append(encoder.encode(model, X))
    for draw, views in zip(all_draws(model), VIEWS):
        labels = [np.sort(rng.integers(0, 2 + v, N)) for v in range(2)]
        task = np.array(views), labels, [0, 0], draw, encoder.table_families, table
        draw.arrays = crosscat_arrays(*task)
        assert bool(len(draw.arrays.get("link_views", ()))) == request.param
    return model, X, all_draws(model)


# ---- the slow oracle ----------------------------------------------------------------------------


def components(X, draw, v):
    """Of each component of a view, a new one last: its log weight and its rows' positions."""
    labels, alpha, d = draw.row_labels[v], draw.concentration[v], draw.discount[v]
    sizes = np.bincount(labels)
    weights = np.r_[sizes - d, alpha + d * len(sizes)] / (N + alpha)
    rows = [np.flatnonzero(labels == c) for c in range(len(sizes))] + [np.empty(0, int)]
    return list(zip(np.log(weights), rows))


def numbers_of(draw, v):
    return [j for j in range(4) if draw.view_labels[j] == v]


def view_hyper(draw, columns):
    hyper = draw.hyperparameters[FAMILY]
    return of_columns(hyper, columns)


def cell_log_density(X, draw, rows, columns, cells):
    """Of some numbers of a row in one component, and of its level if it has one."""
    members = X[NUMBERS].to_numpy()[rows][:, columns].tolist()
    return log_predictive(FAMILY, list(cells), members, view_hyper(draw, columns))


def level_log_density(X, draw, rows, level):
    counts = draw.hyperparameters["categorical"]["pseudo_counts"][0]
    members = [["high", "low"].index(k) for k in X["k"].iloc[rows]]
    hyper = {"pseudo_counts": list(counts)}
    return log_predictive("categorical", ["high", "low"].index(level), members, hyper)


def log_joints(X, draw, v, row):
    """log w_c p(row's cells in view v | c)."""
    columns = [j for j in numbers_of(draw, v) if not np.isnan(row[j])]
    out = []
    for log_weight, rows in components(X, draw, v):
        if columns:
            log_weight += cell_log_density(X, draw, rows, columns, [row[j] for j in columns])
        if draw.view_labels[4] == v and row[4] is not None:
            log_weight += level_log_density(X, draw, rows, row[4])
        out.append(log_weight)
    return np.array(out, dtype=float)


def log_rows(X, draw, row):
    """log p(row, k, l) of the components of both views."""
    one, two = (log_joints(X, draw, v, row) for v in range(2))
    weights = [np.exp([w for w, _ in components(X, draw, v)]) for v in range(2)]
    links = links_of(draw, weights) if "link_views" in draw.arrays else {}
    law = np.array(list(log_law(weights, links).values())).reshape(len(one), len(two))
    return law - np.log(np.multiply.outer(*weights)) + one[:, None] + two


def slow_scores(X, draws, query):
    out = []
    for row in query.to_numpy(dtype=object):
        row = [float(cell) for cell in row[:4]] + [None if pd.isna(row[4]) else row[4]]
        logs = [logsumexp(log_rows(X, draw, row)) for draw in draws]
        out.append(logsumexp(logs) - np.log(len(draws)))
    return np.array(out)


def law_of(X, draw, rows, columns):
    """Centre, squared scale and degrees of Student's t of these cells in a component."""
    hyper, n = view_hyper(draw, columns), len(rows)
    cells = X[NUMBERS].to_numpy()[rows][:, columns]
    mean = cells.mean(axis=0) if n else hyper["mu0"]
    shift, kappa = mean - hyper["mu0"], hyper["kappa0"] + n
    psi = hyper["scale0"] + (cells - mean).T @ (cells - mean)
    psi += hyper["kappa0"] * n / kappa * np.outer(shift, shift)
    degrees = hyper["nu0"] + n - len(columns) + 1
    return hyper["mu0"] + n / kappa * shift, psi * (kappa + 1) / (kappa * degrees), degrees


@pytest.fixture
def query():
    query = frame(3).iloc[:8].copy()
    query.loc[1, "a"] = query.loc[2, "d"] = query.loc[3, ["a", "b"]] = np.nan
    query.loc[4, NUMBERS] = np.nan
    query.loc[5, "k"] = None
    query.loc[6, "a"] = 1e3
    return query


# ---- questions ----------------------------------------------------------------------------------


def test_densities_are_those_of_the_mixture(fitted, query):
    model, X, draws = fitted
    expected = slow_scores(X, draws, query)
    np.testing.assert_allclose(model.score_samples(query), expected, rtol=1e-5, atol=1e-5)
    known = query.assign(**dict.fromkeys("bd", np.nan))
    given = model.score_samples(query, given=["a", "c", "k"])
    np.testing.assert_allclose(given, expected - slow_scores(X, draws, known), atol=1e-5)


def test_densities_of_views_as_if_columns_were_independent_differ(fitted, query):
    """Control: each number by itself in its component."""
    model, X, draws = fitted
    wrong = 0.0
    for c in query:
        alone = query.assign(**{other: np.nan if other != "k" else None for other in query})
        wrong = wrong + slow_scores(X, draws, alone.assign(**{c: query[c]}))
    assert np.abs(model.score_samples(query) - wrong).max() > 0.1


def test_fills_are_the_conditional_means(fitted, query):
    model, X, draws = fitted
    filled = model.impute(query)
    for i, j in ((1, 0), (2, 3)):
        row = [float(cell) for cell in query.iloc[i, :4]] + [query.iloc[i, 4]]
        logs = [logsumexp(log_rows(X, draw, row)) for draw in draws]
        of_draw, mean = np.exp(logs - logsumexp(logs)), 0.0
        for draw, share in zip(draws, of_draw):
            v = draw.view_labels[j]
            logs = logsumexp(log_rows(X, draw, row), axis=1 - v)
            own = numbers_of(draw, v)
            others = [c for c in own if c != j]
            centres = []
            for _, rows in components(X, draw, v):
                centre, scale, _ = law_of(X, draw, rows, [*others, j])
                part = np.linalg.solve(scale[:-1, :-1], scale[:-1, -1]) if others else []
                away = np.array([row[c] for c in others]) - centre[:-1]
                centres.append(centre[-1] + away @ part)
            mean += share * np.exp(logs - logsumexp(logs)) @ np.array(centres)
        assert filled.iloc[i, j] == pytest.approx(mean, rel=1e-4, abs=1e-4)


def test_samples_have_the_law_of_the_views(fitted):
    """The share of rows in which a - b, and a - d, is below a point: within four deviations."""
    model, X, draws = fitted
    sample, n = model.sample(4000), 4000
    for columns, direction in (([0, 1], [1.0, 1.0]), ([2, 3], [1.0, -0.05])):
        points = sample[[NUMBERS[j] for j in columns]].to_numpy() @ direction
        for point in (-0.5, 0.3):
            expected = np.mean([_below(X, draw, columns, direction, point) for draw in draws])
            deviation = np.sqrt(expected * (1 - expected) / n)
            assert abs(np.mean(points < point) - expected) < 4 * deviation


def _below(X, draw, columns, direction, point):
    """Chance that a weighted sum of two numbers is below a point."""
    i, j = columns
    if draw.view_labels[i] == draw.view_labels[j]:
        laws = [(w, rows, columns) for w, rows in components(X, draw, draw.view_labels[i])]
        total = 0.0
        for log_weight, rows, own in laws:
            centre, scale, nu = law_of(X, draw, rows, own)
            spread = np.sqrt(direction @ scale @ np.array(direction))
            total += np.exp(log_weight) * stats.t.cdf(point, nu, centre @ direction, spread)
        return total
    quantiles, total = (np.arange(2000) + 0.5) / 2000, 0.0
    for w, rows in components(X, draw, draw.view_labels[i]):
        centre, scale, nu = law_of(X, draw, rows, [i])
        first = stats.t.ppf(quantiles, nu, centre[0], np.sqrt(scale[0, 0])) * direction[0]
        for u, others in components(X, draw, draw.view_labels[j]):
            centre, scale, nu = law_of(X, draw, others, [j])
            sign = np.sign(direction[1])
            law = stats.t(nu, centre[0] * direction[1], np.sqrt(scale[0, 0]) * abs(direction[1]))
            total += np.exp(w + u) * np.mean(law.cdf(point - first)) if sign else 0.0
    return total


def test_information_of_pairs(fitted):
    """By a grid of points; of numbers in one view in both draws, and in one of them."""
    model, X, draws = fitted
    values, error = model.mutual_information(n_samples=4000, return_std=True)
    for i, j in ((2, 3), (0, 1)):
        expected = np.mean([_information(X, draw, i, j) for draw in draws])
        assert abs(values.iloc[i, j] - expected) < 4 * error.iloc[i, j] + 0.01


def _information(X, draw, i, j):
    v = draw.view_labels[i]
    if draw.view_labels[j] != v:
        return 0.0
    u = (np.arange(250) + 0.5) / 250
    own = np.sinh(16 * (u - 0.5)) / 20  # close together in the middle, far out at the ends
    scales = X[NUMBERS].std().to_numpy()
    x, y = own * scales[i] + X.iloc[:, i].mean(), own * scales[j] + X.iloc[:, j].mean()
    joint = 0.0
    for log_weight, rows in components(X, draw, v):
        centre, scale, nu = law_of(X, draw, rows, [i, j])
        grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
        joint = joint + np.exp(log_weight) * stats.multivariate_t(centre, scale, nu).pdf(grid)
    mass = joint * np.outer(np.gradient(x), np.gradient(y))
    mass /= mass.sum()
    both = np.outer(mass.sum(axis=1), mass.sum(axis=0))
    return float(np.sum(mass * np.log(np.maximum(mass, 1e-300) / np.maximum(both, 1e-300))))


def test_dependence(fitted):
    """Numbers of one view depend on each other by their covariances, on the level as far as both
    have to do with the components; see test_covariance_odds.py."""
    model, X, draws = fitted
    found = model.dependence_probability().to_numpy()
    assert found[2, 3] > 0.999 and found[0, 3] < 0.01
    assert found[0, 1] == pytest.approx(0.5, abs=0.02)  # of two draws one has them in one view
    views = [view for views in model._queries().predictor.draws for view in views]
    first = 0.0
    for view in views:
        if {0, 4} <= view.features.keys():
            block, f = view.features[0]
            _, relevant = covariance_odds(block, view.slots[:-1])
            first += 0.5 * relevant[f] * relevances(view)[4]
    assert found[0, 4] == pytest.approx(first, abs=0.02)


# ---- fits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("gappy", [False, True])
def test_a_fit_goes_on_and_comes_back_from_a_pickle(gappy):
    X = frame()
    if gappy:
        X.loc[::7, "a"] = X.loc[3::9, "d"] = np.nan
    families = {FAMILY: NUMBERS, "categorical": ["k"]}
    model = CrossCatPY(families=families, warm_start=True, **QUICK).fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    arrays = [m.fit(X).draws_[0][-1].arrays for m in (again, model)]
    assert arrays[0].keys() == arrays[1].keys() and ("fills" in arrays[0]) == gappy
    assert all(np.array_equal(arrays[0][name], arrays[1][name]) for name in arrays[0])


def test_two_blocks_of_numbers_are_two_views():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(2, 400, 1))
    X = np.hstack([one, one, two, two]) + 0.5 * rng.normal(size=(400, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    quick = {"n_chains": 1, "n_draws": 1, "random_state": 0, "schedule": "sequential_gibbs"}
    model = CrossCatPY(families=FAMILY, **quick).fit(X[:200])
    assert model.view_labels_.tolist() == [0, 0, 1, 1]
    single = CrossCatPY(families="normal", **quick).fit(X[:200])
    assert model.score(X[200:]) > single.score(X[200:])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"families": "multivariate_t"}, "describes whole rows"),
        ({"families": FAMILY, "moves": ("gibbs", "view_annealing")}, "'view_annealing'"),
        ({"families": FAMILY, "hyperparameters": {FAMILY: {"scale0": CORRELATED}}}, "scale0"),
    ],
)
def test_what_views_cannot_divide_is_refused(given, words):
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match=words):
        CrossCatPY(**given).fit(X)
