"""The multinomial family, from its block to the estimator, against the formulas of reference.py.

Random tests: fixed seeds, one try; a goodness-of-fit test alarms falsely once in 10,000.
"""

import math
import pickle
import tracemalloc
from collections import Counter
from itertools import permutations, product

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from joblib import parallel_config
from scipy.sparse import csr_array
from scipy.special import gammaln
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_score

from oracles.bits import all_scores, assert_same_arrays
from oracles.cheap import CHEAP
from oracles.count_rows import N_ROWS, N_SLOTS, REJECT, documents, flat, make_blocks, make_mixture
from oracles.enumeration import (
    annealed_sizes,
    check_counts,
    count_p_value,
    enumerate_joint,
    enumerate_posterior,
    hyper_grid,
    marginal,
    schedule_law,
)
from oracles.mixtures import end_labels, joined, segments_of
from oracles.reference import (
    EXAMPLES,
    ROW_EXAMPLES,
    integrated_log_marginal,
    log_marginal,
    log_predictive,
)
from skanneal import AnnealedDPMixture, CrossCatPY
from skanneal.families import FAMILIES, Table
from skanneal.moves import FeatureHyperparameters, SplitMerge, churn
from skanneal.schedules import LinearAnneal, SequentialGibbs
from skanneal.states import Mixture

Multinomial = FAMILIES["multinomial"]


PSEUDO_COUNTS = {
    "common": 0.7,
    "tiny": 1e-3,
    "each": [0.2, 1.5, 0.7, 3.0, 0.4, 1.0, 2.2],
}
every_prior = pytest.mark.parametrize("prior", PSEUDO_COUNTS)


def filled(prior="common", *, n_rows=N_ROWS, n_slots=N_SLOTS, seed=1, **options):
    """(rows, hyper, block, labels): rows in random slots, some of them empty."""
    rng = np.random.default_rng(seed)
    rows, hyper = documents(rng, n_rows, **options), {"pseudo_counts": PSEUDO_COUNTS[prior]}
    _, (block,) = make_blocks([("multinomial", rows, hyper)], n_slots)
    labels = rng.integers(n_slots, size=n_rows)
    labels[labels == 3] = 4
    block.build(np.arange(n_rows), labels, n_slots)
    return rows, hyper, block, labels


def in_slot(rows, labels, k):
    return [rows[i] for i in np.flatnonzero(labels == k)]


def reference_scores(row, rows, labels, hyper, n_slots=N_SLOTS):
    return [
        log_predictive("multinomial", row, in_slot(rows, labels, k), hyper) for k in range(n_slots)
    ]


# ------------------------------------------------------------------ the oracle
def test_the_oracle():
    """Chain rule in every order, sum over all rows of a total, integral over the probabilities."""
    rows, hyper = ROW_EXAMPLES["multinomial"]
    expected = log_marginal("multinomial", rows[:4], hyper)
    for order in permutations(rows[:4]):
        parts = [log_predictive("multinomial", order[i], order[:i], hyper) for i in range(4)]
        assert sum(parts) == pytest.approx(expected, abs=1e-12)
    for n in (0, 1, 4):
        shown = integrated_log_marginal("multinomial", rows[:n], hyper)
        assert shown == pytest.approx(log_marginal("multinomial", rows[:n], hyper), abs=1e-6)
        support = [x for x in product(range(5), repeat=3) if sum(x) == 4]
        law = [math.exp(log_predictive("multinomial", x, rows[:n], hyper)) for x in support]
        assert math.fsum(law) == pytest.approx(1.0, abs=1e-12)


# ------------------------------------------------------------------ the table
def test_a_table_gives_its_counts_back():
    rng = np.random.default_rng(0)
    rows = np.array(documents(rng, 50, 9))
    rows[7] = 0  # a missing row
    numbers = rng.normal(size=50).astype(np.float32)
    types = ["none", "f4", "entries"] + ["none"] * 7
    table = Table(types, [0] * 10)
    cells = [None, numbers, csr_array(rows)] + [None] * 7
    for start in range(0, 50, 20):
        table.append([c if c is None else c[start : start + 20] for c in cells])
    again = pickle.loads(pickle.dumps(table))
    for shown in (table, again, table.take(np.arange(50))):
        np.testing.assert_array_equal(shown.column(2).toarray(), rows)
        np.testing.assert_array_equal(shown.column(1), numbers)
        assert shown.column(0) is None
        np.testing.assert_array_equal(shown.totals(), rows.sum(axis=1))
        for j in (0, 2, 9):
            np.testing.assert_array_equal(shown.missing(j), np.arange(50) == 7)
        assert shown.has_missing(2) and not shown.has_missing(1)
    np.testing.assert_array_equal(table.take([3, 3, 1]).column(2).toarray(), rows[[3, 3, 1]])
    assert table.nbytes >= 8 * np.count_nonzero(rows) + 50 * (4 + 32)
    again.append([c if c is None else c[:5] for c in cells])  # after a pickle, too
    np.testing.assert_array_equal(again.column(2).toarray(), np.r_[rows, rows[:5]])


# ------------------------------------------------------------------ scores and marginals
@every_prior
def test_row_scores_are_the_log_predictives(prior):
    rows, hyper, block, labels = filled(prior)
    for i in range(0, N_ROWS, 7):
        expected = reference_scores(rows[i], rows, labels, hyper)
        np.testing.assert_allclose(block.row_scores(i)[:N_SLOTS], expected, rtol=3e-6, atol=1e-5)


