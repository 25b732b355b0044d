"""Counts up to the largest that are taken, against 45 digits: nothing large is lost by cancelling.

The oracle is large_counts.py. What a row step uses is float32, so half a unit of a score's last
place is allowed; every other number has to be right to 1e-9 of itself.
"""

from decimal import Decimal
from math import lgamma

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

from oracles.large_counts import (
    errors,
    log_factorial,
    log_gamma,
    multinomial_log_density,
    multinomial_log_marginal,
    poisson_log_density,
    poisson_log_marginal,
    poisson_log_predictive,
)
from skanneal import AcceleratedDPMixture
from skanneal.families import FAMILIES, Table
from skanneal.likelihoods import LIKELIHOODS
from skanneal.schedules import AcceleratedSchedule
from skanneal.sharded._row_source import RowSource

LARGEST = 2**32 - 2
HALF_UNIT = 2.0**-24  # of float32
HYPER = [(1.3, 0.7), (0.1, 1e-9), (80.0, 2e-5)]


def poisson_block(columns, labels, hyper, n_rows=None):
    """A block of columns of counts whose first n_rows rows are in clusters."""
    table = Table(["u4"] * len(columns), [0] * len(columns))
    table.append([np.asarray(column, dtype=np.uint32) for column in columns])
    block = FAMILIES["poisson"](table, np.arange(len(columns)), hyper)
    n_rows = len(labels) if n_rows is None else n_rows
    block.build(np.arange(n_rows), labels[:n_rows], 16)
    return block


def make_columns(mean, n_rows=60, seed=0):
    """Columns around a mean, and one in which two clusters are far apart; labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_rows) % 2
    means = np.where(labels, mean, np.sqrt(mean))
    columns = [rng.poisson(mean, n_rows), rng.poisson(means), rng.poisson(0.8 * mean, n_rows)]
    return [column.clip(0, LARGEST) for column in columns], labels


@pytest.mark.parametrize("mean", [3.0, 400.0, 3e4, 2e7, 4.29e9])
class TestPoissonFamily:
    def test_scores_of_rows(self, mean):
        columns, labels = make_columns(mean)
        block = poisson_block(columns, labels, HYPER, 50)
        queries = np.zeros((10, 16))
        block.score_rows(block.table, queries, 50, 60)
        for i in (51, 58):
            exact = []
            for k in (0, 1, 2):
                of_slot = [c[:50][labels[:50] == k] for c in columns]
                cells = zip(columns, of_slot, HYPER)
                exact.append(sum(poisson_log_predictive(c[i], v, *h) for c, v, h in cells))
            shown, size = block.row_scores(i)[:3], np.abs(np.array(exact, float))
            assert (np.abs(errors(shown, exact)) <= HALF_UNIT * size + 1e-9 * size).all()
            assert (np.abs(errors(queries[i - 50, :3], exact)) <= 1e-9 * size).all()

    def test_a_rows_own_cluster_without_it(self, mean):
        columns, labels = make_columns(mean)
        block = poisson_block(columns, labels, HYPER)
        for i in (4, 7):
            k = labels[i]
            others = (labels == k) & (np.arange(60) != i)
            exact = sum(poisson_log_predictive(c[i], c[others], *h) for c, h in zip(columns, HYPER))
            error = errors([block.row_score_without(i, k)], [exact])
            assert abs(error[0]) <= (HALF_UNIT + 1e-9) * abs(float(exact))

    def test_marginals_and_what_follows_from_them(self, mean):
        columns, labels = make_columns(mean)
        block = poisson_block(columns, labels, HYPER)
        rng = np.random.default_rng(1)
        for _ in range(300):  # rows that come and go leave nothing behind
            i = rng.integers(60)
            block.remove_row(i, labels[i])
            block.insert_row(i, labels[i])
        rows, both = np.arange(60), np.stack([labels, 0 * labels]).astype(np.int32)
        shown = block.column_scores(block.table, [0, 1, 2], HYPER, rows, both, [2, 1])
        grid = np.array([0.5, 2.0])
        at = list(block.columns)
        for f, (column, hyper) in enumerate(zip(columns, HYPER)):
            parts = [column[labels == k] for k in (0, 1)]
            exact = np.array([poisson_log_marginal(part, *hyper) for part in parts])
            error = errors(block.log_marginals(at.index(f))[:2], exact)
            assert (np.abs(error) <= 1e-9 * np.abs(exact.astype(float))).all()
            assert not block.log_marginals(at.index(f))[2:].any()
            exact = np.array([exact.sum(), poisson_log_marginal(column, *hyper)])
            size = np.abs(exact.astype(float))  # the second is in the first's sum, too
            assert (np.abs(errors(shown[f], exact)) <= 1e-9 * size + 1e-16 * size[1]).all()
            for h in (0, 1):
                values = np.array(hyper[h]) * grid
                scores = block.grid_scores(at.index(f), h, values)
                exact = [
                    sum(
                        poisson_log_marginal(part, *(value if h == j else hyper[j] for j in (0, 1)))
                        for part in parts
                    )
                    for value in values
                ]
                error = errors([scores[1] - scores[0]], [exact[1] - exact[0]])
                assert abs(error[0]) <= 1e-9 + 1e-15 * abs(float(exact[0]))

    def test_the_arrays_hold_it_all(self, mean):
        columns, labels = make_columns(mean)
        block = poisson_block(columns, labels, HYPER)
        other = type(block).from_arrays(block.to_arrays(2), block.table)
        np.testing.assert_array_equal(other.log_marginals(), block.log_marginals())
        block.merge_slots(0, 1)
        whole = poisson_block(columns, 0 * labels, HYPER).log_marginals()[0]
        assert block.log_marginals()[0] == pytest.approx(whole, rel=1e-10)


def test_many_poisson_rows_at_the_largest_counts():
    """10^5 rows, of a sum of 4e14; few different counts, for the oracle's sake."""
    rng = np.random.default_rng(2)
    x = rng.choice(rng.integers(4_290_000_000, LARGEST, 50), 100_000)
    labels = (np.arange(100_000) % 2).astype(np.int64)
    block = poisson_block([x], labels, [(1.0, 1e-9)])
    exact = [poisson_log_marginal(x[labels == k], "1.0", 1e-9) for k in (0, 1)]
    error = np.abs(errors(block.log_marginals()[:2], exact))
    assert error.max() < 1e-9 * abs(float(exact[0]))
    block.merge_slots(0, 1)
    gain = sum(exact) - poisson_log_marginal(x, "1.0", 1e-9)
    first = block.log_marginals()[0]
    apart = poisson_block([x], labels, [(1.0, 1e-9)]).log_marginals()[:2].sum()
    assert abs(float(gain) - (apart - first)) < 1e-3


