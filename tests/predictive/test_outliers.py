"""Outlier scores: tail probabilities against simulation and slow formulas, invariances, gaps, and
the detector.

The oracle simulates rows of a component and counts those whose density is as low; where a count
decides, the false-alarm rate of the binomial bound is 1e-6 per comparison. All else is computed.
"""

import pickle
from math import exp, lgamma, log, pi, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

import skanneal
from oracles.mixtures import COLUMN_FAMILIES
from skanneal import AnnealedDPMixture, CrossCatPY, MixtureOutlierDetector
from skanneal._native._state_arrays import StateError
from skanneal.partition_priors import PitmanYor
from skanneal.predictive import _surprisal_laws, _tail
from skanneal.predictive._patterns import patterns
from skanneal.predictive._surprisal_laws import Law
from skanneal.predictive._tail import log_standing, log_sums
from skanneal.predictive._view import View
from skanneal.schedules import SequentialGibbs
from skanneal.states import state_from_arrays

FALSE_ALARM = 1e-6
QUICK = {"n_chains": 1, "n_draws": 2, "random_state": 0}


def quick(families="multivariate_normal", **given):
    """A fit of few sweeps."""
    return AnnealedDPMixture(
        families=families, schedule=SequentialGibbs(n_sweeps=8), **QUICK | given
    )


def groups(n=120, d=3, seed=0):
    """Rows of two groups, the second a fifth of them."""
    rng = np.random.default_rng(seed)
    second = np.arange(n) % 5 == 0
    return np.where(second[:, None], 6.0, 0.0) + rng.normal(size=(n, d))


# ---- the law of one component --------------------------------------------------------------------


def one_component(families, X):
    """A fit of one component and its single draw's first view."""
    model = quick(families, n_draws=1, concentration=1e-8, random_state=1).fit(X)
    assert model.draws_[0][0].n_components == 1
    return model, model._queries().predictor.draws[0][0]


def tail_of(model, view, cells):
    """The probability that the first component has a row of as low a density as these cells."""
    queries = model._queries()
    table = queries.table(model._encoded(cells))
    tails = _surprisal_laws.ViewTails(view, queries.predictor.table, queries.predictor.schema)
    observed, pattern = patterns(table)
    laws = tails.laws(observed)
    only = np.where(np.arange(len(view.slots)) == 0, 0.0, -np.inf)
    surprisals = _tail.surprisals_of(view, table, 0, table.n_rows)
    return np.exp(log_sums(np.tile(only, (len(surprisals), 1)), surprisals, laws, pattern))


def t_tail(x, X, mu0, kappa0, nu0, psi0):
    """P(a row of the t predictive has a density as low as x's), by F's distribution.

    The normal-inverse-Wishart posterior of rows X, spelt out.
    """
    n, d = X.shape
    mean = X.mean(axis=0)
    scatter = sum(np.outer(row - mean, row - mean) for row in X)
    kappa, nu = kappa0 + n, nu0 + n
    centre = (kappa0 * mu0 + n * mean) / kappa
    psi = psi0 + scatter + kappa0 * n / kappa * np.outer(mean - mu0, mean - mu0)
    degrees = nu - d + 1
    shape = psi * (kappa + 1) / (kappa * degrees)
    distance = (x - centre) @ np.linalg.solve(shape, x - centre)
    return stats.f.sf(distance / d, d, degrees)


def test_a_row_family_is_exact():
    X = np.random.default_rng(1).normal(size=(30, 3)) @ np.array([[2, 0, 0], [1, 1, 0], [0, 3, 1]])
    model, view = one_component("multivariate_normal", X)
    hyper = model.draws_[0][0].hyperparameters["multivariate_normal"]
    names = skanneal.families.FAMILIES["multivariate_normal"].coordinate_names
    mu0, kappa0, nu0, psi0 = (hyper[name] for name in names)
    rows = X[:5] * np.array([[0.5], [1], [2], [4], [8]])
    expected = [t_tail(row, X, mu0, kappa0, nu0, psi0) for row in rows]
    np.testing.assert_allclose(tail_of(model, view, rows), expected, rtol=2e-4)