@every_prior
def test_score_without_the_row(prior):
    rows, hyper, block, labels = filled(prior)
    for i in range(0, N_ROWS, 5):
        others = [rows[j] for j in np.flatnonzero(labels == labels[i]) if j != i]
        expected = log_predictive("multinomial", rows[i], others, hyper)
        shown = block.row_score_without(i, labels[i])
        assert shown == pytest.approx(expected, rel=3e-6, abs=1e-5)


@every_prior
def test_log_marginals(prior):
    rows, hyper, block, labels = filled(prior)
    expected = [
        log_marginal("multinomial", in_slot(rows, labels, k), hyper) for k in range(N_SLOTS)
    ]
    for shown in (block.log_marginals(), block.log_marginals(0)):
        np.testing.assert_allclose(shown[:N_SLOTS], expected, rtol=1e-10, atol=1e-10)
        assert not shown[N_SLOTS:].any()


@every_prior
def test_score_rows_of_queries(prior):
    rows, hyper, block, labels = filled(prior)
    rng = np.random.default_rng(2)
    fresh = np.array(documents(rng, 9, mean=40.0))
    fresh[4] = 0  # missing
    queries = block.table.empty_like()
    queries.append([csr_array(fresh)] + [None] * 6)
    out = np.full((6, N_SLOTS), 0.5)
    block.score_rows(queries, out, 2, 8)
    for i in range(2, 8):
        expected = reference_scores(fresh[i].tolist(), rows, labels, hyper)
        np.testing.assert_allclose(out[i - 2] - 0.5, expected, rtol=1e-10, atol=1e-10)
    assert np.all(out[2] == 0.5)
    alone = np.zeros((1, N_SLOTS))
    block.score_rows(queries, alone, 3, 4)
    np.testing.assert_array_equal(alone[0], out[1] - 0.5)


def test_columns_that_fit_never_saw():
    rows = [(2, 0, 1, 0), (1, 0, 3, 0)]
    hyper = {"pseudo_counts": 0.3}
    _, (block,) = make_blocks([("multinomial", rows, hyper)])
    block.build(np.arange(2), np.zeros(2, int), 1)
    queries = block.table.empty_like()
    queries.append([csr_array(np.array([[0, 5, 0, 2]]))] + [None] * 3)
    out = np.zeros((1, 2))
    block.score_rows(queries, out)
    expected = [log_predictive("multinomial", (0, 5, 0, 2), r, hyper) for r in (rows, [])]
    np.testing.assert_allclose(out[0], expected, rtol=1e-12)


@pytest.mark.parametrize("largest", [30, 300, 10_000, 200_000, 10**6])
@pytest.mark.parametrize("prior", [1e-3, 0.5, 50.0])
def test_large_counts(largest, prior):
    rng = np.random.default_rng(largest)
    counts = np.rint(np.exp(rng.uniform(0, math.log(largest), (12, 5)))).astype(int)
    counts *= rng.random(counts.shape) < 0.7
    counts[:, 0] += 1
    _, (block,) = make_blocks([("multinomial", counts, {"pseudo_counts": prior})])
    labels = np.arange(12) % 3
    block.build(np.arange(12), labels, 3)
    for i in range(12):
        x = counts[i]
        expected, exact = [], np.zeros((1, 4))
        for k in range(4):
            v = prior + counts[labels == k].sum(axis=0)
            expected.append(
                gammaln(x.sum() + 1)
                - gammaln(x + 1).sum()
                + (gammaln(v + x) - gammaln(v)).sum()
                - gammaln((v + x).sum())
                + gammaln(v.sum())
            )
        block.score_rows(block.table, exact, i, i + 1)
        np.testing.assert_allclose(exact[0], expected, rtol=1e-9, atol=1e-6)
        # float32 scores: what a coefficient cancels does not round
        np.testing.assert_allclose(
            block.row_scores(i)[:4], exact[0], rtol=1e-6, atol=1e-5 + 3e-8 * x.sum()
        )


def test_many_columns_and_many_tiles():
    rng = np.random.default_rng(3)
    n_columns, n_slots = 3000, 150
    counts = rng.poisson(0.05, (400, n_columns))
    counts[:, 0] += 1
    _, (block,) = make_blocks([("multinomial", counts, {"pseudo_counts": 0.05})], n_slots)
    labels = rng.integers(n_slots, size=400)
    block.build(np.arange(400), labels, n_slots)
    exact = np.zeros((400, n_slots))
    block.score_rows(block.table, exact)
    shown = all_scores(block)[:, :n_slots]
    np.testing.assert_allclose(shown, exact, rtol=1e-6, atol=3e-4)
    block.validate()


@every_prior
def test_chain_rule_in_any_order(prior):
    rows, hyper, block, _ = filled(prior, n_rows=25)
    expected = log_marginal("multinomial", rows, hyper)
    for seed in range(3):
        empty = block.spare(1)
        total = exact = 0.0
        for i in np.random.default_rng(seed).permutation(25):
            total += float(empty.row_scores(i)[0])
            out = np.zeros((1, 1))
            empty.score_rows(block.table, out, i, i + 1)
            exact += out[0, 0]
            empty.insert_row(i, 0)
        assert total == pytest.approx(expected, abs=2e-4)
        assert exact == pytest.approx(expected, abs=1e-9)
        assert empty.log_marginals()[0] == pytest.approx(expected, abs=1e-9)


