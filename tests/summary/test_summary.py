"""Point estimates of a partition against full enumeration, and their building blocks."""

import math
import tracemalloc
from itertools import product

import numpy as np
import pytest

from oracles.enumeration import canonical, partitions
from skanneal.summary import (
    POINT_ESTIMATES,
    _coclustering,
    _losses,
    coclustering,
    expected_binder,
    expected_vi,
    point_estimate,
    relabel,
)

EXPECTED = {"vi": expected_vi, "binder": expected_binder}


# ------------------------------------------------------------------------------ slow, by definition
def entropy(labels):
    n = len(labels)
    shares = [labels.count(label) / n for label in set(labels)]
    return -sum(share * math.log(share) for share in shares)


def slow_vi(a, b):
    """Meilă (2007): H(A | B) + H(B | A) = 2 H(A, B) - H(A) - H(B)."""
    a, b = list(a), list(b)
    return 2 * entropy(list(zip(a, b))) - entropy(a) - entropy(b)


def slow_binder(a, b):
    """Ordered pairs of rows on which the partitions disagree."""
    pairs = list(product(range(len(a)), repeat=2))
    return sum((a[i] == a[j]) != (b[i] == b[j]) for i, j in pairs) / len(pairs)


SLOW = {"vi": slow_vi, "binder": slow_binder}


def slow_expected(method, labels, draws):
    return sum(SLOW[method](labels, draw) for draw in draws) / len(draws)


def random_draws(rng, n_rows, n_draws):
    """Draws from a random law over all partitions of the rows, concentrated on some."""
    every = list(partitions(n_rows))
    probabilities = rng.dirichlet(np.full(len(every), 0.1))
    return [every[i] for i in rng.choice(len(every), size=n_draws, p=probabilities)]


def noisy_copies(rng, labels, n_draws, noise):
    """Draws that give a share of the rows another label, each under a numbering of its own."""
    draws = []
    n_clusters = labels.max() + 1
    for _ in range(n_draws):
        draw = labels.copy()
        changed = rng.random(len(labels)) < noise
        draw[changed] = rng.integers(0, n_clusters, changed.sum())
        draws.append(rng.permutation(n_clusters)[draw].astype(np.int32))
    return draws


