"""Likelihoods with instantiated features, against formulas written out and SciPy's densities.

Random tests: fixed seeds, one try. A goodness-of-fit test alarms falsely once in 10,000; a mean is
compared at 4.5 standard errors, 7 false alarms in a million.
"""

import math
import pickle
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from oracles.enumeration import check_counts, count_p_value
from oracles.likelihood_rows import (
    HYPER,
    LEVEL,
    N_ROWS,
    NUMBERS,
    every,
    ks,
    make,
    partition,
    rng_of,
    scores,
)
from oracles.mixtures import hyper_mapping
from oracles.reference import log_marginal
from skanneal.likelihoods import LIKELIHOODS, ConjugateLikelihood
from skanneal.likelihoods._draws import log_dirichlet, log_gammas, normals
from skanneal.likelihoods._logistic import modes
from skanneal.states import Mixture

CONJUGATE = [name for name, cls in LIKELIHOODS.items() if issubclass(cls, ConjugateLikelihood)]
every_conjugate = pytest.mark.parametrize("name", CONJUGATE)


def cells_of(likelihood, X, name):
    """Rows as the likelihood describes them: counts, or numbers in cell units."""
    if name in NUMBERS:
        schema = likelihood.schema
        return ((X - schema.offsets) / schema.scales).astype(np.float32).astype(float)
    return X


def covariance_of(theta, d=3):
    """Mean and covariance of a feature of multivariate_normal."""
    lower = np.zeros((d, d))
    lower[np.tril_indices(d)] = theta[d:]
    return theta[:d], np.linalg.inv(lower.T @ lower)


def reference_log_lik(name, x, theta, likelihood):
    """Log density of a row under one feature, by SciPy."""
    if name == "poisson":
        return stats.poisson.logpmf(x, np.exp(theta)).sum()
    if name == "normal":
        return stats.norm.logpdf(x, theta[0], np.sqrt(theta[1])).sum()
    if name == "multivariate_normal":
        return stats.multivariate_normal.logpdf(x, *covariance_of(theta))
    if name == "logistic_normal":
        theta = likelihood.loading @ theta
        theta = theta - np.logaddexp.reduce(theta)
    return stats.multinomial.logpmf(x, x.sum(), np.exp(theta))


# ------------------------------------------------------------------ scores and statistics
@every
@pytest.mark.parametrize("n_features", [1, 5, 16, 17, 33])
def test_log_lik(name, n_features):
    likelihood, rows, X = make(name)
    theta = likelihood.prior_draw(n_features, rng_of(1))
    cells = cells_of(likelihood, X, name)
    expected = [[reference_log_lik(name, x, t, likelihood) for t in theta] for x in cells]
    shown = scores(likelihood, rows, theta)
    np.testing.assert_allclose(shown, expected, rtol=2e-5, atol=2e-5)
    part = scores(likelihood, rows[4:21], theta)
    assert part.tobytes() == shown[4:21].tobytes()
    wide = np.full((N_ROWS, n_features + 9), 7.0, dtype=np.float32)
    likelihood.score(rows, likelihood.prepare(theta), n_features, wide)
    assert wide[:, :n_features].tobytes() == shown.tobytes()
    assert np.isfinite(wide).all()


@every
def test_no_features_and_no_rows(name):
    likelihood, rows, _ = make(name)
    theta = likelihood.prior_draw(0, rng_of(0))
    assert scores(likelihood, rows, theta).shape == (N_ROWS, 0)
    assert scores(likelihood, rows[3:3], likelihood.prior_draw(2, rng_of(0))).shape == (0, 2)
    statistics = likelihood.statistics(rows, np.full(N_ROWS, -1, np.int32), 0)
    assert len(likelihood.draw(statistics, theta, rng_of(0))) == 0
    assert likelihood.log_prior(theta).shape == (0,)
    assert len(likelihood.proposal_draw(rows[:0], rng_of(0))) == 0