# ------------------------------------------------------------------ operations on slots
@every_prior
def test_add_then_remove_is_the_identity(prior):
    _, _, block, _ = filled(prior)
    before, arrays = all_scores(block), block.to_arrays()
    rng = np.random.default_rng(6)
    moves = [(int(rng.integers(N_ROWS)), int(rng.integers(N_SLOTS))) for _ in range(40)]
    for row, k in moves:
        block.insert_row(row, k)
    for row, k in reversed(moves):
        block.remove_row(row, k)
    for name, value in block.to_arrays().items():
        np.testing.assert_allclose(value, arrays[name], rtol=1e-11, atol=1e-12)
    assert all_scores(block).tobytes() == before.tobytes()
    block.validate()


@every_prior
def test_an_emptied_slot_is_as_new(prior):
    _, _, block, labels = filled(prior)
    for row in np.flatnonzero(labels == 5):
        block.remove_row(row, 5)
    assert all_scores(block)[:, 5].tobytes() == all_scores(block.spare(N_SLOTS))[:, 5].tobytes()
    assert block.log_marginals()[5] == 0.0
    arrays = block.to_arrays()
    for name in ("count", "total", "size", "log_coefficients"):
        assert not arrays[name][..., 5].any()


@every_prior
def test_merge_copy_clear_spare_build(prior):
    _, _, block, labels = filled(prior)
    merged = block.spare(N_SLOTS)
    assert not merged.sizes().any()
    for k in range(N_SLOTS):
        merged.copy_slot(block, k, k)
    assert_same_arrays(merged.to_arrays(), block.to_arrays())
    assert all_scores(merged).tobytes() == all_scores(block).tobytes()
    for i, k in ((4, 7), (3, 8), (9, 7)):  # both used, into an empty slot, of an empty slot
        merged.merge_slots(i, k)
    to = np.arange(N_SLOTS)
    to[7], to[8] = 4, 3
    rebuilt = block.spare(N_SLOTS)
    rebuilt.build(np.arange(N_ROWS), to[labels], N_SLOTS)
    assert all_scores(merged).tobytes() == all_scores(rebuilt).tobytes()
    np.testing.assert_allclose(merged.log_marginals(), rebuilt.log_marginals(), rtol=1e-12)
    merged.copy_slot(merged, 4, 3)  # within the block
    assert merged.log_marginals()[3] == merged.log_marginals()[4] != 0.0
    merged.build(np.arange(0), np.arange(0), N_SLOTS)
    assert all_scores(merged).tobytes() == all_scores(block.spare(N_SLOTS)).tobytes()
    one_by_one = block.spare(N_SLOTS)
    for row, k in enumerate(labels):
        one_by_one.insert_row(row, k)
    assert_same_arrays(one_by_one.to_arrays(), block.to_arrays())
    block.build(np.arange(40, 50), np.full(10, 45), 50)  # more slots than before
    assert block.sizes().sum() == block.sizes()[45] == 10
    block.validate()


@every_prior
def test_extend_equals_inserts(prior):
    _, _, block, labels = filled(prior)
    one_by_one = block.spare(N_SLOTS)
    one_by_one.build(np.arange(N_ROWS), labels, N_SLOTS)
    block.extend_row(11, 1)
    for k in np.flatnonzero(one_by_one.sizes()[:16]):
        one_by_one.insert_row(11, k)
    assert_same_arrays(one_by_one.to_arrays(), block.to_arrays())
    assert all_scores(one_by_one).tobytes() == all_scores(block).tobytes()


@every_prior
def test_arrays_bit_for_bit(prior):
    _, _, block, _ = filled(prior)
    for row in range(30):
        block.insert_row(row, row % N_SLOTS)
    arrays = pickle.loads(pickle.dumps(block.to_arrays()))
    again = Multinomial.from_arrays(arrays, block.table)
    assert_same_arrays(again.to_arrays(), block.to_arrays())
    assert all_scores(again).tobytes() == all_scores(block).tobytes()
    assert again.log_marginals().tobytes() == block.log_marginals().tobytes()
    short = Multinomial.from_arrays(block.to_arrays(N_SLOTS), block.table.empty_like())
    out, other = np.zeros((5, N_SLOTS)), np.zeros((5, N_SLOTS))
    short.score_rows(block.table, out, 0, 5)
    block.score_rows(block.table, other, 0, 5)
    np.testing.assert_array_equal(out, other)


@every_prior
def test_validate_sees_a_stale_cache(prior):
    _, _, block, _ = filled(prior)
    block.validate()
    block.set_hyper(0, 0, block.get_hyper(0)[0] * 1.7 + 0.3)  # without refresh_all
    with pytest.raises(AssertionError, match="stale"):
        block.validate()


def test_validate_sees_another_row_taken_out():
    _, _, block, _ = filled()
    block.insert_row(0, 3)
    block.remove_row(1, 3)
    with pytest.raises(AssertionError, match="negative|total"):
        block.validate()