# ------------------------------------------------------------------ instantiated features
def near(log_rates, mean, n_features, seed):
    """Features a few posterior standard deviations from each other and from the rows."""
    noise = np.random.default_rng(seed).normal(size=(n_features, len(log_rates)))
    return log_rates + noise / np.sqrt(mean)


def check_scores(likelihood, X, theta, density):
    """Differences between features to 0.002 nats; scores in float64 to 1e-9 of themselves and to
    what one rounding of theta makes."""
    rows = likelihood.encode(X)
    shown = np.empty((len(X), len(theta)), np.float32)
    likelihood.log_lik(rows, likelihood.prepare(theta), shown)
    exact = np.array([[density(x, t) for t in theta] for x in X])
    error = errors(shown, exact)
    assert np.ptp(error, axis=1).max() < 0.002 + 4 * HALF_UNIT * abs(float(exact.min()))
    answer = np.empty((len(X), len(theta)))
    likelihood.log_lik(rows, likelihood.prepare(theta), answer)
    # a multinomial coefficient is known to one rounding of log X!
    rounding = 2e-14 if density is multinomial_log_density else 1e-15
    allowed = 1e-9 * np.abs(exact.astype(float)) + rounding * X.sum(axis=1, keepdims=True) + 1e-12
    assert (np.abs(errors(answer, exact)) < allowed).all()