@pytest.mark.parametrize("name", NUMBERS)
def test_features_of_a_prior_without_moments(name):
    """Variances of any size: scores are numbers."""
    likelihood, rows, _ = make(name)
    flat = [[0.0, 1e-3, 1e-3, 1.0]] * 3
    if name == "multivariate_normal":
        flat = [np.r_[0.0, 0.0, 0.0, 1e-3, 2.0 + 1e-3, np.eye(3)[np.tril_indices(3)]]]
    likelihood = type(likelihood)(rows.table, flat)
    theta = likelihood.prior_draw(2000, rng_of(1))
    shown = scores(likelihood, rows, theta)
    assert np.isfinite(theta).all() and not np.isnan(shown).any() and shown.max() < np.inf
    assert np.isfinite(likelihood.log_prior(theta)).all()


def test_many_columns_and_features():
    """More columns than a cache line, entries odd and even in number, counts above a byte."""
    rng = rng_of(2)
    X = rng.poisson(0.4, (300, 500)) * rng.integers(1, 300, 500)
    X[:, 7] += 1
    for name in ("multinomial", "poisson"):
        likelihood = LIKELIHOODS[name].of(X)
        theta = likelihood.prior_draw(70, rng)
        shown = scores(likelihood, likelihood.encode(csr_array(X)), theta)
        expected = X @ theta.T - (np.exp(theta).sum(axis=1) if name == "poisson" else 0.0)
        gammas = np.array([[math.lgamma(x + 1) for x in row] for row in X]).sum(axis=1)
        totals = np.array([math.lgamma(n + 1) for n in X.sum(axis=1)])
        expected += ((totals if name == "multinomial" else 0.0) - gammas)[:, None]
        np.testing.assert_allclose(shown, expected, rtol=3e-6, atol=0.2)


@pytest.mark.parametrize("n_columns", [1, 2, 4, 5, 30])
@pytest.mark.parametrize("name", NUMBERS)
def test_normal_scores_in_other_dimensions(name, n_columns):
    X = rng_of(3).normal(size=(40, n_columns))
    likelihood = LIKELIHOODS[name].of(X)
    rows, theta = likelihood.encode(X), likelihood.prior_draw(6, rng_of(4))
    shown, cells = scores(likelihood, rows, theta), cells_of(likelihood, X, name)
    for k, t in enumerate(theta):
        if name == "normal":
            expected = stats.norm.logpdf(cells, t[0], np.sqrt(t[1])).sum(axis=1)
        else:
            mean, covariance = covariance_of(t, n_columns)
            expected = stats.multivariate_normal.logpdf(cells, mean, covariance)
        np.testing.assert_allclose(shown[:, k], expected, rtol=1e-4, atol=1e-4)


def slow_statistics(name, cells):
    """Of one feature's rows, one number after another."""
    d = 3
    if name in ("multinomial", "logistic_normal"):
        ways = sum(math.lgamma(sum(x) + 1) - sum(math.lgamma(c + 1) for c in x) for x in cells)
        return [sum(x[j] for x in cells) for j in range(d)] + [ways]
    out = [len(cells)] + [math.fsum(x[j] for x in cells) for j in range(d)]
    if name == "poisson":
        out += [0.0] * d  # 1024s of the sums of log x!
        return out + [math.fsum(math.lgamma(x[j] + 1) for x in cells) for j in range(d)]
    pairs = [(j, m) for j in range(d) for m in range(j + 1)]
    pairs = pairs if name == "multivariate_normal" else [(j, j) for j in range(d)]
    return out + [math.fsum(x[j] * x[m] for x in cells) for j, m in pairs]


@every
def test_statistics_and_that_they_add_up(name):
    likelihood, rows, X = make(name)
    labels = rng_of(5).integers(-1, 4, N_ROWS).astype(np.int32)
    labels[labels == 2] = 3
    shown, cells = likelihood.statistics(rows, labels, 5), cells_of(likelihood, X, name)
    assert shown.dtype == np.float64 and len(shown) == 5
    for k in range(5):
        expected = slow_statistics(name, [cells[i] for i in np.flatnonzero(labels == k)])
        np.testing.assert_allclose(shown[k], expected, rtol=1e-12, atol=1e-12)
    parts = [(0, 9), (9, 9), (9, 23)]
    total = sum(likelihood.statistics(rows[a:b], labels[a:b], 5) for a, b in parts)
    np.testing.assert_allclose(total, shown, rtol=1e-12, atol=1e-12)
    for bad in (5, -2):
        with pytest.raises(ValueError, match=r"labels must be -1 \.\. 4, got"):
            likelihood.statistics(rows, np.full(N_ROWS, bad, np.int32), 5)


