"""Figures of convergence: what agrees, what is at odds, and what says too little."""

import numpy as np
import pytest

from skanneal.summary import agreeing_chains, convergence
from skanneal.summary._convergence import _Partitions

N_RECORDS = 100


def scalars(rng, n_chains=4, n_records=N_RECORDS, shift=0.0):
    values = rng.normal(size=(n_chains, n_records))
    values[-1] += shift
    return {"log_joint": values, "n_components": rng.poisson(5, size=(n_chains, n_records))}


def draws(rng, n_chains=4, n_draws=25, n_rows=60, n_clusters=3):
    """Of one law: every draw moves a tenth of the rows of one partition."""
    base, chains = np.arange(n_rows) % n_clusters, []
    for _ in range(n_chains):
        labels = [
            np.where(rng.random(n_rows) < 0.1, rng.integers(n_clusters, size=n_rows), base)
            for _ in range(n_draws)
        ]
        chains.append([(np.zeros(1, dtype=int), [of_rows]) for of_rows in labels])
    return chains


def vi(one, two):
    """Variation of information by its definition: H(A | B) + H(B | A)."""
    total = 0.0
    for a in set(one):
        for b in set(two):
            both = np.mean((one == a) & (two == b))
            if both:
                total -= both * np.log(both / np.mean(one == a))
                total -= both * np.log(both / np.mean(two == b))
    return total


def figures(found, agrees):
    return {name for name, f in found["figures"].items() if f["agrees"] is agrees}


def test_chains_of_one_law_agree():
    rng = np.random.default_rng(0)
    found = convergence(scalars(rng), draws(rng))
    assert found["converged"] and found["agreeing"].all()
    assert figures(found, True) == set(found["figures"])


def test_a_chain_of_another_height_is_told():
    rng = np.random.default_rng(1)
    found = convergence(scalars(rng, shift=9.0), draws(rng))
    assert not found["converged"]
    assert figures(found, False) == {"r_hat of log_joint", "ess of log_joint"}
    assert found["agreeing"].tolist() == [True, True, True, False]


def test_a_chain_of_another_partition_is_told():
    rng = np.random.default_rng(2)
    chains = draws(rng)
    chains[1] = draws(rng, n_chains=1, n_clusters=4)[0]
    found = convergence(scalars(rng), chains)
    assert figures(found, False) == {"distance of rows"}
    assert found["agreeing"].tolist() == [True, False, True, True]


@pytest.mark.parametrize("n_moved", [1, 6])
def test_a_few_rows_elsewhere_count_for_nothing(n_moved):
    """One of 400 rows is 0.02 nats where all draws of a chain are equal, a ratio of 1.4."""
    rng, chains = np.random.default_rng(6), []
    for c in range(4):
        rows = np.arange(400) % 2
        rows[: n_moved * (c == 3)] = 2
        chains.append([(np.zeros(1, dtype=int), [rows])] * 25)
    found = convergence(scalars(rng), chains)
    figure = found["figures"]["distance of rows"]
    assert figure["value"] > figure["limit"]
    apart = vi(chains[3][0][1][0], np.arange(400) % 2)
    assert figure["excess"] == pytest.approx(apart, abs=1e-12)
    few = figure["excess"] <= 0.05
    assert few == (n_moved == 1)
    assert figure["agrees"] is few and found["converged"] is few
    assert found["agreeing"].all() == few


def test_columns_are_told_apart_from_rows():
    """Views of equal rows: which columns share one differs between the chains."""
    rng = np.random.default_rng(3)
    rows, chains = np.arange(60) % 3, []
    for c in range(4):
        view_of = np.array([0, 0, 1, 1]) if c < 2 else np.array([0, 1, 0, 1])
        chains.append([(view_of, [rows, rows])] * 25)
    found = convergence(scalars(rng), chains)
    assert figures(found, False) == {"distance of columns"}
    assert found["agreeing"].sum() == 2