def test_a_row_family_is_exact_whatever_cells_are_missing():
    """What is left of a t is a t of as many degrees of freedom."""
    X = np.random.default_rng(1).normal(size=(30, 3)) @ np.array([[2, 0, 0], [1, 1, 0], [0, 3, 1]])
    model, view = one_component("multivariate_normal", X)
    hyper = model.draws_[0][0].hyperparameters["multivariate_normal"]
    names = skanneal.families.FAMILIES["multivariate_normal"].coordinate_names
    mu0, kappa0, nu0, psi0 = (np.array(hyper[name]) for name in names)
    masks = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1], [0, 1, 0]], dtype=bool)
    rows = X[:4] * np.array([[0.5], [2], [4], [3]])
    expected = [
        t_tail(row[m], X[:, m], mu0[m], kappa0, nu0 - (~m).sum(), psi0[np.ix_(m, m)])
        for row, m in zip(rows, masks)
    ]
    got = tail_of(model, view, np.where(masks, rows, np.nan))
    np.testing.assert_allclose(got, expected, rtol=2e-4)


@pytest.mark.parametrize("n_missing", [0, 2, 4])
def test_what_is_left_of_a_heavy_tailed_row_agrees_with_simulation(n_missing):
    """Within a factor of 1.6 of simulated tails, a few standard errors of the simulation added."""
    rng, n = np.random.default_rng(4), 4000
    X = rng.normal(size=(80, 5)) / np.sqrt(rng.chisquare(4, (80, 1)) / 4)
    model, view = one_component("multivariate_t", X)
    (block,), queries = view.mixture.blocks, model._queries()
    fresh = block.sample_rows(np.full(n, view.slots[0]), np.random.PCG64(5))
    fresh[:, :n_missing] = np.nan
    cells = queries.predictor.schema.missing_cells(n)
    for i, j in enumerate(block.columns):
        cells[j] = fresh[:, i].astype(cells[j].dtype)
    surprisals = -view.mixture.score_rows(queries.predictor.table(cells))[0][:, 0]
    tails = _surprisal_laws.ViewTails(view, queries.predictor.table, queries.predictor.schema)
    (law,) = tails.laws(np.arange(5)[None] >= n_missing)
    beta = None if law.beta is None else tuple(part[:1] for part in law.beta)
    one = Law(*(part[:1] for part in law[:3]), beta)
    for share in (0.5, 0.1, 0.02):
        at = np.array([[np.quantile(surprisals, 1 - share)]])
        got = float(np.exp(log_sums(np.zeros((1, 1)), at, [one], np.zeros(1, int)))[0])
        error = -stats.norm.ppf(FALSE_ALARM) * sqrt(share / n)
        assert share / 1.6 - error <= got <= share * 1.6 + error


@pytest.mark.parametrize("family", ["multivariate_normal", "multivariate_t"])
def test_no_row_is_scored_for_the_law_of_a_pattern(monkeypatch, family):
    """But a fixed sample where the law is not known, the same for one pattern and for many."""
    X, rng, scored = groups(60, 6), np.random.default_rng(2), []
    one, many = (
        np.where(np.arange(6) < 2, np.nan, X),
        np.where(rng.random(X.shape) < 0.3, np.nan, X),
    )
    model, real = quick(family).fit(X), _surprisal_laws.row_scores
    monkeypatch.setattr(
        _surprisal_laws, "row_scores", lambda *given: scored.append(given[1].n_rows) or real(*given)
    )
    sums = []
    for cells in (one, many):
        scored.clear()
        assert np.isfinite(model.score_outliers(cells)).all()
        sums.append(sum(scored))
    assert len(np.unique(np.isnan(many), axis=0)) > 20
    assert sums[0] == sums[1]
    assert (sums[0] > 0) == (family == "multivariate_t")


def test_a_single_number_is_exact():
    x = np.random.default_rng(2).normal(size=(12, 1)) * 5 + 100
    model, view = one_component("normal", x)
    hyper = {k: float(v[0]) for k, v in model.draws_[0][0].hyperparameters["normal"].items()}
    mu0, kappa0, nu0, s0 = (hyper[name] for name in ("mu0", "kappa0", "nu0", "sigma2_0"))
    rows = 100 + np.array([[0.0], [10.0], [-30.0], [200.0]])
    expected = [
        t_tail(row, x, np.array([mu0]), kappa0, nu0, np.array([[nu0 * s0]])) for row in rows
    ]
    got = np.array([float(v) for v in tail_of(model, view, rows)])
    np.testing.assert_allclose(got, expected, rtol=2e-3)