def test_table_rows():
    likelihood, rows, X = make("multinomial")
    table = rows[5:20][2:9].table
    assert table is rows.table and len(rows[5:20][2:9]) == 7

    def counts(part):
        return part.table.column(0).toarray()[part.start : part.stop]

    np.testing.assert_array_equal(counts(rows[5:20][2:9]), X[7:14])
    np.testing.assert_array_equal(counts(rows[5:20][np.array([3, 0, 3])]), X[[8, 5, 8]])
    np.testing.assert_array_equal(counts(rows[5:20][::3]), X[5:20:3])
    assert len(rows[4:2]) == 0
    again = pickle.loads(pickle.dumps(rows[5:20]))
    assert (again.start, again.table.n_rows) == (0, 15)
    np.testing.assert_array_equal(counts(again), X[5:20])
    for bad in (3, [True, False], 1.5):
        with pytest.raises(TypeError, match="rows are taken by a slice or an array of integers"):
            rows[bad]


# ------------------------------------------------------------------ densities over features
def scaled_inverse_chi2(v, nu, squares):
    """Log density of squares / chi2(nu)."""
    return stats.invgamma.logpdf(v, nu / 2, scale=squares / 2)


def reference_log_prior(name, theta, hyper, likelihood):
    if name == "multinomial":
        return stats.dirichlet.logpdf(np.exp(theta) / np.exp(theta).sum(), hyper[0])
    if name == "poisson":
        return sum(
            stats.gamma.logpdf(math.exp(t), a, scale=1 / b) + t for t, (a, b) in zip(theta, hyper)
        )
    if name == "normal":
        return sum(
            stats.norm.logpdf(m, mu0, math.sqrt(v / kappa0)) + scaled_inverse_chi2(v, nu0, nu0 * s)
            for m, v, (mu0, kappa0, nu0, s) in zip(*theta, hyper)
        )
    if name == "logistic_normal":
        return stats.norm.logpdf(theta).sum()
    mean, covariance = covariance_of(theta)
    named = hyper_mapping("multivariate_normal", hyper[0])
    return stats.multivariate_normal.logpdf(
        mean, named["mu0"], covariance / named["kappa0"]
    ) + stats.invwishart.logpdf(covariance, named["nu0"], named["scale0"])


def reference_log_proposal(name, theta, x, likelihood):
    """From the laws in the docstrings."""
    if name == "multinomial":
        return reference_log_prior(name, theta, [np.array(HYPER[name][0]) + x], likelihood)
    if name == "poisson":
        hyper = [(a + c, b + 1) for (a, b), c in zip(HYPER[name], x)]
        return reference_log_prior(name, theta, hyper, likelihood)
    if name == "normal":
        hyper = [
            (c, kappa0 + 1, nu0 + 1, nu0 * s / (nu0 + 1))
            for c, (_, kappa0, nu0, s) in zip(x, HYPER[name])
        ]
        return reference_log_prior(name, theta, hyper, likelihood)
    if name == "multivariate_normal":
        vector = np.array(HYPER[name][0])
        hyper = [np.r_[x, vector[3] + 1, vector[4] + 1, vector[5:]]]
        return reference_log_prior(name, theta, hyper, likelihood)
    (mode,), (factor,) = modes(x[None].astype(float), likelihood.loading)
    near = stats.multivariate_normal.pdf(theta, mode, 1.5 * np.linalg.inv(factor @ factor.T))
    return math.log(0.9 * near + 0.1 * stats.norm.pdf(theta).prod())


