"""The new cluster's term of queries without a conjugate prior, against integrals done otherwise."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import betaln, gammaln, logsumexp

from oracles.accelerated_chains import Coins
from oracles.waiting_times import Waiting, not_conjugate
from skanneal import AcceleratedDPMixture
from skanneal.likelihoods import LIKELIHOODS, Likelihood, checked
from skanneal.schedules import AcceleratedSchedule
from skanneal.sharded._new_cluster import log_new_cluster

SEED = np.array([3, 5], dtype=np.uint64)


class Astray(Waiting):
    """A narrow proposal beside the row: right only where H's draws are counted too."""

    def proposal_draw(self, rows, rng):
        return super().proposal_draw(rows, rng) * 0.1 + 1.0

    def proposal_logpdf(self, theta, row):
        return super().proposal_logpdf((theta - 1.0) / 0.1, row) - np.log(0.1)


class Silent(Waiting):
    """Without a proposal."""

    proposal_draw, proposal_logpdf = Likelihood.proposal_draw, Likelihood.proposal_logpdf


def estimated(likelihood, X):
    prior = likelihood.prior_draw(256, np.random.default_rng(1))
    return log_new_cluster(likelihood, likelihood.encode(X), prior, SEED)


def wait_integrals(x):
    def integrand(theta):
        return np.exp(theta - x * np.exp(theta) - 0.125 * theta**2) / (2 * np.sqrt(2 * np.pi))

    mode = -np.log(x)
    return np.log(quad(integrand, -30, 30, points=[mode - 3, mode], limit=300)[0])


@pytest.mark.parametrize("cls, n", [(Waiting, 6), (Astray, 4), (Silent, 4)])
def test_one_dimension(cls, n):
    """A good proposal reaches what few draws of H are near, and none does harm to what many are."""
    X = np.array([[1.0], [10.0], [0.1], [0.01], [100.0], [1000.0]])[:n]
    expected = [wait_integrals(x) for x in X[:, 0]]
    tolerance = 6 * (0.1 if cls is Waiting else 0.15)  # standard errors over 30 seeds
    np.testing.assert_allclose(estimated(checked(cls()), X), expected, atol=tolerance)


def test_posteriors_as_proposals_leave_no_error():
    X = np.random.default_rng(2).multinomial(50, np.full(30, 1 / 30), 10)
    own = not_conjugate("multinomial").of(X, [[0.3]], [])
    a, total = np.full(30, 0.3), X.sum(axis=1)
    coefficients = gammaln(total + 1) - gammaln(X + 1).sum(axis=1)
    integrals = gammaln(a + X).sum(axis=1) - gammaln(a.sum() + total)
    expected = coefficients + integrals + gammaln(a.sum()) - gammaln(a).sum()
    np.testing.assert_allclose(estimated(checked(own), X), expected, atol=0.02)


def test_three_dimensions():
    X = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    a, b = Coins.hyper["a"], Coins.hyper["b"]
    expected = (betaln(a + X, b + 1 - X) - betaln(a, b)).sum(axis=1)
    np.testing.assert_allclose(estimated(checked(Coins()), X), expected, atol=0.15)


@pytest.fixture(scope="module")
def fitted():
    """Five of six clusters of rows of 30 counts, and rows of the sixth."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(30, 0.3), 6)
    X = np.vstack([rng.multinomial(80, p, 30) for p in shares[:5]])
    model = AcceleratedDPMixture(
        likelihood="logistic_normal",
        hyperparameters={"logistic_normal": {"rank": 8}},
        schedule=AcceleratedSchedule(n_accelerated=10, n_exact=20),
        n_draws=2,
        random_state=0,
    )
    return model.fit(X), np.vstack([rng.multinomial(80, shares[5], 6), X[:2]])


def logistic_integral(x, loading, n=20_000):
    """log m of a row, from a Student's t around the mode of its posterior."""
    rank = loading.shape[1]

    def log_density(eta):
        logits = eta @ loading.T
        log_p = logits - logsumexp(logits, axis=-1, keepdims=True)
        return log_p @ x - 0.5 * (eta**2).sum(axis=-1) - 0.5 * rank * np.log(2 * np.pi)

    mode = minimize(lambda eta: -log_density(eta), np.zeros(rank)).x
    p = np.exp(loading @ mode - logsumexp(loading @ mode))
    precision = np.eye(rank) + x.sum() * loading.T @ (np.diag(p) - np.outer(p, p)) @ loading
    factor, rng, nu = np.linalg.cholesky(np.linalg.inv(precision)), np.random.default_rng(7), 8
    t = rng.normal(size=(n, rank)) / np.sqrt(rng.chisquare(nu, (n, 1)) / nu)
    log_t = gammaln((nu + rank) / 2) - gammaln(nu / 2) - 0.5 * rank * np.log(nu * np.pi)
    log_t -= (nu + rank) / 2 * np.log1p((t**2).sum(axis=1) / nu) + np.log(np.diag(factor)).sum()
    log_f = log_density(mode + t @ factor.T) + gammaln(x.sum() + 1) - gammaln(x + 1).sum()
    return logsumexp(log_f - log_t) - np.log(n)


@pytest.mark.slow
def test_logistic_normal_in_thirty_columns(fitted):
    model, X = fitted
    coefficients = gammaln(X.sum(axis=1) + 1) - gammaln(X + 1).sum(axis=1)
    inside, new = [], []
    for draw in model.draws_[0]:
        arrays, rows = draw.arrays, draw.likelihood.encode(X)
        found = log_new_cluster(draw.likelihood, rows, arrays["prior_theta"], SEED)
        expected = np.array([logistic_integral(x, arrays["likelihood/loading"]) for x in X])
        np.testing.assert_allclose(found, expected, atol=0.5)  # six standard errors
        n, alpha = draw.sizes.sum(), draw.concentration
        of_clusters = np.log(draw.sizes) + X @ np.log(draw.features).T + coefficients[:, None]
        inside.append(logsumexp(of_clusters, axis=1) - np.log(n + alpha))
        new.append(np.log(alpha) + expected - np.log(n + alpha))
    new, whole = logsumexp(new, axis=0), logsumexp([*inside, *new], axis=0)
    np.testing.assert_allclose(model.score_samples(X), whole - np.log(2), atol=0.5)
    chances = np.exp(new - whole)
    np.testing.assert_allclose(model.new_cluster_proba(X), chances, atol=0.12)
    assert chances[:6].min() > 0.5 > chances[6:].max()  # of a cluster not seen, and of one seen


def test_a_rows_answer_is_its_own(fitted):
    model, X = fitted
    for query in (model.score_samples, model.new_cluster_proba):
        together = query(X)
        np.testing.assert_array_equal(query(X[::-1])[::-1], together)
        np.testing.assert_array_equal([query(X[i : i + 1])[0] for i in range(len(X))], together)


def test_copies_of_a_row_have_its_mode():
    X = np.random.default_rng(3).poisson(3.0, (4, 6)) + 1
    likelihood = LIKELIHOODS["logistic_normal"].of(X, rank=3)
    rows = likelihood.encode(X)
    for i in range(4):
        copies = [np.array(a) for a in likelihood._modes(rows[np.full(5, i)])]
        for a, b in zip(copies, likelihood._modes(rows), strict=True):
            np.testing.assert_array_equal(a, np.repeat(b[i : i + 1], 5, axis=0))
