"""What a likelihood refuses, and how a user's own is checked."""

import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from oracles.likelihood_rows import NUMBERS, every, make, rng_of, scores
from skanneal.likelihoods import LIKELIHOODS, Likelihood, TableRows, checked
from skanneal.likelihoods._draws import inverse_cholesky


# ------------------------------------------------------------------ bad input
@pytest.mark.parametrize("name", ["multinomial", "logistic_normal", "poisson"])
@pytest.mark.parametrize("value", [-1.0, 0.5, np.nan, np.inf, "too many"])
def test_what_is_no_count(name, value):
    likelihood, _, X = make(name)
    if value == "too many":
        value = 2.0**32 - 1 if name == "poisson" else 2.0**31
    X = X.astype(float)
    X[4, 1] = value
    for rows in (X, csr_array(X)):
        with pytest.raises(ValueError, match="Row 4, column 1 of X must hold non-negative int"):
            likelihood.encode(rows)


@pytest.mark.parametrize("name", ["multinomial", "logistic_normal"])
def test_a_row_of_zeros(name):
    likelihood, _, X = make(name)
    X[[6, 9]] = 0
    with pytest.raises(ValueError, match="Row 6 of X has no counts above 0"):
        likelihood.encode(X)


def test_rows_of_zeros_are_fine_for_poisson():
    likelihood, _, _ = make("poisson")
    rows = likelihood.encode(np.zeros((2, 3)))
    theta = likelihood.prior_draw(3, rng_of(37))
    expected = np.repeat(-np.exp(theta).sum(axis=1)[None], 2, axis=0)
    np.testing.assert_allclose(scores(likelihood, rows, theta), expected, rtol=1e-6)


@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_no_number(name):
    likelihood, _, X = make(name)
    for value in (np.nan, np.inf):
        X[3, 2] = value
        with pytest.raises(ValueError, match=f"Row 3, column 2 of X must hold a finite.*{value}"):
            likelihood.encode(X)
    with pytest.raises(TypeError, match="sparse"):
        likelihood.encode(csr_array(np.eye(3)))


@every
def test_other_columns(name):
    likelihood, rows, _ = make(name)
    with pytest.raises(ValueError, match="columns"):
        likelihood.encode(np.ones((2, 5), dtype=int))
    theta = likelihood.prior_draw(3, rng_of(38))
    with pytest.raises(ValueError, match="out must have shape"):
        likelihood.log_lik(rows, likelihood.prepare(theta), np.empty((2, 3), np.float32))
    with pytest.raises(IndexError):
        beyond = TableRows(rows.table, 5, 40)
        likelihood.log_lik(beyond, likelihood.prepare(theta), np.empty((35, 3), np.float32))


def test_a_singular_scale_matrix():
    with pytest.raises(ValueError, match="not positive definite"):
        inverse_cholesky(np.ones((1, 2, 2)))


# ------------------------------------------------------------------ a user's own
class WaitingTimes(Likelihood):
    """x ~ Exponential(exp(theta)), theta ~ N(0, 4)."""

    def log_lik(self, rows, theta, out):
        out[:] = theta - rows * np.exp(theta)

    def statistics(self, rows, labels, n_features):
        kept = labels >= 0
        n = np.bincount(labels[kept], minlength=n_features)
        total = np.bincount(labels[kept], rows[kept, 0], minlength=n_features)
        return np.stack([n, total], axis=1)

    def draw(self, statistics, theta, rng):
        return theta + 0.1

    def prior_draw(self, n, rng):
        return 2.0 * rng.standard_normal(n)

    def log_prior(self, theta):
        return stats.norm.logpdf(theta, scale=2.0)

    def proposal_draw(self, rows, rng):
        return rng.standard_normal(len(rows)) - np.log(rows[:, 0])

    def proposal_logpdf(self, theta, row):
        return stats.norm.logpdf(theta, -np.log(row[0, 0]))


def use(likelihood):
    """Every method once."""
    likelihood = checked(likelihood, proposes=True)
    rng = rng_of(39)
    rows = likelihood.encode(np.array([[0.3], [1.0], [2.0]]))
    theta = likelihood.prior_draw(2, rng)
    out = np.zeros((3, 2), np.float32)
    likelihood.log_lik(rows, likelihood.prepare(theta), out)
    statistics = likelihood.statistics(rows, np.array([0, 1, -1], np.int32), 2)
    theta = likelihood.draw(statistics, theta, rng)
    likelihood.update(theta, statistics, np.array([1, 1]), rng)
    likelihood.set_state(likelihood.state())
    likelihood.log_prior(theta)
    likelihood.proposal_logpdf(likelihood.proposal_draw(rows, rng), rows[:1])
    return out