@every
def test_log_prior_and_proposal_logpdf(name):
    likelihood, rows, X = make(name)
    theta = likelihood.prior_draw(20, rng_of(6))
    expected = [reference_log_prior(name, t, HYPER.get(name), likelihood) for t in theta]
    np.testing.assert_allclose(likelihood.log_prior(theta), expected, rtol=1e-8, atol=1e-8)
    cells = cells_of(likelihood, X, name)
    for i in (0, 7):
        shown = likelihood.proposal_logpdf(theta, rows[i : i + 1])
        expected = [reference_log_proposal(name, t, cells[i], likelihood) for t in theta]
        np.testing.assert_allclose(shown, expected, rtol=1e-7, atol=1e-7)


def means_differ(first, second):
    """Differences of two samples' column means, in standard errors; of one sample and numbers."""
    error = first.var(axis=0) / len(first)
    if np.ndim(second) > 1:
        error = error + second.var(axis=0) / len(second)
        second = second.mean(axis=0)
    return np.abs(first.mean(axis=0) - second) / np.sqrt(error)


def coordinates(name, theta):
    """Bounded functions of features, that say where they are."""
    flat = theta.reshape(len(theta), -1)
    return np.c_[np.tanh(flat), np.tanh(flat[:, :1] * flat)]


@every
def test_proposals_follow_their_density(name):
    """E_q g min(1, c H / q) = E_H g min(q / H, c) for bounded g; another row's density does not do.

    The bound c keeps the right side's variance small where q / H has a heavy tail."""
    likelihood, rows, _ = make(name)
    n, bound = 40_000, math.log(20.0)
    proposed = likelihood.proposal_draw(rows[np.full(n, 3)], rng_of(7))
    theta = likelihood.prior_draw(n, rng_of(8))

    def log_ratio(theta, i):
        return likelihood.proposal_logpdf(theta, rows[i : i + 1]) - likelihood.log_prior(theta)

    def differences(i):
        shown = np.exp(np.minimum(0.0, bound - log_ratio(proposed, i)))
        expected = np.exp(np.minimum(log_ratio(theta, i), bound))
        functions = [np.c_[np.ones(n), coordinates(name, t)] for t in (proposed, theta)]
        return means_differ(functions[1] * expected[:, None], functions[0] * shown[:, None])

    assert differences(3).max() < 4.5
    assert differences(5).max() > 6


@pytest.mark.parametrize("name", ["multinomial", "poisson"])
def test_bayes_rule_of_one_row(name):
    """Where q is the row's posterior, f H / q is its marginal likelihood at every theta."""
    likelihood, rows, X = make(name)
    theta = likelihood.prior_draw(9, rng_of(9))
    for i in (0, 4):
        row = rows[i : i + 1]
        weights = (
            scores(likelihood, row, theta)[0].astype(float)
            + likelihood.log_prior(theta)
            - likelihood.proposal_logpdf(theta, row)
        )
        statistics = likelihood.statistics(row, np.zeros(1, np.int32), 1)
        np.testing.assert_allclose(weights, likelihood.log_marginal(statistics)[0], atol=1e-4)


# ------------------------------------------------------------------ draws


def test_samplers():
    # so many that the ziggurat's wedges and the tail beyond its last layer are seen
    z = normals(20_000_000, np.random.PCG64(10))
    counts, edges = np.histogram(z, np.r_[-9.0, np.linspace(-3.0, 3.0, 1001), 9.0])
    law = np.diff(stats.norm.cdf(edges))
    assert stats.chisquare(counts, law / law.sum() * len(z)).pvalue > LEVEL
    edge = 3.6541528853610088
    beyond = np.abs(z)[np.abs(z) > edge]
    share = 2 * stats.norm.sf(edge)
    assert stats.binomtest(len(beyond), len(z), share).pvalue > LEVEL
    ks(stats.norm.sf(beyond) / stats.norm.sf(edge), "uniform")
    for shape in (0.05, 0.5, 1.0, 3.3, 1e4):
        ks(np.exp(log_gammas(np.full(60_000, shape), np.random.PCG64(11))), stats.gamma(shape).cdf)
    # a tiny shape: log G / shape is nearly minus an exponential, and no draw is lost
    tiny = 1e-9
    x = -tiny * log_gammas(np.full(60_000, tiny), np.random.PCG64(12))
    assert np.isfinite(x).all()
    ks(x, "expon")