def test_appended_rows_keep_the_earlier_ones():
    """The store of entries moves as it grows; rows in it do not change."""
    rng = np.random.default_rng(30)
    rows, hyper, block, labels = filled()
    scores = all_scores(block)
    for _ in range(5):
        block.table.append([csr_array(np.array(documents(rng, 40)))] + [None] * 6)
    assert all_scores(block)[:N_ROWS].tobytes() == scores.tobytes()
    for row in range(N_ROWS):
        block.remove_row(row, labels[row])
    assert not block.sizes().any()
    block.validate()


# ------------------------------------------------------------------ hyperparameters
def test_grid_scores_of_a_common_pseudo_count():
    rng = np.random.default_rng(4)
    counts = rng.poisson(rng.choice([0.3, 5.0, 900.0], 12), (40, 12))  # beyond the table of rises
    counts[:, 0] += 1
    _, (block,) = make_blocks([("multinomial", counts, {"pseudo_counts": 0.7})])
    labels = rng.integers(4, size=40)
    block.build(np.arange(40), labels, 4)
    grid = np.array([1e-3, 0.7, 2.5, 70.0])
    expected = []
    for a in grid:
        n = np.array([counts[labels == k].sum(axis=0) for k in range(4)])
        scores = gammaln(12 * a) - gammaln(12 * a + n.sum(axis=1))
        expected.append(scores.sum() + (gammaln(a + n) - gammaln(a)).sum())
    shown = block.grid_scores(0, 0, grid)
    np.testing.assert_allclose(shown - shown[0], np.array(expected) - expected[0], atol=1e-8)
    np.testing.assert_array_equal(block.get_hyper(0), [0.7])


def test_grid_scores_of_one_column():
    rows, hyper, block, labels = filled("each")
    for h in (0, 4):
        grid = np.array([0.3, flat(hyper)[h], 2.5, 7.0])
        expected = []
        for a in grid:
            changed = flat(hyper)
            changed[h] = a
            changed = {"pseudo_counts": changed}
            in_slots = [in_slot(rows, labels, k) for k in range(N_SLOTS)]
            expected.append(sum(log_marginal("multinomial", x, changed) for x in in_slots))
        shown = block.grid_scores(0, h, grid)
        np.testing.assert_allclose(shown - shown[0], np.array(expected) - expected[0], rtol=1e-9)


@every_prior
def test_set_hyper_and_refresh(prior):
    rows, hyper, block, labels = filled(prior)
    vector = flat(hyper) * 1.3 + 0.1
    other = block.spare(N_SLOTS)
    for h, value in enumerate(vector):
        block.set_hyper(0, h, value)
    block.refresh_all()
    other.follow(block)
    changed = {"pseudo_counts": vector if len(vector) > 1 else vector[0]}
    for i in (0, 11):
        expected = reference_scores(rows[i], rows, labels, changed)
        np.testing.assert_allclose(block.row_scores(i)[:N_SLOTS], expected, rtol=3e-6, atol=1e-5)
        alone = log_predictive("multinomial", rows[i], [], changed)
        np.testing.assert_allclose(other.row_scores(i), alone, rtol=3e-6, atol=1e-5)


def test_grid_is_increasing_and_allowed():
    rows, _, block, _ = filled()
    (grid,) = Multinomial.grids(block.table, np.arange(7))
    assert np.all(np.diff(grid) > 0)
    assert Multinomial.check_hyper(grid, 7) is None
    assert Multinomial.check_hyper(np.array([1e-10]), 7)[0] == "pseudo_counts"


# ------------------------------------------------------------------ cells and draws
@every_prior
def test_score_feature_is_the_cell_given_the_others(prior):
    """Its law over the ways to share what the other cells leave, from whole rows' densities."""
    _, hyper, block, labels = filled(prior)
    rows = [(2, 0, 1, 0, 0, 3, 0), (0, 0, 0, 0, 0, 5, 0)]
    queries = block.table.empty_like()
    queries.append([csr_array(np.array(rows))] + [None] * 6)
    whole = np.zeros((2, N_SLOTS))
    block.score_rows(queries, whole)
    for f in range(7):
        cells = np.zeros((2, N_SLOTS))
        block.score_feature(f, queries, cells, 0, 2)
        counts = block.to_arrays()["count"]
        for i, row in enumerate(rows):
            # the rest of the row is multinomial, too, over the other columns
            rest = [x for j, x in enumerate(row) if j != f]
            for k in range(N_SLOTS):
                v = np.delete(np.broadcast_to(flat(hyper), 7) + counts[:, k], f).tolist()
                other = log_predictive("multinomial", rest, [], {"pseudo_counts": v})
                assert whole[i, k] - cells[i, k] == pytest.approx(other, abs=1e-8)


@pytest.mark.parametrize("prior", ["common", "tiny"])
@pytest.mark.parametrize("k", [0, 3])  # 3 is empty
@pytest.mark.parametrize("total", [2, 3])  # fewer units than columns: from an urn
def test_draws_follow_the_predictive(prior, k, total):
    rng = np.random.default_rng(5)
    rows = [tuple(rng.multinomial(total, [0.5, 0.3, 0.2]).tolist()) for _ in range(20)]
    hyper = {"pseudo_counts": PSEUDO_COUNTS[prior]}
    _, (block,) = make_blocks([("multinomial", rows, hyper)])
    labels = np.arange(20) % 3
    block.build(np.arange(20), labels, 4)
    draws = block.sample_rows(np.full(20_000, k), np.random.PCG64(6))
    assert draws.shape == (20_000, 3) and draws.dtype == np.float64
    counts = Counter(tuple(row) for row in draws.astype(int).tolist())
    support = [x for x in product(range(4), repeat=3) if sum(x) == total]

    def law(members):
        return {x: math.exp(log_predictive("multinomial", x, members, hyper)) for x in support}

    check_counts(counts, law(in_slot(rows, labels, k)))
    assert count_p_value(counts, law([*in_slot(rows, labels, k), (0, 0, total)])) < REJECT