@pytest.mark.parametrize("mean", [0.5, 30.0, 1e4, 1e7, 4.29e9])
@pytest.mark.parametrize("n_columns", [1, 3, 40])
def test_poisson_scores(mean, n_columns):
    rng = np.random.default_rng(3)
    X = rng.poisson(mean, (5, n_columns)).clip(0, LARGEST)
    log_rates = np.log(np.full(n_columns, mean))
    theta = np.concatenate([near(log_rates, mean, 5, 4), near(log_rates, 0.01 * mean, 2, 5)])
    likelihood = LIKELIHOODS["poisson"].of(X)
    check_scores(likelihood, X, theta, poisson_log_density)
    # nor does it hang on the rows that the likelihood was made from
    check_scores(LIKELIHOODS["poisson"].of(X // 3), X, theta, poisson_log_density)


@pytest.mark.parametrize("total", [40, 500, 3e4, 1e7, 2**31 - 1])
@pytest.mark.parametrize("n_columns", [2, 20, 300])
@pytest.mark.parametrize("sparse", [False, True])
def test_multinomial_scores(total, n_columns, sparse):
    rng = np.random.default_rng(6)
    p = rng.dirichlet(np.full(n_columns, 0.05 if sparse else 3.0))
    X = rng.multinomial(int(total), p, 4)
    theta = near(np.log(np.maximum(p, 1e-12)), np.maximum(total * p, 1.0), 5, 7)
    theta -= np.log(np.exp(theta).sum(axis=1, keepdims=True))
    for name in ("multinomial", "logistic_normal"):
        likelihood = LIKELIHOODS[name].of(X)
        if name == "logistic_normal":  # features are theta as they are
            likelihood.loading = np.eye(n_columns)
        check_scores(likelihood, X, theta, multinomial_log_density)


@pytest.mark.parametrize("name", ["poisson", "multinomial"])
def test_scores_of_many_columns(name):
    """1000 columns around 10^4, and rows of a few words out of 1000."""
    rng = np.random.default_rng(8)
    means = 1e4 * rng.gamma(3.0, size=1000) / 3.0
    X = rng.poisson(means, (2, 1000))
    theta = near(np.log(means), means, 3, 9)
    density = poisson_log_density
    if name == "multinomial":
        theta, density = theta - np.log(means.sum()), multinomial_log_density
    check_scores(LIKELIHOODS[name].of(X), X, theta, density)
    X = rng.poisson(0.3, (2, 1000))
    theta = near(np.log(np.full(1000, 0.3 if name == "poisson" else 1e-3)), 3.0, 3, 10)
    check_scores(LIKELIHOODS[name].of(X), X, theta, density)


# ------------------------------------------------------------------ sums beyond 31 bits
@pytest.mark.parametrize("total", [30, 4e4, 3e8, 2**31 - 1])
def test_the_multinomial_family_with_large_sums(total):
    """Of a column, and of a cluster; a row is scored by either of the two ways."""
    rng, prior = np.random.default_rng(11), np.array([0.7, 1.5, 0.2])
    X = rng.multinomial(int(total), [0.5, 0.3, 0.2], 9)
    X[:6] = rng.multinomial(2**31 - 1, [0.2, 0.2, 0.6], 6)
    labels = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2])
    table = Table(["entries", "none", "none"], [0, 0, 0])
    table.append([csr_array(X.astype(np.uint32)), None, None])
    block = FAMILIES["multinomial"](table, [0, 1, 2], [prior])
    block.build(np.arange(9), labels, 16)
    block.validate()
    marginals = [multinomial_log_marginal(X[labels == k], prior) for k in range(3)]
    size = np.abs(np.array(marginals, float))
    error = errors(block.log_marginals()[:3], marginals)
    assert (np.abs(error) <= 1e-9 * size + 1e-13 * X.sum()).all()
    for i in (0, 8):
        exact = [
            multinomial_log_marginal([*X[labels == k], X[i]], prior) - marginals[k]
            for k in range(3)
        ]
        allowed = HALF_UNIT * np.abs(np.array(exact, float)) + 1e-13 * X[i].sum() + 1e-4
        assert (np.abs(errors(block.row_scores(i)[:3], exact)) <= allowed).all()
    again = type(block).from_arrays(block.to_arrays(3), table)
    np.testing.assert_array_equal(again.row_scores(8), block.row_scores(8))


def test_a_cluster_of_a_large_total():
    """300 columns of 2^30 each: their sum is beyond what log Gamma knows to 0.0001."""
    counts = np.full((2, 300), 2**30)
    X = np.concatenate([counts, np.random.default_rng(12).poisson(60.0, (1, 300))])
    table = Table(["entries", *["none"] * 299], [0] * 300)
    table.append([csr_array(X.astype(np.uint32)), *[None] * 299])
    block = FAMILIES["multinomial"](table, np.arange(300), [np.full(300, 0.5)])
    block.build(np.array([0]), np.array([0]), 16)
    total, x = 300 * (2**30 + Decimal("0.5")), [int(c) for c in X[2]]
    exact = log_factorial(sum(x)) - log_gamma(total + sum(x)) + log_gamma(total)
    each = 2**30 + Decimal("0.5")
    exact += sum(log_gamma(each + c) - log_gamma(each) - log_factorial(c) for c in x)
    assert abs(errors([block.row_scores(2)[0]], [exact])[0]) < 5e-4