def test_log_dirichlet():
    counts = np.array([[3.0, 0.0, 0.0, 17.0, 1.0]])
    pseudo = np.array([0.02, 0.3, 0.3, 1.0, 0.5])
    draws = log_dirichlet(np.repeat(counts, 40_000, axis=0), pseudo, np.random.PCG64(13))
    np.testing.assert_allclose(np.exp(draws).sum(axis=1), 1.0, rtol=1e-12)
    shapes = pseudo + counts[0]
    for j, shape in enumerate(shapes):
        ks(np.exp(draws[:, j]), stats.beta(shape, shapes.sum() - shape).cdf)
    share = np.exp(draws[:, 0] - np.logaddexp(draws[:, 0], draws[:, 3]))
    ks(share, stats.beta(shapes[0], shapes[3]).cdf)


def posterior_draws(name, n=20_000):
    """(likelihood, the rows' cells, n draws given the first 9 rows)."""
    likelihood, rows, X = make(name)
    statistics = likelihood.statistics(rows[:9], np.zeros(9, np.int32), 1)
    draws = likelihood.draw(np.repeat(statistics, n, axis=0), None, rng_of(14))
    return likelihood, cells_of(likelihood, X, name)[:9], draws


def test_posterior_draws_of_counts():
    _, x, draws = posterior_draws("multinomial")
    shapes = np.array(HYPER["multinomial"][0]) + x.sum(axis=0)
    for j in range(3):
        ks(np.exp(draws[:, j]), stats.beta(shapes[j], shapes.sum() - shapes[j]).cdf)
    _, x, draws = posterior_draws("poisson")
    for j, (a, b) in enumerate(HYPER["poisson"]):
        ks(np.exp(draws[:, j]), stats.gamma(a + x[:, j].sum(), scale=1 / (b + 9)).cdf)


def test_posterior_draws_of_independent_normals():
    _, x, draws = posterior_draws("normal")
    for j, (mu0, kappa0, nu0, sigma2_0) in enumerate(HYPER["normal"]):
        m, v, column = draws[:, 0, j], draws[:, 1, j], x[:, j]
        centre = (kappa0 * mu0 + column.sum()) / (kappa0 + 9)
        squares = nu0 * sigma2_0 + column.var() * 9
        squares += kappa0 * 9 / (kappa0 + 9) * (column.mean() - mu0) ** 2
        ks(squares / v, stats.chi2(nu0 + 9).cdf)
        ks((m - centre) * np.sqrt((kappa0 + 9) / v), "norm")
        independent = stats.spearmanr(v, np.abs(m - centre) / np.sqrt(v)).pvalue
        assert independent > LEVEL


def test_posterior_draws_of_normal_rows():
    """c' Psi c / c' V c is chi-squared of nu - d + 1, c' W c / c' Psi^-1 c of nu degrees."""
    _, x, draws = posterior_draws("multivariate_normal")
    named = hyper_mapping("multivariate_normal", np.array(HYPER["multivariate_normal"][0]))
    mu0, kappa0, mean = named["mu0"], named["kappa0"], x.mean(axis=0)
    psi = named["scale0"] + (x - mean).T @ (x - mean)
    psi = psi + kappa0 * 9 / (kappa0 + 9) * np.outer(mean - mu0, mean - mu0)
    lower = np.zeros((len(draws), 3, 3))
    lower[:, *np.tril_indices(3)] = draws[:, 3:]
    assert np.all(draws[:, [3, 5, 8]] > 0)
    precision = np.einsum("nij,nik->njk", lower, lower)
    covariance = np.linalg.inv(precision)
    nu = named["nu0"] + 9
    for c in (np.eye(3)[0], np.eye(3)[2], np.array([1.0, -2.0, 0.5])):
        inner = np.einsum("nij,i,j->n", covariance, c, c)
        ks(c @ psi @ c / inner, stats.chi2(nu - 2).cdf)
        inner = np.einsum("nij,i,j->n", precision, c, c)
        ks(inner / (c @ np.linalg.inv(psi) @ c), stats.chi2(nu).cdf)
    centre = (kappa0 * mu0 + 9 * mean) / (kappa0 + 9)
    z = np.einsum("nij,nj->ni", lower, draws[:, :3] - centre) * math.sqrt(kappa0 + 9)
    for j in range(3):
        ks(z[:, j], "norm")
    z = z @ [0.6, 0.0, -0.8]
    ks(z, "norm")