COLUMNS = {
    "normal": lambda rng, n: rng.normal(size=(n, 3)),
    "categorical": lambda rng, n: rng.integers(0, 4, size=(n, 6)).astype(str).astype(object),
    "bernoulli": lambda rng, n: rng.random((n, 8)) < np.linspace(0.1, 0.6, 8),
    "poisson": lambda rng, n: rng.poisson([2.0, 5.0, 9.0], size=(n, 3)),
    "gamma_exponential": lambda rng, n: rng.exponential([1.0, 2.0, 9.0], size=(n, 3)),
    "semi_continuous": lambda rng, n: np.where(
        rng.random((n, 3)) < 0.4, 0.0, rng.normal(5.0, 1.0, size=(n, 3))
    ),
    "negative_binomial": lambda rng, n: rng.negative_binomial(2, [0.5, 0.2, 0.1], size=(n, 3)),
}


@pytest.mark.parametrize("family", COLUMN_FAMILIES)
def test_sums_over_columns_agree_with_simulation(family):
    """Within a factor of 1.6 of simulated tails, a few standard errors of the simulation added.

    The gamma law is an approximation, worst for few levels, whose surprisals take few values.
    """
    rng = np.random.default_rng(3)
    make = COLUMNS.get(family, COLUMNS["gamma_exponential"])
    model, view = one_component(family, make(rng, 80))
    n = 4000
    fresh = view.sample(
        [np.ones(n, dtype=bool)] * len(view.features), np.zeros(n, dtype=int), np.random.PCG64(5)
    )
    queries, cells = model._queries(), model._queries().predictor.schema.missing_cells(n)
    for j, _, values in fresh:
        cells[j] = np.asarray(values).astype(cells[j].dtype)
    table = queries.predictor.table(cells)
    surprisals = _tail.surprisals_of(view, table, 0, n)[:, 0]
    tails = _surprisal_laws.ViewTails(view, queries.predictor.table, queries.predictor.schema)
    law = tails.law(np.ones(len(cells), dtype=bool))
    low = -stats.norm.ppf(FALSE_ALARM)
    for share in (0.5, 0.1, 0.02):
        at = np.quantile(surprisals, 1 - share)
        one = Law(*(part[:1] for part in law[:3]))
        at_one = np.array([[at]])
        got = float(np.exp(log_sums(np.zeros((1, 1)), at_one, [one], np.zeros(1, int)))[0])
        there = np.mean(surprisals >= at - 1e-9), np.mean(surprisals > at + 1e-9)
        error = low * sqrt(share / n)
        assert there[1] / 1.6 - error <= got <= there[0] * 1.6 + error