def test_draws_take_the_rows_totals():
    rows = [(1, 0)] * 30 + [(3, 2)] * 10
    _, (block,) = make_blocks([("multinomial", rows, {"pseudo_counts": 1.0})])
    again = Multinomial.from_arrays(block.to_arrays(1), block.table.empty_like())
    totals = again.sample_rows(np.zeros(8000, int), np.random.PCG64(7)).sum(axis=1)
    check_counts(Counter(totals.astype(int).tolist()), {1: 0.75, 5: 0.25})


# ------------------------------------------------------------------ moves
N = 5
VALUES, HYPER = ROW_EXAMPLES["multinomial"]
COLUMNS = {
    "alone": [("multinomial", VALUES[:N], HYPER)],
    "common": [("multinomial", VALUES[:N], {"pseudo_counts": 0.4})],
    "mixed": [
        ("multinomial", VALUES[:N], HYPER),
        ("normal", [None, *EXAMPLES["normal"][0][1:N]], EXAMPLES["normal"][1]),
        ("categorical", [*EXAMPLES["categorical"][0][: N - 1], None], EXAMPLES["categorical"][1]),
    ],
}
every_data = pytest.mark.parametrize("data", COLUMNS)
both_priors = pytest.mark.parametrize("discount", [0.0, 0.3], ids=["DP", "PY"])


@every_data
@both_priors
@pytest.mark.parametrize("split_merge", [False, True])
@pytest.mark.few(5)
def test_posterior(data, discount, split_merge):
    mixture, bit_generator = make_mixture(COLUMNS[data], 1.0, discount, seed=1)
    schedule = LinearAnneal(n_sweeps=30, final_sweeps=10)
    moves = [SplitMerge(n_proposals=2)] if split_merge else []
    segments = segments_of(schedule, N) if split_merge else joined(schedule.path(N))
    counts = end_labels(mixture, bit_generator, segments, 200 if split_merge else 2000, moves)
    mixture.validate()
    check_counts(counts, enumerate_posterior(COLUMNS[data], 1.0, discount))
    if not split_merge:
        wrong = enumerate_posterior(COLUMNS[data], 1.0, 0.0 if discount else 0.4)
        assert count_p_value(counts, wrong) < REJECT


def test_split_merge_mixes_with_gibbs():
    """From one cluster, proposals by the hundred; a control without the likelihood fails."""
    mixture, bit_generator = make_mixture(COLUMNS["alone"], 1.0, 0.3, seed=2)
    schedule = LinearAnneal(n_sweeps=3, final_sweeps=1)
    segments = segments_of(schedule, N)
    counts = end_labels(mixture, bit_generator, segments, 1000, [SplitMerge(n_proposals=10)])
    check_counts(counts, enumerate_posterior(COLUMNS["alone"], 1.0, 0.3))
    silent = enumerate_posterior(COLUMNS["alone"], 1.0, 0.3, beta=0.0)
    assert count_p_value(counts, silent) < REJECT


@pytest.mark.parametrize("selection", ["random", "window"])
def test_law_of_the_annealed_path(selection):
    mixture, bit_generator = make_mixture(COLUMNS["mixed"], 1.0, 0.3, 5, selection)
    path = LinearAnneal(n_sweeps=2, final_sweeps=0).path(N)
    counts = end_labels(mixture, bit_generator, joined(path), 6000)
    law = schedule_law(COLUMNS["mixed"], annealed_sizes(N, 1), selection, 1.0, 0.3)
    check_counts(counts, law)
    other = schedule_law(COLUMNS["mixed"], annealed_sizes(N, 1), selection, 1.0, 0.0)
    assert count_p_value(counts, other) < REJECT


def test_hyperparameter_from_its_exact_conditional():
    """Partition and pseudo-count together, by enumeration over the grid."""
    grid = np.array([0.1, 0.5, 3.0])
    columns = [("multinomial", VALUES[:N], hyper_grid(pseudo_counts=grid.tolist()))]
    joint = enumerate_joint(columns, 1.0, 0.3)
    start = [("multinomial", VALUES[:N], {"pseudo_counts": 0.5})]
    mixture, bit_generator = make_mixture(start, 1.0, 0.3, seed=8)
    move = FeatureHyperparameters({0: [grid]})
    segments = segments_of(LinearAnneal(n_sweeps=30, final_sweeps=10), N)
    counts = Counter()
    for _ in range(500):
        end_labels(mixture, bit_generator, segments, 1, [move])
        counts[mixture.blocks[0].get_hyper(0)[0]] += 1
    law = {grid[index]: p for (index,), p in marginal(joint, 3).items()}
    check_counts(counts, law)
    assert count_p_value(counts, dict.fromkeys(grid.tolist(), 1 / 3)) < REJECT