def test_a_sound_likelihood_passes():
    own = WaitingTimes()
    expected = np.empty((3, 2), np.float32)
    own.log_lik(np.array([[0.3], [1.0], [2.0]]), own.prior_draw(2, rng_of(39)), expected)
    np.testing.assert_array_equal(use(own), expected)
    assert not checked(own).conjugate
    again = pickle.loads(pickle.dumps(checked(own)))
    assert type(again.likelihood) is WaitingTimes
    for name in LIKELIHOODS:
        likelihood, _, _ = make(name)
        assert checked(likelihood) is likelihood


def wrong_log_lik(value):
    def log_lik(self, rows, theta, out):
        WaitingTimes.log_lik(self, rows, theta, out)
        out[1, 0] = value

    return log_lik


FAULTS = {
    "log_lik NaN": ("log_lik", wrong_log_lik(np.nan), ValueError, "nan for row 1 .* atom 0"),
    "log_lik inf": ("log_lik", wrong_log_lik(np.inf), ValueError, "inf for row 1 .* atom 0"),
    "log_lik returned": (
        "log_lik",
        lambda self, rows, theta, out: theta - rows * np.exp(theta),
        TypeError,
        "return nothing",
    ),
    "log_lik unwritten": (
        "log_lik", lambda self, rows, theta, out: None, ValueError, "write every entry of out",
    ),
    "statistics shape": (
        "statistics",
        lambda self, rows, labels, n: np.zeros((n + 1, 2)),
        ValueError,
        r"array of shape \(2, \.\.\.\); got shape \(3, 2\)",
    ),
    "statistics dtype": (
        "statistics",
        lambda self, rows, labels, n: np.zeros((n, 2), np.float32),
        TypeError,
        "float64 or int64 .* float32",
    ),
    "draw shape": (
        "draw", lambda self, s, theta, rng: theta[:, None], ValueError, r"got shape \(2, 1\)",
    ),
    "draw NaN": ("draw", lambda self, s, theta, rng: theta * np.nan, ValueError, r"nan at \(0,\)"),
    "prior_draw list": ("prior_draw", lambda self, n, rng: [0.0] * n, TypeError, "got list"),
    "prior_draw number": ("prior_draw", lambda self, n, rng: np.zeros(1), ValueError, r"\(1,\)"),
    "log_prior scalar": ("log_prior", lambda self, theta: 0.0, TypeError, "got float"),
    "log_prior NaN": (
        "log_prior", lambda self, theta: theta * np.nan, ValueError, "nan for atom 0",
    ),
    "proposal_draw shape": (
        "proposal_draw", lambda self, rows, rng: np.zeros((3, 2)), ValueError, r"\(3, 2\)",
    ),
    "proposal_logpdf shape": (
        "proposal_logpdf", lambda self, theta, row: np.zeros((3, 1)), ValueError, r"\(3, 1\)",
    ),
    "encode length": ("encode", lambda self, X: X[:2], ValueError, "3 rows; got 2"),
    "encode number": ("encode", lambda self, X: 3.0, TypeError, r"len\(\); got float"),
    "state": ("state", lambda self: [1.0], TypeError, "a dict of arrays; got list"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_answer_names_class_and_method(fault):
    method, function, error, message = FAULTS[fault]
    own = type("Own", (WaitingTimes,), {method: function})
    with pytest.raises(error, match=message) as raised:
        use(own())
    assert f"Own.{method} must" in str(raised.value)


def test_what_is_missing_is_named_before_any_work():
    with pytest.raises(TypeError, match="subclass of skanneal.likelihoods.Likelihood, got str"):
        checked("exponential")
    own = type("Own", (WaitingTimes,), {"log_prior": Likelihood.log_prior})
    with pytest.raises(TypeError, match="Own must define the method log_prior"):
        checked(own())
    own = type("Own", (WaitingTimes,), {"proposal_draw": Likelihood.proposal_draw})
    checked(own())
    with pytest.raises(TypeError, match="Own must define the method proposal_draw"):
        checked(own(), proposes=True)
    with pytest.raises(NotImplementedError, match="Own has no proposal_draw"):
        own().proposal_draw(None, None)