@pytest.mark.parametrize("family", ["normal", "multivariate_normal", "multivariate_t"])
def test_far_out_a_surprisal_grows_with_the_exponent_of_the_tail(family):
    """By h log 100 where the distance is ten times as large; a t of all rows only nearly so."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 2))
    if family == "multivariate_t":
        X /= np.sqrt(rng.chisquare(4, (400, 1)) / 4)
    model, view = one_component(family, X)
    cells = 1e5 * np.array([[1.0, 1.0], [10.0, 10.0]])
    table = model._queries().table(model._encoded(cells))
    near, far = -view.mixture.score_rows(table)[0][:, 0]
    (block,) = view.mixture.blocks
    n_parts, n_cells = (1, 2) if block.joint else (2, 0)
    exponent = n_parts * np.broadcast_to(block.tail_exponent(n_cells), block.n_slots)[view.slots[0]]
    assert (far - near) / log(100.0) == pytest.approx(exponent, rel=0.02)


def test_the_control_of_the_simulation():
    """A chi-squared law with twice the columns is found out."""
    law = Law(*(np.array([value]) for value in (0.0, 3.0, 3.0)))
    surprisals = 0.5 * stats.chi2.rvs(3, size=4000, random_state=0)
    at = np.quantile(surprisals, 0.9)
    got = np.exp(log_sums(np.zeros((1, 1)), np.array([[at]]), [law], np.zeros(1, int)))[0]
    assert got > 0.1 * 1.6 - stats.norm.ppf(FALSE_ALARM) * sqrt(0.1 / 4000)


# ---- the mixture ---------------------------------------------------------------------------------


def slow_standing(weights, sizes, typical):
    """w_k S_k D_k by counting."""
    out = []
    for k in range(len(weights)):
        small = sum(w for w, n in zip(weights, sizes, strict=True) if n <= sizes[k])
        own = log(weights[k]) + typical[k]
        diffuse = sum(w for w, t in zip(weights, typical, strict=True) if log(w) + t <= own + 1e-12)
        out.append(weights[k] * small * diffuse)
    return out


def test_standing():
    rng = np.random.default_rng(0)
    for _ in range(20):
        sizes = np.r_[rng.integers(1, 5, size=6), 0]
        weights = np.r_[sizes[:-1], 0.7] / (sizes.sum() + 0.7)
        typical = rng.integers(0, 3, size=7).astype(float)
        got = np.exp(log_standing(np.log(weights), sizes, typical))
        np.testing.assert_allclose(got, slow_standing(weights, sizes, typical))


def test_terms_left_out_do_not_count():
    rng = np.random.default_rng(0)
    excess, standing = rng.exponential(20.0, size=(200, 5)), np.log(rng.dirichlet(np.ones(5)))
    for half_d in (0.5, 1.5, 15.0):
        a, b = rng.uniform(1, 50, 5), np.full(5, half_d)
        tails = stats.beta.cdf(np.exp(-excess / (a + b)), a, b)
        law = Law.of_beta(np.zeros(5), a, b, a + b)
        got = log_sums(np.tile(standing, (200, 1)), excess, [law], np.zeros(200, int))
        expected = np.log((np.exp(standing) * tails).sum(axis=1))
        np.testing.assert_allclose(got, expected, atol=0.01)
    mean, variance = rng.uniform(1, 9, 5), rng.uniform(1, 9, 5)
    law = Law(np.zeros(5), mean, variance)
    tails = stats.gamma.sf(excess, mean**2 / variance, scale=variance / mean)
    got = log_sums(np.tile(standing, (200, 1)), excess, [law], np.zeros(200, int))
    np.testing.assert_allclose(got, np.log((np.exp(standing) * tails).sum(axis=1)), atol=0.01)


def slow_sum(log_standing, bounds, tails):
    """log of the sum of tails, or of their bounds where these are more than 8 nats below the
    largest, or the tail is too small for a number."""
    terms = [s + bound for s, bound in zip(log_standing, bounds, strict=True)]
    largest = max(terms)
    for k, tail in enumerate(tails):
        if tail is not None and terms[k] >= largest - 8.0 and tail > 1e-290:
            terms[k] = log_standing[k] + log(tail)
    return np.logaddexp.reduce(terms)


def bound_of_gamma(x, shape):
    if x <= shape:
        return 0.0
    return shape - x + shape * log(x / shape) if np.isfinite(x) else -np.inf


def bound_of_beta(x, a, b):
    if x >= a / (a + b):
        return 0.0
    return a * log(x * (a + b) / a) + b * log((1 - x) * (a + b) / b) if x > 0 else -np.inf


def test_sums_of_tails_and_bounds():
    """Against the formula, row by row, of two patterns of gaps and rows that share a case, or cells
    but for one component. No tail is above its bound; of a law without spread it is exponential."""
    rng = np.random.default_rng(2)
    shape, scale = np.array([0.5, 3.0, 40.0, 1.0]), np.array([2.0, 1.0, 0.1, 1.0])
    spread, least = np.array([1.0, 1.0, 1.0, 0.0]), np.array([3.0, -2.0, 0.0, 1.0])
    gamma = Law(least, spread * shape * scale, spread * shape * scale**2)
    a, b = np.array([0.6, 2.0, 15.0, 200.0]), np.full(4, 1.5)
    beta = Law.of_beta(least, a, b, a + b)
    surprisals = least + rng.exponential(10.0, size=(80, 4)) * (rng.random((80, 4)) < 0.9)
    surprisals[0], surprisals[1], surprisals[2] = np.inf, least - 1e-9, least + 1e4
    surprisals[50:] = surprisals[rng.integers(20, 30, size=30)]
    surprisals[50::3, 1] += 0.5
    standing, case = np.log(rng.dirichlet(np.ones(4), size=7)), rng.integers(7, size=80)
    pattern = np.arange(80) % 2
    got, n_bounds = log_sums(standing, surprisals, [gamma, beta], pattern, case), 0
    for i in range(80):
        excess = np.maximum(surprisals[i] - least, 0.0)
        if pattern[i] == 0:
            bounds = [bound_of_gamma(*pair) for pair in zip(excess / scale, shape, strict=True)]
            bounds[3] = -excess[3]
            tails = [stats.gamma.sf(x, k) for x, k in zip(excess / scale, shape, strict=True)]
            tails[3] = None
        else:
            x = np.exp(-excess / (a + b))
            bounds = [bound_of_beta(*three) for three in zip(x, a, b, strict=True)]
            tails = stats.beta.cdf(x, a, b).tolist()
        for tail, bound in zip(tails, bounds, strict=True):
            assert tail is None or tail <= exp(bound) * (1 + 1e-9)
        expected = slow_sum(standing[case[i]].tolist(), bounds, tails)
        assert got[i] == pytest.approx(expected, rel=1e-9)
        if all(tails):
            every = np.logaddexp.reduce(standing[case[i]] + np.log(tails))
            n_bounds += expected != pytest.approx(every, rel=1e-9)
    assert got[0] == -np.inf
    assert n_bounds > 5  # of the terms left out some would have shown


@pytest.mark.parametrize(("limit", "n_draws"), [("MOST_TERMS", 2), ("MOST_SCORES", 1)])
def test_fewer_draws_score_many_training_rows_or_components(monkeypatch, limit, n_draws):
    made, given = [], _tail.state_of
    monkeypatch.setattr(_tail, limit, 1)
    monkeypatch.setattr(_tail, "state_of", lambda *arguments: made.append(0) or given(*arguments))
    model = quick(n_draws=9).fit(groups())
    assert len(made) == n_draws and np.isfinite(model.outlier_scores_).all()


def test_scores_of_far_rows_stay_finite_and_in_order():
    model = quick().fit(groups())
    scores = model.score_outliers(np.outer([1e2, 1e3, 1e4, 1e6], np.ones(3)))
    assert np.isfinite(scores).all() and (np.diff(scores) > 0).all()


@pytest.mark.parametrize("families", ["normal", "multivariate_normal"])
def test_units_and_order_of_rows_do_not_matter(families):
    X = groups()
    model, scaled = quick(families).fit(X), quick(families).fit(X * 1024.0)
    np.testing.assert_allclose(
        model.score_outliers(X), scaled.score_outliers(X * 1024.0), rtol=1e-3, atol=1e-3
    )
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(
        model.score_outliers(X[order]), model.score_outliers(X)[order], rtol=1e-9
    )
    shift = model.score_samples(X) - scaled.score_samples(X * 1024.0)
    assert np.allclose(shift, 3 * log(1024.0), atol=0.01)  # the control: a density has units


def test_standing_of_training_rows_is_that_of_the_others_alone():
    """w_k S_k D_k of the formula, from the sizes that are left without the row itself."""
    alpha, d, typical = 1.3, 0.2, np.array([[-3.0, -2.0, -2.5, -4.0], [-1.0, -1.2, -0.9, -2.0]])
    sizes, own, pattern = (
        np.array([3, 1, 2, 0]),
        np.array([0, 1, 2, 2, 0]),
        np.array([0, 0, 1, 0, 1]),
    )
    view = SimpleNamespace(mixture=SimpleNamespace(prior=PitmanYor(alpha, d)))
    standing, case = _tail.standing_without(view, sizes, typical, own, pattern)
    for i, (k_own, p) in enumerate(zip(own, pattern)):
        left = [int(n) - (k == k_own) for k, n in enumerate(sizes)]
        n, n_components = sum(left), sum(size > 0 for size in left)
        weights = [(size - d) / (n + alpha) if size else 0.0 for size in left]
        weights[-1] = (alpha + n_components * d) / (n + alpha)
        dense = [w and log(w) + typical[p, k] for k, w in enumerate(weights)]
        for k, weight in enumerate(weights):
            smaller = sum(w for w, size in zip(weights, left) if size <= left[k])
            no_denser = sum(w for w, of in zip(weights, dense) if w and of <= dense[k])
            found = exp(standing[case[i], k])
            assert found == pytest.approx(weight * smaller * no_denser, rel=1e-12)


def test_patterns():
    X = groups()
    rng = np.random.default_rng(1)
    gappy = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    model = quick("normal").fit(X)
    observed, pattern = patterns(Reread(model, gappy).table)
    np.testing.assert_array_equal(observed[pattern], ~np.isnan(gappy))
    assert len(observed) == len(np.unique(np.isnan(gappy), axis=0))
    whole = patterns(Reread(model, X).table)
    assert whole[0].tolist() == [[True] * 3] and not whole[1].any()


def test_rows_with_gaps_are_comparable():
    """Rows of the fit's law with and without gaps have the same mean score, of densities not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6)) * 50.0
    model = quick("normal").fit(X)
    fresh = rng.normal(size=(2000, 6)) * 50.0
    gappy = np.where(np.arange(6) < 4, np.nan, fresh)
    for whole, part in ((model.score_outliers(fresh), model.score_outliers(gappy)),):
        error = sqrt(whole.var() / 2000 + part.var() / 2000)
        assert abs(whole.mean() - part.mean()) < 0.1 - stats.norm.ppf(FALSE_ALARM) * error
    densities = -model.score_samples(fresh), -model.score_samples(gappy)
    assert densities[0].min() > densities[1].max()