# ------------------------------------------------------------------ states
def test_a_mixture_through_arrays():
    rng = np.random.default_rng(9)
    rows = documents(rng, 50)
    columns = [("multinomial", rows, HYPER | {"pseudo_counts": 0.3})]
    columns += [("poisson", rng.poisson(3, 50).tolist(), EXAMPLES["poisson"][1])]
    mixture, bit_generator = make_mixture(columns, 3.0, 0.3, seed=10)
    knots = np.array([[0, 0], [50, 50], [500, 50]])
    churn([mixture], mixture.subsample, bit_generator, knots, 0, 500)
    mixture.validate()
    for numbered in (False, True):
        arrays = mixture.to_arrays(numbered=numbered)
        again = Mixture.from_arrays(arrays, mixture.table, mixture.subsample)
        assert again.log_joint() == pytest.approx(mixture.log_joint(), rel=1e-14)
        assert_same_arrays(again.to_arrays(numbered=numbered), arrays)
        again.validate()
    labels = mixture.get_labels()
    expected = sum(
        log_marginal("multinomial", [rows[i] for i in np.flatnonzero(labels == k)], columns[0][2])
        + log_marginal("poisson", [columns[1][1][i] for i in np.flatnonzero(labels == k)],
                       columns[1][2])
        for k in np.unique(labels)
    )  # fmt: skip
    assert mixture.log_likelihood() == pytest.approx(expected, rel=1e-11)


# ------------------------------------------------------------------ the estimator
def corpus(n_rows=60, seed=0):
    """Documents of three topics: (counts, topics)."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(12, 0.3), size=3)
    topics = rng.integers(3, size=n_rows)
    return np.array([rng.multinomial(rng.integers(8, 40), p[k]) for k in topics]), topics


def fitted(X, families="multinomial", **options):
    options = {**CHEAP, "n_chains": 2, "random_state": 3} | options
    return AnnealedDPMixture(families=families, **options).fit(X)


CONTAINERS = {
    "csr array": csr_array,
    "csr matrix": scipy.sparse.csr_matrix,
    "csc": scipy.sparse.csc_array,
    "coo": scipy.sparse.coo_array,
    "floats": lambda X: csr_array(X.astype(float)),
    "bytes": lambda X: csr_array(X.astype(np.uint8)),
    "list": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=[f"word {j}" for j in range(X.shape[1])]),
    "polars": lambda X: pl.DataFrame(X, schema=[f"word {j}" for j in range(X.shape[1])]),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.few(4)
def test_every_container_gives_the_same_bits(container):
    X, topics = corpus()
    dense, model = fitted(X), fitted(CONTAINERS[container](X))
    assert adjusted_rand_score(topics, model.labels_) > 0.9
    np.testing.assert_array_equal(model.labels_, dense.labels_)
    Y = CONTAINERS[container](X[:20])
    for ask in ("predict", "predict_proba", "score_samples", "new_cluster_proba", "surprisal"):
        np.testing.assert_array_equal(getattr(model, ask)(Y), getattr(dense, ask)(X[:20]))
    assert model.families_["multinomial"].tolist() == list(range(12))
    rows = model.sample(5)
    assert np.shape(rows) == (5, 12)
    assert type(rows) is (np.ndarray if scipy.sparse.issparse(Y) else type(Y))
    np.testing.assert_array_equal(np.asarray(rows, dtype=int), dense.sample(5))
    filled = model.impute(Y)
    assert type(filled) is type(Y)
    shown = filled.toarray() if scipy.sparse.issparse(Y) else np.asarray(filled)
    np.testing.assert_array_equal(shown, X[:20])


def test_sparse_queries_of_a_dense_fit_and_the_reverse():
    X, _ = corpus()
    np.testing.assert_array_equal(fitted(X).predict(csr_array(X)), fitted(csr_array(X)).predict(X))


@pytest.mark.parametrize("width", range(6))
def test_rows_with_counts_begin_at_multiples_of_eight_bytes(width):
    """Where the entries of a row begin is a number of eight bytes, which processors read as one."""
    types = ["f4"] + ["u1"] * width + ["entries", "none"]
    table = Table(types, [0] + [2] * width + [0, 0])
    levels = [np.zeros(3, np.uint8)] * width
    counts = csr_array(np.array([[0, 0], [1, 2], [0, 0]]))
    table.append([np.array([np.nan, 1.0, np.nan], np.float32), *levels, counts, None])
    assert table.row_bytes % 8 == 0 and table.positions[types.index("entries")] % 8 == 0
    for weighted in (False, True):
        filled = table.with_fills([0], weighted)
        places, cells, weights, _ = table.shared["fills", 3, weighted, 0]
        starts = cells if not weighted else weights - table.row_bytes // 4
        assert len(starts) > 1 and not (np.diff(starts) % 2).any()
        assert filled.row_bytes == table.row_bytes and len(filled.fills()) == 2 + 3 * weighted


def test_duplicates_zeros_and_order_of_entries():
    """Duplicate entries are summed, explicit zeros dropped, the caller's matrix is left alone."""
    X, _ = corpus()
    messy = [[], [], [0]]
    for row in X:
        places = [j for j in np.flatnonzero(row)[::-1] for _ in range(2)] + [0]
        messy[0] += [1 if i % 2 else row[j] - 1 for i, j in enumerate(places[:-1])] + [0]
        messy[1] += places
        messy[2].append(len(messy[1]))
    messy = scipy.sparse.csr_matrix(tuple(map(np.array, messy)), shape=X.shape)
    before = messy.copy()
    np.testing.assert_array_equal(fitted(messy).labels_, fitted(X).labels_)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(messy, part), getattr(before, part))