# ------------------------------------------------------------------ conjugate: integrated out


def reference_log_marginals(name, likelihood, cells, labels, hyper):
    family, out = likelihood.family, []
    for k in range(labels.max() + 1):
        own = cells[labels == k].tolist()
        if name == "multinomial":
            own = [tuple(map(int, x)) for x in own]
            out.append(log_marginal(family, own, {"pseudo_counts": list(hyper[0])}))
        elif name == "multivariate_normal":
            out.append(log_marginal(family, own, hyper_mapping(family, np.array(hyper[0]))))
        else:
            columns = zip(*own)
            out.append(
                sum(
                    log_marginal(family, c, hyper_mapping(family, h))
                    for c, h in zip(columns, hyper)
                )
            )
    return out


@every_conjugate
def test_log_marginal(name):
    likelihood, rows, X = make(name)
    labels, statistics, _ = partition(likelihood, rows)
    cells = cells_of(likelihood, X, name)
    expected = reference_log_marginals(name, likelihood, cells, labels, HYPER[name])
    np.testing.assert_allclose(likelihood.log_marginal(statistics), expected, rtol=1e-9)
    empty = np.zeros((2, *statistics.shape[1:]))
    assert not likelihood.log_marginal(empty).any()


@every_conjugate
def test_arrays_are_a_mixture(name):
    likelihood, rows, X = make(name)
    labels, statistics, sizes = partition(likelihood, rows)
    (block,) = likelihood.blocks(rows.table, 16)
    block.build(np.arange(N_ROWS), labels, 4)
    expected, shown = block.to_arrays(4), likelihood.arrays(statistics, sizes)
    assert set(shown) == {f"{likelihood.family}/{part}" for part in expected}
    for part, value in expected.items():
        if part != "updates":  # how often a factor was touched
            other = shown[f"{likelihood.family}/{part}"]
            assert other.shape == value.shape and other.dtype == value.dtype, part
            np.testing.assert_allclose(other, value, rtol=1e-9, atol=1e-9, err_msg=part)
    whole = {"labels": labels, "concentration": np.array(1.0), "discount": np.array(0.2)}
    mixture = Mixture.from_arrays(whole | shown, rows.table)
    mixture.validate()
    jacobian = block.log_jacobian()
    total = likelihood.log_marginal(statistics).sum() + jacobian
    assert mixture.log_likelihood() == pytest.approx(total, rel=1e-10)


@every_conjugate
def test_mean(name):
    """Against the mean of many draws."""
    likelihood, rows, X = make(name)
    statistics = likelihood.statistics(rows, np.zeros(N_ROWS, np.int32), 1)
    draws = likelihood.draw(np.repeat(statistics, 40_000, axis=0), None, rng_of(16))
    features = likelihood.features(draws).reshape(40_000, -1)
    shown = likelihood.features(likelihood.mean(statistics)).ravel()
    assert means_differ(features, shown).max() < 4.5