def test_a_row_without_cells_is_ordinary():
    X = groups()
    model = quick("normal").fit(X)
    nothing = model.score_outliers(np.full((1, 3), np.nan))
    assert nothing[0] < np.quantile(model.outlier_scores_, 0.9)


def test_a_small_dense_group_is_odd():
    """Twelve rows that resemble each other: the score finds them, the density does not."""
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(400, 2)), 5 + 0.01 * rng.normal(size=(12, 2))]
    odd = np.arange(412) >= 400
    model = quick().set_params(schedule=SequentialGibbs(n_sweeps=30)).fit(X)
    assert roc_auc_score(odd, model.outlier_scores_) > 0.97
    assert roc_auc_score(odd, model.score_outliers(X)) > 0.97
    assert roc_auc_score(odd, -model.score_samples(X)) < 0.5


def test_training_rows_are_scored_without_themselves():
    """Against fits of the same partition and hyperparameters from which the row is left out."""
    X = groups(n=40, d=2)
    model = quick("normal", n_draws=1).fit(X)
    draw = model.draws_[0][0]
    state = skanneal.states.state_from_arrays(draw.arrays, Reread(model, X).table)
    view = _tail.View(state)
    rows = np.arange(len(X))
    own, loss = _tail.own_components(view, rows)
    for i in rows[::7]:
        k = int(draw.labels[i])
        others = X[(draw.labels == k) & (rows != i)]
        if not len(others):
            continue
        expected = -sum(
            log_t(X[i, j], others[:, j], *normal_hyper(draw, j)) for j in range(X.shape[1])
        )
        with_row = -view.mixture.score_rows(Reread(model, X[i : i + 1]).table)[0][0, own[i]]
        np.testing.assert_allclose(with_row + loss[i], expected, rtol=1e-4, atol=1e-4)