@pytest.mark.parametrize("dtype", [bool, np.uint8, float])
def test_duplicates_of_narrow_types(dtype):
    """300 times the same entry: more than a byte, or a truth value, holds."""
    X, _ = corpus()
    X[5] = 0
    X[5, 2] = 300
    rows, columns = np.nonzero(X)
    repeats = X[rows, columns]
    at = np.repeat(rows, repeats), np.repeat(columns, repeats)
    coo = scipy.sparse.coo_matrix((np.ones(len(at[0]), dtype), at), X.shape)
    np.testing.assert_array_equal(fitted(coo).labels_, fitted(X).labels_)


def test_densities_sum_to_one():
    """Over all rows of a total, averaged over chains, with the new cluster's term."""
    X, _ = corpus()
    model = fitted(X[:, :4] + np.array([1, 0, 0, 0]), n_draws=2)
    rows = np.array([x for x in product(range(7), repeat=4) if sum(x) == 6])
    assert np.exp(model.score_samples(rows)).sum() == pytest.approx(1.0, abs=1e-9)
    assert np.exp(model.score_samples(csr_array(rows))).sum() == pytest.approx(1.0, abs=1e-9)


def test_surprisal_is_of_a_cell_given_the_total_and_the_others():
    """With two columns the other tells all: what is left is the row's own density."""
    X, _ = corpus()
    X = X[:, :2] + 1
    model = fitted(X, hyperparameters={"multinomial": 0.5}, n_chains=1)
    surprisal = model.surprisal(X)
    assert surprisal.shape == X.shape
    np.testing.assert_allclose(surprisal[:, 0], -model.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(surprisal[:, 0], surprisal[:, 1], rtol=1e-9)


def test_beside_other_columns():
    X, topics = corpus(90)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=[f"w{j}" for j in range(12)])
    frame.insert(4, "length", np.where(rng.random(90) < 0.2, np.nan, rng.normal(topics * 5)))
    frame["colour"] = np.array(["red", "green", "blue"])[topics]
    words = [f"w{j}" for j in range(12)]
    model = fitted(frame, {"multinomial": words})
    assert {name: list(at) for name, at in model.families_.items()} == {
        "normal": [4],
        "categorical": [13],
        "multinomial": [0, 1, 2, 3, *range(5, 13)],
    }
    assert adjusted_rand_score(topics, model.labels_) > 0.9
    assert not model.impute(frame).isna().any(axis=None)
    rows = model.sample(50)
    assert rows.columns.tolist() == frame.columns.tolist()
    assert rows["w3"].dtype == frame["w3"].dtype
    assert set(rows[words].sum(axis=1)) <= set(frame[words].sum(axis=1))
    # the words alone, given the others, and the others given the words
    whole = model.score_samples(frame)
    for given in (words, ["length", "colour"]):
        assert np.all(np.isfinite(model.score_samples(frame, given=given)))
        assert np.any(model.score_samples(frame, given=given) != whole)
    with pytest.raises(ValueError, match="given has some columns of the family 'multinomial'"):
        model.score_samples(frame, given=words[:3])
    given = dict(zip(words, X[0].tolist()))
    rows = model.sample(4, given=given)
    np.testing.assert_array_equal(rows[words], [X[0].tolist()] * 4)
    with pytest.raises(ValueError, match="column 'w1' must hold non-negative integers"):
        model.sample(given=given | {"w1": 0.5})
    with pytest.raises(ValueError, match="given has some columns of the family 'multinomial'"):
        model.sample(given={"w1": 2})
    assert model.surprisal(frame).shape == (90, 14)


def test_fixed_pseudo_counts():
    X, _ = corpus()
    each = np.linspace(0.2, 2.0, 12)
    for values, shown in ((0.3, 0.3), (each, each), ({"pseudo_counts": 2}, 2.0)):
        model = fitted(X, hyperparameters={"multinomial": values})
        kept = model.draws_[0][0].hyperparameters["multinomial"]["pseudo_counts"]
        np.testing.assert_array_equal(kept, shown)
        assert model.hyperparameter_grids_["multinomial"] == {}
    inferred = fitted(X)
    kept = inferred.draws_[0][0].hyperparameters["multinomial"]["pseudo_counts"]
    assert kept in inferred.hyperparameter_grids_["multinomial"]["pseudo_counts"]
    for values, match in (
        (-1.0, "must be positive"),
        (1e-12, "must be between 1e-09 and 1e.09"),
        ([1.0, 2.0], "one per column of the family .12."),
        ("many", "must be numbers"),
    ):
        with pytest.raises(ValueError, match=rf"hyperparameters.*pseudo_counts.*{match}"):
            fitted(X, hyperparameters={"multinomial": values})


def changed(X, i, j, value):
    X = X.astype(float)
    X[i, j] = value
    return X