# ------------------------------------------------------------------------------------------- losses
@pytest.mark.parametrize("method", EXPECTED)
def test_expected_loss_by_definition(method):
    rng = np.random.default_rng(0)
    for _ in range(50):
        n_rows = int(rng.integers(1, 12))
        draws = rng.integers(0, 5, size=(int(rng.integers(1, 6)), n_rows))
        labels = rng.integers(-3, 3, size=n_rows)
        expected = slow_expected(method, labels.tolist(), draws.tolist())
        assert EXPECTED[method](labels, list(draws)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("method", EXPECTED)
def test_losses_are_metrics(method):
    """Zero for equal partitions only, symmetric, triangle inequality: all partitions of 4 rows."""
    every = list(partitions(4))
    loss = {(a, b): EXPECTED[method](a, [b]) for a in every for b in every}
    for (a, b), value in loss.items():
        assert (value == 0) == (a == b)
        assert value == pytest.approx(loss[b, a], abs=1e-12)
        assert all(value <= loss[a, c] + loss[c, b] + 1e-12 for c in every)


def test_relabel():
    assert relabel([7, 7, -3, 2, 7]).tolist() == [0, 0, 1, 2, 0]
    assert relabel(np.array([5], dtype=np.uint8)).dtype == np.int64
    assert relabel([]).shape == (0,)
    rng = np.random.default_rng(0)
    for _ in range(20):
        labels = rng.integers(0, 6, size=10)
        assert tuple(relabel(labels)) == canonical(labels)


# ---------------------------------------------------------------------------------- point estimates
@pytest.mark.parametrize("method", EXPECTED)
@pytest.mark.parametrize("n_rows", range(1, 7))
def test_point_estimate_is_the_optimum_of_all_partitions(method, n_rows):
    rng = np.random.default_rng(n_rows)
    for _ in range(12):
        draws = random_draws(rng, n_rows, n_draws=int(rng.integers(1, 12)))
        labels = point_estimate(draws, method=method)
        best = min(slow_expected(method, other, draws) for other in partitions(n_rows))
        assert slow_expected(method, labels.tolist(), draws) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("method", EXPECTED)
def test_descent_is_what_finds_the_optimum(method, monkeypatch):
    """Negative control: the best draw alone misses it now and then."""
    monkeypatch.setattr(_losses, "_DESCENT_WORK", 0)
    monkeypatch.setattr(_losses, "_descend", lambda draws, loss, start, work: (start, 0, 0))
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(12):
        draws = random_draws(rng, 5, n_draws=8)
        labels = point_estimate(draws, method=method)
        best = min(slow_expected(method, other, draws) for other in partitions(5))
        missed += slow_expected(method, labels.tolist(), draws) > best + 1e-9
    assert missed > 0


@pytest.mark.parametrize("method", EXPECTED)
@pytest.mark.few(1)
def test_many_blocks_give_the_same(method, monkeypatch):
    draws = noisy_copies(np.random.default_rng(0), np.repeat(np.arange(4), 25), 6, noise=0.4)
    labels = point_estimate(draws, method=method)
    monkeypatch.setattr(_losses, "_TRIPLE_BLOCK", 7)
    np.testing.assert_array_equal(point_estimate(draws, method=method), labels)


@pytest.mark.parametrize("method", EXPECTED)
def test_noise_is_averaged_out(method):
    """Ten draws with 20 % of 300 rows misplaced: the majority is right on nearly all rows.

    (With 30 % all rows in one cluster have less expected variation of information, log 3.)
    """
    true = np.repeat(np.arange(3), 100)
    draws = noisy_copies(np.random.default_rng(1), true, 10, noise=0.2)
    labels = point_estimate(draws, method=method)
    assert expected_binder(labels, [true]) < 0.2 * expected_binder(draws[0], [true])


def test_losses_of_all_draws_take_one_pass_over_their_rows(monkeypatch):
    rng, gather, calls = np.random.default_rng(3), _losses._gather, []
    draws = [rng.integers(1 + i % 4, size=50) for i in range(9)]
    monkeypatch.setattr(_losses, "_gather", lambda given: calls.append(0) or gather(given))
    got = _losses.expected_losses(draws, _losses.LOSSES["vi"])
    assert len(calls) == 1
    np.testing.assert_allclose(got, [expected_vi(own, draws) for own in draws], atol=1e-12)


def test_draws_that_have_nothing_in_common(monkeypatch):
    """All rows in one cluster are nearer to them than what the descent finds from any draw."""
    rng = np.random.default_rng(0)
    draws = [rng.integers(12, size=300) for _ in range(4)]
    of_one = expected_vi(np.zeros(300, dtype=int), draws)
    assert expected_vi(point_estimate(draws, method="vi"), draws) <= of_one
    starts = _losses._starts
    monkeypatch.setattr(
        _losses, "_starts", lambda *given: [labels for labels in starts(*given) if labels.any()]
    )
    assert expected_vi(point_estimate(draws, method="vi"), draws) > of_one + 0.05


@pytest.mark.parametrize("method", POINT_ESTIMATES)
def test_numbering_of_the_draws_does_not_show(method):
    draws = [[4, 4, 0, 0, 2], [4, 4, 0, 2, 2]]
    renumbered = [[0, 0, 9, 9, -1], [1, 1, 2, 0, 0]]
    log_joints = [-3.0, -2.0]
    labels = point_estimate(draws, log_joints, method)
    assert labels.dtype == np.int64
    assert tuple(labels) == canonical(labels)
    np.testing.assert_array_equal(labels, point_estimate(renumbered, log_joints, method))


def test_map_is_the_most_probable_draw():
    draws = [[1, 0], [3, 3], [0, 1]]
    assert point_estimate(draws, [-5, -2, -3]).tolist() == [0, 0]
    assert point_estimate(draws, [-5, np.nan, -3]).tolist() == [0, 1]
    assert point_estimate(draws, [-2, -2, -2]).tolist() == [0, 1], "the first of equals"


@pytest.mark.parametrize("method", EXPECTED)
@pytest.mark.parametrize("draws", [[[]], [[3]], [[2, 2, 0]] * 3], ids=["empty", "one row", "equal"])
def test_nothing_to_decide(method, draws):
    assert tuple(point_estimate(draws, method=method)) == canonical(draws[0])
    assert EXPECTED[method](draws[0], draws) == 0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["vi", "binder"])