class Reread:
    """Rows as a fit encodes them."""

    def __init__(self, model, X):
        self.table = model._queries().table(model._encoded(X))


def test_a_draw_that_was_loaded_is_looked_at_with_its_rows_as_for_queries():
    X = groups()
    model = quick().fit(X)
    table = Reread(model, X).table
    loaded = pickle.loads(pickle.dumps(model.draws_[0][0]))
    loaded.arrays["labels"] = np.full(len(X), 99, np.int32)  # a component that there is not
    assert len(_tail.state_of(loaded, table.empty_like()).views) == 1  # queries need no labels
    with pytest.raises(StateError, match="labels"):
        _tail.state_of(loaded, table)


def normal_hyper(draw, j):
    """mu0, kappa0, nu0 and sigma2_0 of a column."""
    hyper = draw.hyperparameters["normal"]
    return [float(hyper[name][j]) for name in ("mu0", "kappa0", "nu0", "sigma2_0")]


def log_t(x, others, mu0, kappa0, nu0, sigma2_0):
    """Log predictive density of a number given those of its component."""
    n, mean = len(others), others.mean()
    kappa, nu = kappa0 + n, nu0 + n
    squares = nu0 * sigma2_0 + ((others - mean) ** 2).sum()
    squares += kappa0 * n / kappa * (mean - mu0) ** 2
    rate = kappa / ((kappa + 1) * squares)
    centre = (kappa0 * mu0 + n * mean) / kappa
    norm = lgamma((nu + 1) / 2) - lgamma(nu / 2) + 0.5 * log(rate / pi)
    return norm - 0.5 * (nu + 1) * np.log1p(rate * (x - centre) ** 2)