EMPTY = "Row 3 of X has no counts.*drop"
BAD = {
    "negative": (lambda X: changed(X, 2, 5, -1), "column 5 must hold non-negative integers.*-1"),
    "fraction": (lambda X: changed(X, 2, 5, 0.5), "column 5 must hold non-negative integers.*0.5"),
    "nan": (lambda X: changed(X, 2, 5, np.nan), "column 5 has a missing cell.*fill it"),
    "infinite": (lambda X: changed(X, 2, 5, np.inf), "infinity.*column 5"),
    "too large": (lambda X: changed(X, 2, 5, 2.0**31), "column 5 must hold .* below 2..31"),
    "empty": (lambda X: np.where(np.arange(len(X))[:, None] == 3, 0, X), EMPTY),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("container", [np.array, csr_array, scipy.sparse.csc_matrix])
@pytest.mark.few(8)
def test_bad_counts(bad, container):
    make, match = BAD[bad]
    X, _ = corpus()
    with pytest.raises(ValueError, match=match):
        fitted(container(make(X)))
    model = fitted(container(X))
    with pytest.raises(ValueError, match=match):
        model.predict(container(make(X)))


def test_other_bad_input():
    X, _ = corpus()
    frame = pd.DataFrame(X.astype(object), columns=[f"w{j}" for j in range(12)])
    frame.loc[3, "w2"] = "many"
    with pytest.raises(ValueError, match="column 'w2' holds 'many'.*needs numbers"):
        fitted(frame)
    with pytest.raises(TypeError, match="Sparse input .*'multinomial'"):
        AnnealedDPMixture().fit(csr_array(X))
    with pytest.raises(TypeError, match="Sparse input .*'multinomial'"):
        fitted(csr_array(X), {"multinomial": [0, 1], "poisson": range(2, 12)})
    with pytest.raises(TypeError, match="Sparse input .*'multinomial'"):
        fitted(X, "poisson").predict(csr_array(X))
    with pytest.raises(ValueError, match="features"):
        fitted(csr_array(X)).predict(csr_array(X[:, :5]))
    with pytest.raises(ValueError, match="'multinomial' describes whole rows.*AnnealedDPMixture"):
        CrossCatPY(families="multinomial").fit(X)
    with pytest.raises(ValueError, match="[Cc]omplex"):
        fitted(csr_array(X * 1j))
    with pytest.raises(ValueError, match="0 sample"):
        fitted(csr_array((0, 3)))


def test_tags():
    assert not AnnealedDPMixture().__sklearn_tags__().input_tags.sparse
    assert AnnealedDPMixture(families="multinomial").__sklearn_tags__().input_tags.sparse


@pytest.mark.slow
def test_same_bits_for_any_number_of_jobs_and_backend():
    X = csr_array(corpus()[0])
    alone = fitted(X)
    with parallel_config(backend="loky"):
        processes = fitted(X, n_jobs=2)
    for other in (fitted(X, n_jobs=2), processes):
        np.testing.assert_array_equal(other.labels_, alone.labels_)
        np.testing.assert_array_equal(other.trace_["log_joint"], alone.trace_["log_joint"])


def test_cross_validation_and_a_pickle():
    X = csr_array(corpus()[0])
    model = AnnealedDPMixture(families="multinomial", n_chains=1, random_state=0, **CHEAP)
    scores = cross_val_score(model, X, cv=3)
    assert np.all(np.isfinite(scores))
    model.fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    more = model.set_params(warm_start=True).fit(X)
    assert more.n_sweeps_ > again.n_sweeps_
    with pytest.raises(ValueError, match="same rows"):
        more.fit(2 * X)


def test_stratified_selection():
    X, topics = corpus()
    schedule = LinearAnneal(n_sweeps=8, selection="stratified")
    model = fitted(csr_array(X), schedule=schedule)
    assert adjusted_rand_score(topics, model.labels_) > 0.9


@pytest.mark.slow
def test_many_columns_take_no_memory_per_cell():
    """20,000 columns: an array of rows and columns would be 640 MB."""
    rng = np.random.default_rng(5)
    n_rows, n_columns, n_entries = 4000, 20_000, 20
    indices = rng.integers(n_columns, size=n_rows * n_entries)
    indptr = np.arange(0, n_rows * n_entries + 1, n_entries)
    X = csr_array((np.ones(len(indices), np.int64), indices, indptr), (n_rows, n_columns))
    tracemalloc.start()
    schedule = SequentialGibbs(n_sweeps=1)
    model = fitted(X, n_chains=1, schedule=schedule, hyperparameters={"multinomial": 50.0})
    model.predict(X)
    model.score_samples(X)
    model.impute(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6


def test_projections():
    """Of the square roots of the counts' shares, on a direction that is normal in every column."""
    counts = np.array([[4, 0, 0, 5], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 2, 0]])
    table = Table(["entries", "none", "none", "none"], [0] * 4)
    table.append([csr_array(np.r_[counts, 3 * np.eye(4, dtype=int)]), None, None, None])
    order = np.array([3, 0, 1, 2, 4, 5, 6, 7])
    found = table.project(order, np.arange(4), np.random.PCG64(5))
    direction = found[4:]
    shares = counts / np.maximum(1, counts.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found[:4], (np.sqrt(shares) @ direction)[order[:4]], rtol=1e-12)
    assert len(set(np.abs(direction))) == 4