def test_half_a_million_rows_take_no_square_array(method):
    """The peak is a few copies of the draws' labels: rows x rows would be 250 TB."""
    rng = np.random.default_rng(2)
    draws = noisy_copies(rng, rng.integers(0, 12, size=500_000), 8, noise=0.02)
    tracemalloc.start()
    try:
        labels = point_estimate(draws, method=method)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1e9
    assert EXPECTED[method](labels, draws) < min(EXPECTED[method](draw, draws) for draw in draws)


@pytest.mark.parametrize(
    "draws, log_joints, method, message",
    [
        ([[0, 1]], [0.0], "median", "method must be one of"),
        ([], [], "vi", "at least one"),
        ([[0, 1], [0, 1, 2]], None, "binder", "one length"),
        ([[[0, 1]]], None, "binder", "one-dimensional"),
        ([[0.5, 1]], None, "vi", "integers"),
        ([[0, 1]], None, "map", "log_joints"),
        ([[0, 1]], [1.0, 2.0], "map", "log_joints"),
        ([[0, 1]], [np.nan], "map", "log_joints"),
    ],
)
def test_bad_input(draws, log_joints, method, message):
    with pytest.raises(ValueError, match=message):
        point_estimate(draws, log_joints, method)


# ------------------------------------------------------------------------------------ co-clustering
def test_coclustering_counts_shared_clusters(monkeypatch):
    monkeypatch.setattr(_coclustering, "_BLOCK_CELLS", 20)
    draws = list(np.random.default_rng(0).integers(0, 3, size=(7, 9)))
    shares = coclustering(draws)
    for i, j in product(range(9), repeat=2):
        assert shares[i, j] == pytest.approx(sum(draw[i] == draw[j] for draw in draws) / 7)
    rows = [8, 2, 2, 5]
    np.testing.assert_array_equal(coclustering(draws, rows), shares[np.ix_(rows, rows)])
    mask = np.arange(9) < 4
    np.testing.assert_array_equal(coclustering(draws, mask), shares[:4, :4])


@pytest.mark.parametrize("none", [[], np.empty(0, dtype=bool), np.zeros(4, dtype=bool)])
def test_coclustering_of_no_rows(none):
    draws = [[0, 0, 1, 1]]
    assert coclustering(draws, rows=none).shape == (0, 0)
    assert coclustering(draws, others=none).shape == (4, 0)


@pytest.mark.parametrize("wrong", [[4], [-5], [0.0], ["a"], [True], [[0, 1]], 0])
def test_coclustering_names_rows_that_there_are_not(wrong):
    for name in ("rows", "others"):
        with pytest.raises(ValueError, match=f"{name} must hold positions of the 4 rows"):
            coclustering([[0, 0, 1, 1]], **{name: wrong})


def test_expected_binder_is_the_distance_to_the_coclustering():
    draws = list(np.random.default_rng(1).integers(0, 3, size=(5, 8)))
    labels = np.array([0, 0, 1, 1, 2, 2, 2, 0])
    joined = labels[:, None] == labels
    assert expected_binder(labels, draws) == pytest.approx(
        np.abs(joined - coclustering(draws)).mean()
    )


def test_coclustering_refuses_too_many_rows():
    draws = [np.zeros(200_000, dtype=np.int32)]
    with pytest.raises(ValueError, match=r"200000 rows with 200000 would take 298.0 GiB.*rows"):
        coclustering(draws)
    assert coclustering(draws, rows=np.arange(20)).shape == (20, 20)


@pytest.mark.parametrize("loss", sorted(_losses.LOSSES))
def test_with_little_work_it_is_no_worse_than_the_best_draw(loss, monkeypatch):
    """Of many rows and draws only some rows are looked at, those that there is work for."""
    draws = list(np.random.default_rng(0).integers(4, size=(20, 300)))
    scored, real = [], _losses._best_moves_in

    def counted(draws, loss, labels, table, cells, asked, block):
        scored.append(len(block))
        return real(draws, loss, labels, table, cells, asked, block)

    monkeypatch.setattr(_losses, "_DESCENT_WORK", 20_000)
    monkeypatch.setattr(_losses, "_best_moves_in", counted)
    labels = point_estimate(draws, np.zeros(20), loss)
    measure = _losses.LOSSES[loss]
    best = min(_losses.expected_loss(draw, draws, measure) for draw in draws)
    assert _losses.expected_loss(labels, draws, measure) <= best
    assert min(scored) < 300