def test_views_multiply():
    rng = np.random.default_rng(0)
    X = np.c_[groups(seed=1), rng.permuted(groups(seed=2), axis=0)]
    model = CrossCatPY(schedule=SequentialGibbs(n_sweeps=8), **QUICK).fit(X)
    queries = model._queries()
    table = queries.table(model._encoded(X[:9]))
    of_rows = patterns(table)
    per_draw = [
        sum(
            _tail.ViewScores(view, table, of_rows, queries.predictor).log_tails(0, 9)
            for view in views
        )
        for views in queries.predictor.draws
    ]
    expected = -np.log(np.mean(np.exp(per_draw), axis=0))
    np.testing.assert_allclose(model.score_outliers(X[:9]), expected)
    assert model.outlier_scores_.shape == (len(X),)


def test_a_constant_column_and_an_unseen_level():
    X = np.c_[groups(), np.ones(120)]
    model = quick("normal").fit(X)
    other = X[:3].copy()
    other[1, 3] = 2.0
    added = model.score_outliers(other) - model.score_outliers(X[:3])
    np.testing.assert_allclose(added, [0.0, log(122.0), 0.0], atol=1e-9)
    names = np.array(["red", "blue"], dtype=object)[(X[:, :1] > 3).astype(int)]
    levels = quick("categorical").fit(names)
    scores = levels.score_outliers(np.array([["red"], ["green"], [None]], dtype=object))
    assert np.isfinite(scores).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_levels_that_are_all_equally_probable():
    """In a view of their own, in one component: their law has no spread, and training rows lie
    beyond its point, as they are scored without themselves."""
    column = [True, False, None] * 4
    rows = np.array([*zip(np.linspace(0.0, 1.0, 12), column)], dtype=object)
    short = {
        "schedule": SequentialGibbs(n_sweeps=2),
        "n_chains": 1,
        "n_draws": 1,
        "random_state": 0,
    }
    alike = {"bernoulli": {"a": 1.0, "b": 1.0}}
    prior = {"concentration": 1e-6, "view_concentration": 1e6, "discount": 0.0}
    model = CrossCatPY(families={"bernoulli": [1]}, hyperparameters=alike, **prior, **short)
    assert model.fit(rows).draws_[0][0].n_components.tolist() == [1, 1]
    assert np.isfinite(model.outlier_scores_).all()
    scores = model.score_outliers(np.array([[0.5, True], [0.5, False], [0.5, None]], dtype=object))
    np.testing.assert_allclose(scores, scores[0], atol=1e-6)


def test_the_tail_of_a_law_without_spread_is_exponential():
    law, excess = Law(np.zeros(1), np.zeros(1), np.zeros(1)), np.array([[0.0], [0.3], [5.0]])
    got = log_sums(np.zeros((3, 1)), excess, [law], np.zeros(3, int))
    np.testing.assert_allclose(got, -excess[:, 0])


# ---- numbers whose family describes their logarithms ---------------------------------------------


def amounts_and_logarithms(gaps, n=150):
    """Log-normal amounts of two groups, and their logarithms."""
    rng = np.random.default_rng(4)
    logs = rng.normal(size=(n, 2)) + np.where(np.arange(n) % 3 == 0, 8.0, 0.0)[:, None]
    if gaps:
        logs[::5, 0], logs[2::5, 1] = np.nan, np.nan
    return np.exp(logs), logs


@pytest.mark.parametrize("gaps", [False, True])
def test_amounts_are_as_odd_as_their_logarithms(gaps):
    """And make the same clusters; in both tails the scores rise, as far down as numbers go."""
    amounts, logs = amounts_and_logarithms(gaps)
    (of_amounts, of_logs) = quick("log_normal").fit(amounts), quick("normal").fit(logs)
    np.testing.assert_allclose(of_amounts.outlier_scores_, of_logs.outlier_scores_, rtol=1e-5)
    np.testing.assert_array_equal(of_amounts.labels_, of_logs.labels_)
    far = np.c_[np.linspace(-690.0, 690.0, 80), np.full(80, np.nan if gaps else 0.5)]
    scores = of_amounts.score_outliers(np.exp(far))
    np.testing.assert_allclose(scores, of_logs.score_outliers(far), rtol=1e-5)
    low, high = scores[far[:, 0] < -10.0], scores[far[:, 0] > 20.0]
    assert (np.diff(low) < 0.0).all() and (np.diff(high) > 0.0).all()
    tiny = np.array([[1e-300, np.nan]])
    assert of_amounts.score_outliers(tiny)[0] > of_amounts.outlier_scores_.max()