CONTAINERS = {
    "array": lambda X, folder: X,
    "sparse": lambda X, folder: csr_array(X),
    "memory map": lambda X, folder: np.load(saved(X, folder / "0.npy"), mmap_mode="r"),
    ".npy files": lambda X, folder: [
        saved(part, folder / f"{i}.npy") for i, part in enumerate((X[:5], X[5:]))
    ],
    ".npz files": lambda X, folder: [
        saved(csr_array(part), folder / f"{i}.npz") for i, part in enumerate((X[:5], X[5:]))
    ],
}


def saved(part, path):
    save_npz(path, part) if path.suffix == ".npz" else np.save(path, part)
    return str(path)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", ["multinomial", "poisson", "logistic_normal"])
def test_sums_of_all_sources(name, container, tmp_path, monkeypatch):
    """Two rows are looked at before the fit; the sums are those of all of them."""
    if name == "poisson" and container in ("sparse", ".npz files"):
        return  # a sparse table is the multinomial family's alone
    rng = np.random.default_rng(13)
    X = rng.multinomial(2**31 - 1, [0.6, 0.3, 0.1], 14)
    monkeypatch.setattr("skanneal.sharded._data.HEAD_ROWS", 2)
    fixed = {"multinomial": {"pseudo_counts": 1.0}, "poisson": {"shape": 1.0, "rate": 1e-9}}
    model = AcceleratedDPMixture(
        likelihood=name,
        hyperparameters={name: fixed[name]} if name in fixed else "infer",
        concentration=1.0,
        algorithm="slice",
        schedule=AcceleratedSchedule(n_accelerated=0, n_exact=2),
        init=1,
        n_draws=1,
        random_state=0,
    ).fit(CONTAINERS[container](X, tmp_path))
    (draw,) = model.draws_[0]
    assert np.isfinite(model.score(X.astype(float)))
    if name == "logistic_normal":
        assert -200 < draw.log_joint / len(X) < 0
        return
    labels = draw.labels
    parts = [X[labels == k] for k in range(labels.max() + 1)]
    if name == "multinomial":
        shown = draw.arrays["multinomial/count"].T
        exact = sum(multinomial_log_marginal(part, [1.0] * 3) for part in parts)
    else:
        shown = draw.arrays["poisson/total"].T
        exact = sum(poisson_log_marginal(c, "1.0", 1e-9) for part in parts for c in part.T)
    np.testing.assert_array_equal(shown, [part.sum(axis=0) for part in parts])
    sizes = np.bincount(labels)
    log_prior = sum(map(lgamma, sizes)) + lgamma(1.0) - lgamma(1.0 + len(X))
    assert draw.log_joint == pytest.approx(log_prior + float(exact), abs=0.01)


def test_a_draw_far_from_any_mode_is_its_own_point_estimate(tmp_path, monkeypatch):
    """Overdispersed counts of which each row would open a cluster, read from disk.

    A climb from the first sweep would make as many clusters as rows, at the cost of their square.
    """
    X = np.random.default_rng(14).integers(25_000, 35_000, (200, 20))
    monkeypatch.setattr(RowSource.__init__, "__defaults__", ("X", 0))  # nothing stays in memory
    model = AcceleratedDPMixture(
        likelihood="multinomial",
        hyperparameters={"multinomial": {"pseudo_counts": 1.0}},
        concentration=1.0,
        algorithm="slice",
        schedule=AcceleratedSchedule(n_accelerated=0, n_exact=1, sync_every=1),
        random_state=0,
    ).fit(np.load(saved(X, tmp_path / "X.npy"), mmap_mode="r"))
    (draw,) = model.draws_[0]
    assert draw.n_components < 10
    np.testing.assert_array_equal(model.component_labels_, draw.labels)
    parts = [X[draw.labels == k] for k in range(draw.n_components)]
    exact = sum(multinomial_log_marginal(part, [1.0] * 20) for part in parts)
    log_prior = sum(lgamma(len(part)) for part in parts) - lgamma(1.0 + len(X))
    assert draw.log_joint == pytest.approx(log_prior + float(exact), abs=0.01)