def test_one_partition_throughout_agrees():
    rows, constant = np.zeros(60, dtype=int), np.ones((4, N_RECORDS))
    chains = [[(np.zeros(1, dtype=int), [rows])] * 25] * 4
    found = convergence({"log_joint": -3.0 * constant, "n_components": constant}, chains)
    assert found["converged"] and found["figures"]["r_hat of log_joint"]["value"] == 1.0
    # Each chain at a number of its own: no variance within, and no agreement.
    other = constant * np.arange(4)[:, None]
    found = convergence({"log_joint": -3.0 * constant, "n_components": other}, chains)
    assert figures(found, False) >= {"r_hat of n_components"}
    assert found["agreeing"].sum() == 1


def test_the_components_of_all_views_together_judge_nothing():
    rng = np.random.default_rng(5)
    apart = {**scalars(rng), "n_components": np.arange(4.0)[:, None] + np.zeros((4, N_RECORDS))}
    assert figures(convergence(apart, draws(rng)), False) >= {"r_hat of n_components"}
    found = convergence({**apart, "n_views": np.ones((4, N_RECORDS))}, draws(rng))
    assert found["converged"] and found["agreeing"].all()
    assert (
        "r_hat of n_views" in found["figures"] and "r_hat of n_components" not in found["figures"]
    )


@pytest.mark.parametrize(
    "short", [{"n_chains": 1}, {"n_records": 19}, {"n_draws": 3}], ids=lambda s: next(iter(s))
)
def test_too_little_to_tell_is_no_claim(short):
    rng = np.random.default_rng(4)
    n_chains = short.get("n_chains", 4)
    found = convergence(
        scalars(rng, n_chains, short.get("n_records", N_RECORDS)),
        draws(rng, n_chains, short.get("n_draws", 25)),
    )
    assert not found["converged"] and found["agreeing"].all()
    assert figures(found, None) and not figures(found, False)


def alone(rng, log_joint):
    kept = draws(rng, n_chains=1)
    return convergence({"log_joint": np.asarray(log_joint, dtype=float)[None]}, kept)


def test_one_chain_by_itself_can_only_tell_that_it_is_under_way():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(200, 24))
    settled = [alone(rng, of)["figures"]["halves of log_joint"]["agrees"] for of in noise]
    assert np.mean(settled) > 0.99  # the halves' difference has a standard deviation of 0.4
    found = alone(rng, noise[0])
    assert not found["converged"] and found["figures"]["r_hat of log_joint"]["agrees"] is None
    for under_way in (
        np.linspace(0, 9, 24) + noise[0],
        np.r_[np.zeros(12), np.ones(12)],
        noise[0] + 5 * (np.arange(24) >= 12),
    ):
        figure = alone(rng, under_way)["figures"]["halves of log_joint"]
        assert figure["agrees"] is False and figure["limit"] == 2.0
    line = alone(rng, np.arange(400))["figures"]["halves of log_joint"]["value"]
    assert line == pytest.approx(np.sqrt(12), rel=1e-3)
    assert alone(rng, np.ones(24))["figures"]["halves of log_joint"]["value"] == 0.0
    assert alone(rng, noise[0][:19])["figures"]["halves of log_joint"]["agrees"] is None
    both = convergence(scalars(rng, n_chains=2), draws(rng, n_chains=2))["figures"]
    assert not any("halves" in name for name in both)


def test_the_distance_is_the_variation_of_information_as_columns_see_it():
    rng = np.random.default_rng(5)
    labels = rng.integers(4, size=(5, 40))
    one, two = np.array([0, 0, 1]), np.array([1, 2, 0])
    a, b = _Partitions(one, list(labels[:2])), _Partitions(two, list(labels[2:]))
    expected = np.mean([vi(labels[i], labels[2 + j]) for i, j in zip(one, two)])
    assert a.distance(b) == b.distance(a) == pytest.approx(expected, rel=1e-12)
    assert a.distance(a) == 0.0


def test_of_sets_of_one_size_the_higher_agrees():
    apart = np.ones((4, 4), dtype=bool)
    apart[np.ix_([0, 1], [0, 1])] = apart[np.ix_([2, 3], [2, 3])] = False
    for heights, expected in (([3, 2, 1, 0], [0, 1]), ([0, 1, 2, 3], [2, 3])):
        assert np.flatnonzero(agreeing_chains(apart, np.array(heights))).tolist() == expected