def test_a_single_amount_is_exact():
    """T is Student's tail of the logarithm."""
    logs = np.random.default_rng(2).normal(size=(12, 1))
    model, view = one_component("log_normal", np.exp(logs))
    normal, of_logs = one_component("normal", logs)
    rows = np.array([[0.0], [1.0], [-3.0], [-20.0], [9.0]])
    got, expected = tail_of(model, view, np.exp(rows)), tail_of(normal, of_logs, rows)
    np.testing.assert_allclose(got, expected, rtol=1e-4)


@pytest.mark.parametrize("family", ["log_normal", "semi_continuous", "semi_continuous_log_normal"])
@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
def test_the_unit_of_amounts_does_not_matter(family, unit):
    """Nor where some of the amounts are atoms, which have a probability beside a density."""
    X, _ = amounts_and_logarithms(False)
    if family != "log_normal":
        X[::4, 0] = 0.0
    model, scaled = quick(family).fit(X), quick(family).fit(X * unit)
    np.testing.assert_allclose(model.outlier_scores_, scaled.outlier_scores_, atol=2e-3)
    new = np.r_[X[:9] * 3.0, [[1e-30, 1.0], [1e9, 1.0]]]
    np.testing.assert_allclose(
        model.score_outliers(new), scaled.score_outliers(new * unit), rtol=1e-3, atol=2e-3
    )


# ---- the detector --------------------------------------------------------------------------------


def detector(**given):
    return MixtureOutlierDetector(quick(), **given)


def test_the_detector_finds_what_an_isolation_forest_finds():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(300, 3)), rng.uniform(-8, 8, size=(15, 3))]
    odd = np.arange(315) >= 300
    found = detector().fit_predict(X)
    assert set(found) == {-1, 1}
    assert (found[odd] == -1).mean() > 0.7 and (found[~odd] == -1).mean() < 0.05
    fitted = detector().fit(X)
    forest = IsolationForest(random_state=0).fit(X)
    ours = roc_auc_score(odd, -fitted.score_samples(X))
    assert ours > roc_auc_score(odd, -forest.score_samples(X)) - 0.02
    assert fitted.outlier_scores_.shape == (315,)


def test_contamination_says_how_many():
    X = groups()
    fitted = detector(contamination=0.05).fit(X)
    assert (fitted.predict(X) == -1).sum() == 6
    np.testing.assert_allclose(
        fitted.decision_function(X), fitted.score_samples(X) - fitted.offset_
    )
    np.testing.assert_allclose(fitted.score_samples(X), -fitted.estimator_.score_outliers(X))


def test_few_false_alarms_without_outliers():
    """Expected 1 %; 3 % of 2,000 is more than ten standard errors away."""
    rng = np.random.default_rng(0)
    fitted = detector().fit(rng.normal(size=(500, 3)))
    assert (fitted.predict(rng.normal(size=(2000, 3))) == -1).mean() < 0.03


def test_many_components_are_sampled_at_a_cost_that_grows_with_their_number(monkeypatch):
    """150 components of counts: laws against large samples, and the scores that they take."""
    rng, n = np.random.default_rng(7), 450
    X = rng.multinomial(60, rng.dirichlet(np.ones(5)), n)
    model = quick("multinomial", n_draws=1).fit(X)
    queries = model._queries()
    table = queries.table(model._encoded(X))
    mixture = state_from_arrays(model.draws_[0][0].arrays, table)
    mixture.replace(np.arange(n), np.arange(n) % 150)
    view, maker, scored = View(mixture), queries.predictor, []
    real = _surprisal_laws.row_scores

    def counted(block, table):
        scored.append(table.n_rows * block.n_slots)
        return real(block, table)

    monkeypatch.setattr(_surprisal_laws, "row_scores", counted)
    law = _surprisal_laws.ViewTails(view, maker.table, maker.schema).law(np.ones(5, dtype=bool))
    assert (
        len(law.mean) == 151
        and sum(scored) <= _surprisal_laws.MOST_SAMPLED * _surprisal_laws.TOGETHER
    )
    (block,), n_each = mixture.blocks, _surprisal_laws.MOST_SAMPLED // 151
    for k in (0, 70, 149):
        rows = block.sample_rows(np.full(2000, view.slots[k]), np.random.PCG64(k))
        cells = [csr_array(rows.astype(np.uint32)), *[None] * 4]
        surprisals = -real(block, maker.table(cells))[:, view.slots[k]]
        error = -stats.norm.ppf(FALSE_ALARM) * surprisals.std() / sqrt(n_each)
        assert abs(law.least[k] + law.mean[k] - surprisals.mean()) < error