def test_features_are_in_the_users_units():
    X = rng_of(17).normal([0.0, 50.0], [1.0, 7.0], (2000, 2)) @ [[1.0, 0.6], [0.0, 1.0]]
    for name in NUMBERS:
        likelihood = LIKELIHOODS[name].of(X)
        labels = np.zeros(len(X), np.int32)
        statistics = likelihood.statistics(likelihood.encode(X), labels, 1)
        (shown,) = likelihood.features(likelihood.mean(statistics))
        spread = X.var(axis=0) if name == "normal" else np.cov(X.T)
        np.testing.assert_allclose(shown[0], X.mean(axis=0), rtol=0.01, atol=0.01)
        np.testing.assert_allclose(shown[1:].squeeze(), spread, rtol=0.02, atol=0.1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", NUMBERS)
def test_features_beyond_the_largest_number_are_inf(name):
    """Without a warning; where the variance is a number, although its unit has no square, it is."""
    cells = rng_of(18).normal(size=(2000, 2))
    cells[1000:] += 1e3  # so that a component is narrow in the columns' unit
    for unit, whole in ((2.0**532, False), (2.0**503, True)):
        likelihood = LIKELIHOODS[name].of(cells * unit)
        assert not whole or (likelihood.schema.scales > 2.0**511).all()
        labels = np.repeat([0, 1], 1000).astype(np.int32)
        statistics = likelihood.statistics(likelihood.encode(cells * unit), labels, 2)
        shown = likelihood.features(likelihood.mean(statistics))
        np.testing.assert_allclose(shown[1, 0] / unit, cells[1000:].mean(axis=0), rtol=1e-3)
        variances = shown[:, 1] if name == "normal" else np.diagonal(shown[:, 1:], 0, 1, 2)
        assert np.isinf(variances).all() == (not whole) and np.isfinite(shown).all() == whole


def test_update_draws_from_the_exact_conditional():
    """Over a grid, by marginals of reference.py; a uniform draw is told apart."""
    grid = np.array([0.1, 0.5, 3.0])
    for name, h, f in (("multinomial", 0, 0), ("poisson", 1, 2), ("normal", 3, 1)):
        likelihood, rows, X = make(name)
        hyper = [np.array(values) for values in HYPER[name]]
        if name == "multinomial":
            hyper = [np.array([0.5])]
        grids = [[None] * len(values) for values in hyper]
        grids[f][h] = grid
        likelihood = type(likelihood)(rows.table, hyper, grids)
        labels, statistics, sizes = partition(likelihood, rows[:10])
        cells, scores_at = cells_of(likelihood, X, name)[:10], []
        for value in grid:
            changed = [values.copy() for values in hyper]
            changed[f][h] = value
            if name == "multinomial":
                changed = [np.full(3, value)]
            parts = reference_log_marginals(name, likelihood, cells, labels, changed)
            scores_at.append(sum(parts))
        law = np.exp(np.array(scores_at) - max(scores_at))
        law = dict(zip(grid.tolist(), (law / law.sum()).tolist()))
        counts, rng = Counter(), rng_of(18)
        for _ in range(1500):
            likelihood.update(None, statistics, sizes, rng)
            counts[float(likelihood.hyper[f][h])] += 1
        check_counts(counts, law)
        assert count_p_value(counts, dict.fromkeys(grid.tolist(), 1 / 3)) < 1e-6
        # what depends on it has followed
        again = type(likelihood)(rows.table, likelihood.hyper, grids)
        theta = likelihood.prior_draw(3, rng_of(19))
        np.testing.assert_array_equal(likelihood.log_prior(theta), again.log_prior(theta))
        for part, value in again.arrays(statistics, sizes).items():
            np.testing.assert_array_equal(likelihood.arrays(statistics, sizes)[part], value)


@every
def test_state_and_pickle(name):
    likelihood, rows, _ = make(name)
    labels, statistics, sizes = partition(likelihood, rows)
    theta = likelihood.prior_draw(4, rng_of(20))
    likelihood.update(theta, statistics, sizes, rng_of(21))
    other, _, _ = make(name)
    other.set_state(pickle.loads(pickle.dumps(likelihood.state())))
    for again in (other, pickle.loads(pickle.dumps(likelihood))):
        assert scores(again, rows, theta).tobytes() == scores(likelihood, rows, theta).tobytes()
        first = again.draw(statistics, theta, rng_of(22))
        assert first.tobytes() == likelihood.draw(statistics, theta, rng_of(22)).tobytes()
        np.testing.assert_array_equal(again.log_prior(theta), likelihood.log_prior(theta))
    weights = likelihood.prepare(theta)
    assert weights is not None


# ------------------------------------------------------------------ same bits everywhere
