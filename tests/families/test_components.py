"""Every family's block against the formulas of reference.py, and its statistics after many moves.

Random tests: fixed seeds, one try; a goodness-of-fit test alarms falsely once in 10,000.
"""

import pickle
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from oracles.bits import all_scores, assert_same_arrays
from oracles.enumeration import check_counts, count_p_value
from oracles.mixtures import (
    COLUMN_FAMILIES,
    encode,
    hyper_mapping,
    hyper_vector,
    in_cells,
    make_blocks,
    make_mixture,
    make_table,
    random_column,
    random_columns,
)
from oracles.reference import log_marginal, log_predictive
from skanneal.families import FAMILIES, Table
from skanneal.moves import churn
from skanneal.partition_priors import PitmanYor
from skanneal.states import Mixture, Subsample

every_family = pytest.mark.parametrize("family", COLUMN_FAMILIES)

N_ROWS, N_SLOTS = 90, 20


def filled(family, *, n_rows=N_ROWS, n_slots=N_SLOTS, seed=1, missing=0.25, **options):
    """A block of one dense and one gappy column, rows in random slots (some empty)."""
    rng = np.random.default_rng(seed)
    columns = [random_column(family, n_rows, rng, missing=m, **options) for m in (0.0, missing)]
    table = make_table(columns)
    (block,) = make_blocks(table, columns, n_slots)
    labels = rng.integers(n_slots, size=n_rows)
    labels[labels == 3] = 4  # an empty slot among them
    block.build(np.arange(n_rows), labels, n_slots)
    return columns, block, labels


def values_in(columns, labels, k):
    """For each column the values in slot k."""
    return [[values[i] for i in np.flatnonzero(labels == k)] for _, values, _ in columns]


def reference_scores(columns, labels, row, n_slots, features=None):
    """Log predictive of a row in each slot, in cell units."""
    columns = in_cells(columns)
    features = range(len(columns)) if features is None else features
    return np.array(
        [
            sum(
                log_predictive(columns[f][0], columns[f][1][row], cells[f], columns[f][2])
                for f in features
            )
            for cells in (values_in(columns, labels, k) for k in range(n_slots))
        ]
    )


# ------------------------------------------------------------------ scores and marginals
@every_family
def test_row_scores_are_the_log_predictives(family):
    columns, block, labels = filled(family)
    for row in range(0, N_ROWS, 7):
        expected = reference_scores(columns, labels, row, N_SLOTS)
        np.testing.assert_allclose(block.row_scores(row)[:N_SLOTS], expected, rtol=3e-6, atol=1e-5)


@every_family
def test_log_marginals(family):
    columns, block, labels = filled(family)
    columns = in_cells(columns)
    for f, column in enumerate(block.columns):
        name, values, hyper = columns[column]
        expected = [
            log_marginal(name, values_in(columns, labels, k)[column], hyper) for k in range(N_SLOTS)
        ]
        actual = block.log_marginals(f)
        np.testing.assert_allclose(actual[:N_SLOTS], expected, rtol=1e-10, atol=1e-10)
        assert not actual[N_SLOTS:].any()
    total = block.log_marginals(0) + block.log_marginals(1)
    np.testing.assert_allclose(block.log_marginals(), total, rtol=1e-14, atol=1e-14)


@every_family
def test_score_rows_of_queries_with_any_cell_missing(family):
    columns, block, labels = filled(family)
    queries = block.table.empty_like()
    rng = np.random.default_rng(2)
    fresh = [
        random_column(family, 9, rng, missing=0.4)[1]
        for _ in columns  # gaps in the dense one too
    ]
    queries.append([encode(c, values) for c, values in zip(columns, fresh, strict=True)])
    out = np.full((6, N_SLOTS), 0.5)
    block.score_rows(queries, out, 2, 8)
    columns_q = [(c[0], v, c[2]) for c, v in zip(columns, fresh, strict=True)]
    for row in range(2, 8):
        expected = [
            sum(
                log_predictive(family, q[1][row], cells, q[2])
                for q, cells in zip(columns_q, values_in(columns, labels, k), strict=True)
            )
            for k in range(N_SLOTS)
        ]
        np.testing.assert_allclose(out[row - 2] - 0.5, expected, rtol=1e-9, atol=1e-10)


@every_family
def test_score_rows_agrees_with_row_scores(family):
    _, block, _ = filled(family)
    out = np.zeros((N_ROWS, N_SLOTS))
    block.score_rows(block.table, out)
    shown = all_scores(block)[:, :N_SLOTS]
    shown = shown - shown[:, :1] + out[:, :1]  # row scores are in cell units
    np.testing.assert_allclose(shown, out, rtol=3e-6, atol=2e-5)


def test_number_scores_are_in_the_users_units():
    rng = np.random.default_rng(3)
    offset, scale = 12.5, 0.25
    cells = np.float32(rng.normal(size=12))
    values = (offset + scale * cells.astype(float)).tolist()
    hyper = {"mu0": 0.2, "kappa0": 0.5, "nu0": 3.0, "sigma2_0": 0.7}
    users = {"mu0": offset + scale * 0.2, "kappa0": 0.5, "nu0": 3.0, "sigma2_0": 0.7 * scale**2}
    table = Table(["f4"], [0], [offset], [scale])
    table.append([cells])
    block = FAMILIES["normal"](table, [0], [hyper_vector("normal", hyper)])
    block.build(np.arange(11), np.zeros(11, int), 1)
    expected = log_marginal("normal", values[:11], users)
    assert block.log_marginals()[0] + block.log_jacobian() == pytest.approx(expected, rel=1e-10)
    out = np.zeros((1, 1))
    block.score_rows(table, out, 11, 12)
    expected = log_predictive("normal", values[11], values[:11], users)
    assert out[0, 0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("family", ["categorical", "bernoulli"])
def test_unseen_levels(family):
    columns, block, labels = filled(family)
    n_levels = 2 if family == "bernoulli" else 3
    queries = block.table.empty_like()
    queries.append([np.full(1, n_levels + 1), np.zeros(1)])
    out = np.zeros((1, N_SLOTS))
    block.score_rows(queries, out)
    for k in range(N_SLOTS):
        seen = values_in(columns, labels, k)
        hyper = columns[0][2]
        a = hyper_vector(family, hyper)
        total = len(seen[0]) + a.sum() + a.min()
        expected = np.log(a.min() / total) + log_predictive(family, 0, seen[1], columns[1][2])
        assert out[0, k] == pytest.approx(expected, rel=1e-9)


@every_family
def test_chain_rule_in_any_order(family):
    columns, block, _ = filled(family, n_rows=30)
    rng = np.random.default_rng(4)
    expected, in_units = (
        sum(log_marginal(name, values, hyper) for name, values, hyper in of)
        for of in (in_cells(columns), columns)
    )
    for _ in range(3):
        empty = block.spare(1)
        total = exact = 0.0
        for row in rng.permutation(30):
            total += float(empty.row_scores(row)[0])
            out = np.zeros((1, 1))
            empty.score_rows(block.table, out, row, row + 1)
            exact += out[0, 0]
            empty.insert_row(row, 0)
        assert total == pytest.approx(expected, abs=2e-4)
        assert exact == pytest.approx(in_units, abs=1e-9)
        assert empty.log_marginals()[0] == pytest.approx(expected, abs=1e-9)
        assert empty.log_jacobian() == pytest.approx(in_units - expected, abs=1e-9)


@every_family
def test_all_cells_missing_scores_zero(family):
    rng = np.random.default_rng(5)
    column = random_column(family, 8, rng, missing=2.0)
    table = make_table([column])
    (block,) = make_blocks(table, [column])
    block.build(np.arange(8), np.arange(8) % 3, 3)
    np.testing.assert_allclose(all_scores(block), 0.0, atol=1e-6)
    assert not block.log_marginals().any()
    out = np.zeros((8, 3))
    block.score_rows(table, out)
    np.testing.assert_allclose(out, 0.0, atol=1e-12)


# ------------------------------------------------------------------ operations on slots
@every_family
def test_add_then_remove_is_the_identity(family):
    _, block, labels = filled(family)
    before, arrays = all_scores(block), block.to_arrays()
    rng = np.random.default_rng(6)
    moves = [(int(rng.integers(N_ROWS)), int(rng.integers(N_SLOTS))) for _ in range(40)]
    for row, k in moves:
        block.insert_row(row, k)
    for row, k in reversed(moves):
        block.remove_row(row, k)
    after = block.to_arrays()
    for name, value in arrays.items():
        if value.dtype.kind == "f":
            np.testing.assert_allclose(after[name], value, rtol=1e-11, atol=1e-12)
        else:
            np.testing.assert_array_equal(after[name], value)
    np.testing.assert_allclose(all_scores(block), before, rtol=1e-6, atol=2e-6)


@every_family
def test_an_emptied_slot_is_as_new(family):
    _, block, labels = filled(family)
    new = block.spare(N_SLOTS)
    for row in np.random.default_rng(7).permutation(np.flatnonzero(labels == 5)):
        block.remove_row(row, 5)
    assert all_scores(block)[:, 5].tobytes() == all_scores(new)[:, 5].tobytes()
    assert block.log_marginals()[5] == 0.0
    for name, value in block.to_arrays().items():
        if value.ndim == 2:
            assert not value[:, 5].any(), name


@every_family
def test_merge_copy_clear_spare(family):
    columns, block, labels = filled(family)
    merged = block.spare(N_SLOTS)
    assert not merged.sizes().any()
    for k in range(N_SLOTS):
        merged.copy_slot(block, k, k)
    assert_same_arrays(merged.to_arrays(), block.to_arrays())
    assert all_scores(merged).tobytes() == all_scores(block).tobytes()
    merged.merge_slots(4, 7)  # both used
    merged.merge_slots(3, 8)  # into an empty slot
    merged.merge_slots(9, 7)  # of an empty slot
    to = np.arange(N_SLOTS)
    to[7], to[8] = 4, 3
    rebuilt = block.spare(N_SLOTS)
    rebuilt.build(np.arange(N_ROWS), to[labels], N_SLOTS)
    assert np.array_equal(merged.sizes(), rebuilt.sizes())
    np.testing.assert_allclose(
        merged.log_marginals(), rebuilt.log_marginals(), rtol=1e-11, atol=1e-11
    )
    np.testing.assert_allclose(all_scores(merged), all_scores(rebuilt), rtol=1e-6, atol=2e-6)
    merged.copy_slot(merged, 4, 3)  # within the block
    assert merged.log_marginals()[3] == merged.log_marginals()[4] != 0.0
    merged.build(np.arange(0), np.arange(0), N_SLOTS)  # clears every slot
    assert all_scores(merged).tobytes() == all_scores(block.spare(N_SLOTS)).tobytes()


@every_family
def test_build_equals_inserts(family):
    _, block, labels = filled(family)
    one_by_one = block.spare(N_SLOTS)
    for row, k in enumerate(labels):
        one_by_one.insert_row(row, k)
    assert_same_arrays(one_by_one.to_arrays(), block.to_arrays())
    block.build(np.arange(40, 50), np.full(10, 45), 50)  # more slots than before
    assert block.sizes().sum() == block.sizes()[45] == 10
    assert block.n_slots >= 50
    block.validate()


@every_family
def test_arrays_bit_for_bit(family):
    _, block, _ = filled(family)
    # a history leaves other roundings than a pass over the rows
    for row in range(30):
        block.insert_row(row, row % N_SLOTS)
        block.remove_row((row * 7) % 30, (row * 7) % 30 % N_SLOTS) if row > 20 else None
    arrays = pickle.loads(pickle.dumps(block.to_arrays()))
    again = FAMILIES[family].from_arrays(arrays, block.table)
    assert_same_arrays(again.to_arrays(), block.to_arrays())
    assert all_scores(again).tobytes() == all_scores(block).tobytes()
    assert again.log_marginals().tobytes() == block.log_marginals().tobytes()
    short = FAMILIES[family].from_arrays(block.to_arrays(N_SLOTS), block.table)
    assert all_scores(short).tobytes() == all_scores(block).tobytes()


@every_family
def test_validate_sees_a_stale_cache(family):
    _, block, _ = filled(family)
    block.validate()
    block.set_hyper(0, 0, block.get_hyper(0)[0] * 1.7 + 0.3)  # without refresh_all
    with pytest.raises(AssertionError, match="stale"):
        block.validate()


@every_family
def test_rows_and_slots_out_of_range(family):
    _, block, _ = filled(family)
    for row, k in [(-1, 0), (N_ROWS, 0), (0, -1), (0, block.n_slots)]:
        with pytest.raises(IndexError):
            block.insert_row(row, k)


# ------------------------------------------------------------------ features
@every_family
def test_column_scores(family):
    columns, block, labels = filled(family)
    rows = np.arange(10, N_ROWS)
    partitions = np.array([labels[10:] % 6, labels[10:] % 2, rows % N_SLOTS], dtype=np.int32)
    hyper = [hyper_vector(family, columns[j][2]) for j in (1, 0)]
    shown = block.column_scores(block.table, [1, 0], hyper, rows, partitions, [6, 2, N_SLOTS])
    for i, j in enumerate([1, 0]):
        name, values, mapping = in_cells(columns)[j]
        for v, slots in enumerate(partitions):
            expected = sum(
                log_marginal(name, [values[r] for r in rows[slots == k]], mapping)
                for k in range(N_SLOTS)
            )
            assert shown[i, v] == pytest.approx(expected, rel=1e-10)


@every_family
def test_column_scores_in_batches(family, monkeypatch):
    columns, block, labels = filled(family)
    rows = np.arange(N_ROWS)
    partitions = np.array([labels % (v + 1) for v in range(5)], dtype=np.int32)
    arguments = block.table, [0, 1], [block.default_hyper(int(block.table.n_levels[0]))] * 2
    whole = block.column_scores(*arguments, rows, partitions, np.arange(1, 6))
    monkeypatch.setattr("skanneal.families._partition_sums.BATCH_BYTES", 1)
    parts = block.column_scores(*arguments, rows, partitions, np.arange(1, 6))
    np.testing.assert_array_equal(parts, whole)


@every_family
def test_a_block_without_features(family):
    """It keeps the rows' slots and says nothing of them."""
    _, block, labels = filled(family)
    empty = FAMILIES[family](block.table, [])
    empty.build(np.arange(N_ROWS), labels, block.n_slots)
    assert np.array_equal(empty.sizes(), block.sizes())
    assert not all_scores(empty).any()
    assert not empty.log_marginals().any()
    empty.insert_row(0, 2)
    empty.remove_row(0, 2)
    again = FAMILIES[family].from_arrays(empty.to_arrays(), block.table)
    assert np.array_equal(again.sizes(), block.sizes())


def coordinate(family, h):
    """Name and form of a hyperparameter; of levels, whose pseudo-counts share both, the first's."""
    cls = FAMILIES[family]
    h = min(h, len(cls.forms) - 1)
    return cls.coordinate_names[h], cls.forms[h]


@every_family
def test_grid_scores(family):
    columns, block, labels = filled(family)
    for f, column in enumerate(block.columns):
        name, values, hyper = columns[column]
        vector = hyper_vector(name, hyper)
        for h in range(len(vector)):
            grid = np.array([0.3, vector[h], 2.5, 7.0])
            if coordinate(name, h)[1] == "location":
                grid = np.array([-1.5, vector[h], 0.0, 2.0])
            elif coordinate(name, h)[0] == "r":  # sizes that it keeps the sums for
                grid = np.r_[vector[h], FAMILIES[name].grids(np.arange(3), 0)[h][[3, 8, 12]]]
            expected = []
            for value in grid:
                changed = vector.copy()
                changed[h] = value
                changed = hyper_mapping(name, changed)
                expected.append(
                    sum(
                        log_marginal(name, values_in(columns, labels, k)[column], changed)
                        for k in range(N_SLOTS)
                    )
                )
            shown = block.grid_scores(f, h, grid)
            # a constant is free
            np.testing.assert_allclose(
                shown - shown[0], np.array(expected) - expected[0], rtol=1e-9, atol=1e-8
            )
        np.testing.assert_array_equal(block.get_hyper(f), vector)


def test_scores_of_pseudo_counts_for_counts_of_any_size():
    """Counts that are multiplied out, tallied and neither, in more slots than a tile has; a grid
    that is longer than a tile, too."""
    rng, sizes = np.random.default_rng(12), [1, 2, 3, 7, 8, 9, 40, 63, 64, 65, 900, 3000] + [2] * 9
    labels = np.repeat(np.arange(len(sizes)), sizes)
    codes = rng.choice(5, size=len(labels), p=[0.5, 0.3, 0.15, 0.04, 0.01]).astype(np.uint8)
    table = Table(["u1"], [4])  # the last code stands for a missing cell
    table.append([codes])
    hyper, grid = np.array([0.001, 0.5, 2.0, 31.0]), np.geomspace(1e-3, 40.0, 20)
    block = FAMILIES["categorical"](table, [0], [hyper], n_slots=len(sizes))
    block.build(np.arange(len(labels)), labels, len(sizes))
    counts = np.array([np.bincount(codes[labels == k], minlength=5)[:4] for k in range(len(sizes))])
    for h in range(4):
        a = np.repeat(hyper[None], len(grid), axis=0)
        a[:, h] = grid
        own = (gammaln(a[:, None] + counts) - gammaln(a)[:, None]).sum(axis=(1, 2))
        total = a.sum(axis=1)[:, None]
        expected = own - (gammaln(total + counts.sum(axis=1)) - gammaln(total)).sum(axis=1)
        shown = block.grid_scores(0, h, grid)
        np.testing.assert_allclose(shown - shown[0], expected - expected[0], rtol=1e-9, atol=1e-8)


@every_family
def test_set_hyper_and_refresh(family):
    columns, block, labels = filled(family)
    new = [random_column(family, 1, np.random.default_rng(s))[2] for s in (50, 51)]
    changed = [(c[0], c[1], hyper) for c, hyper in zip(columns, new, strict=True)]
    for f, column in enumerate(block.columns):
        for h, value in enumerate(hyper_vector(family, changed[column][2])):
            block.set_hyper(f, h, value)
    block.refresh_all()
    for row in (0, 11, 60):
        expected = reference_scores(changed, labels, row, N_SLOTS)
        np.testing.assert_allclose(block.row_scores(row)[:N_SLOTS], expected, rtol=3e-6, atol=1e-5)


@every_family
def test_grids_are_scaled_and_valid(family):
    rng = np.random.default_rng(8)
    column = random_column(family, 200, rng, missing=0.2)
    table = make_table([column])
    grids = FAMILIES[family].grids(table.column(0)[~table.missing(0)], int(table.n_levels[0]))
    assert len(grids) == len(hyper_vector(family, column[2]))
    for h, grid in enumerate(grids):
        assert np.all(np.diff(grid) > 0)
        assert coordinate(family, h)[1] == "location" or np.all(grid > 0)


# ------------------------------------------------------------------ draws
def draws_of(block, f, n, k, seed):
    return block.sample_feature(f, np.full(n, k), np.random.PCG64(seed))


@pytest.mark.parametrize("family", ["categorical", "bernoulli", "poisson"])
@pytest.mark.parametrize("k", [0, 3])  # 3 is empty
def test_discrete_draws_follow_the_predictive(family, k):
    columns, block, labels = filled(family)
    name, values, hyper = columns[block.columns[0]]
    cells = values_in(columns, labels, k)[block.columns[0]]
    n_values = {"categorical": 3, "bernoulli": 2, "poisson": 400}[family]
    law = {v: np.exp(log_predictive(name, v, cells, hyper)) for v in range(n_values)}
    law["more"] = max(0.0, 1.0 - sum(law.values())) if family == "poisson" else 0.0
    counts = Counter(draws_of(block, 0, 40_000, k, 9).astype(int).tolist())
    check_counts(counts, law)
    # control: a slot's draws do not follow the law of one row more
    more = [*cells, 0, 0]
    other = {v: np.exp(log_predictive(name, v, more, hyper)) for v in range(n_values)}
    other["more"] = max(0.0, 1.0 - sum(other.values()))
    assert count_p_value(counts, other) < 1e-6


@pytest.mark.parametrize("rate", [3.0, 35.0, 900.0])
def test_poisson_draws_of_large_rates(rate):
    # a slot that holds many cells of one value: nearly a Poisson, sampled by either way
    column = ("poisson", [int(rate)] * 500, {"shape": 1.0, "rate": 1.0})
    (block,) = make_blocks(make_table([column]), [column])
    block.build(np.arange(500), np.zeros(500, int), 1)
    cells = column[1]
    support = range(int(rate + 9 * rate**0.5 + 30))
    law = {v: np.exp(log_predictive("poisson", v, cells, column[2])) for v in support}
    law["more"] = max(0.0, 1.0 - sum(law.values()))
    check_counts(Counter(draws_of(block, 0, 20_000, 0, 10).astype(int).tolist()), law)


@pytest.mark.parametrize("k", [0, 3])
def test_normal_draws_follow_the_predictive(k):
    columns, block, labels = filled("normal")
    _, _, hyper = columns[0]
    cells = np.array(values_in(columns, labels, k)[0])
    n = len(cells)
    kappa, nu = hyper["kappa0"] + n, hyper["nu0"] + n
    mean = cells.mean() if n else hyper["mu0"]
    centre = (hyper["kappa0"] * hyper["mu0"] + n * mean) / kappa
    squares = hyper["nu0"] * hyper["sigma2_0"] + ((cells - mean) ** 2).sum()
    squares += hyper["kappa0"] * n / kappa * (mean - hyper["mu0"]) ** 2
    scale = np.sqrt(squares / nu * (1 + 1 / kappa))
    draws = draws_of(block, 0, 40_000, k, 11)
    assert stats.kstest(draws, stats.t(nu, centre, scale).cdf).pvalue > 1e-4
    # controls: the posterior's scale without the mean's uncertainty, and a normal
    without = np.sqrt(squares / nu)
    assert stats.kstest(draws, stats.t(nu, centre, without).cdf).pvalue < 1e-6
    assert stats.kstest(draws, stats.norm(centre, scale).cdf).pvalue < 1e-6
    centres = block.predictive_mean(0)
    assert centres[k] == pytest.approx(centre, rel=1e-12)


# ------------------------------------------------------------------ sizes
@every_family
@pytest.mark.parametrize("n_slots", [17, 70])
def test_many_slots(family, n_slots):
    columns, block, labels = filled(family, n_rows=3 * n_slots, n_slots=n_slots)
    for row in (0, n_slots):
        expected = reference_scores(columns, labels, row, n_slots)
        np.testing.assert_allclose(block.row_scores(row)[:n_slots], expected, rtol=3e-6, atol=1e-5)


@pytest.mark.parametrize(("n_levels", "dtype"), [(300, "u2"), (70_000, "u4")])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_wide_codes(n_levels, dtype, missing):
    rng = np.random.default_rng(12)
    hyper = {"pseudo_counts": rng.choice([0.1, 0.5, 2.0], n_levels).tolist()}
    values = rng.integers(n_levels, size=40).tolist()
    values[20:] = values[:20]  # levels come again
    values = [None if rng.random() < missing else v for v in values]
    narrow = random_column("categorical", 40, rng, missing=0.2)
    columns = [("categorical", values, hyper), narrow]
    table = make_table(columns)
    assert table.dtypes == (dtype, "u1")
    (block,) = make_blocks(table, columns)
    labels = rng.integers(3, size=40)
    block.build(np.arange(40), labels, 3)
    for row in range(0, 40, 9):
        expected = reference_scores(columns, labels, row, 3)
        np.testing.assert_allclose(block.row_scores(row)[:3], expected, rtol=3e-6, atol=1e-5)
    for f, column in enumerate(block.columns):
        expected = [
            log_marginal("categorical", values_in(columns, labels, k)[column], columns[column][2])
            for k in range(3)
        ]
        np.testing.assert_allclose(block.log_marginals(f)[:3], expected, rtol=1e-10)
    again = type(block).from_arrays(block.to_arrays(3), table)
    assert all_scores(again).tobytes() == all_scores(block).tobytes()


@every_family
@pytest.mark.few(4)
def test_more_than_64_features(family):
    rng = np.random.default_rng(13)
    columns = [random_column(family, 12, rng, missing=0.3 * (j % 3 == 0)) for j in range(131)]
    table = make_table(columns)
    (block,) = make_blocks(table, columns)
    labels = rng.integers(4, size=12)
    block.build(np.arange(12), labels, 4)
    for row in (0, 7):
        expected = reference_scores(columns, labels, row, 4)
        np.testing.assert_allclose(block.row_scores(row)[:4], expected, rtol=5e-6, atol=1e-4)


@every_family
@pytest.mark.few(4)
def test_counts_beyond_the_tables_of_logarithms(family):
    rng = np.random.default_rng(14)
    n = 70_001
    columns = [random_column(family, n, rng, missing=m) for m in (0.0, 0.1)]
    table = make_table(columns)
    (block,) = make_blocks(table, columns)
    labels = np.zeros(n, int)
    labels[-1000:] = 1
    block.build(np.arange(n), labels, 2)
    scores = np.zeros((20, 2))
    block.score_rows(table, scores, 0, 20)
    for row in range(20):
        # the sums of squares are large: the formula in float64 stands in for the rationals
        shown = block.row_scores(row)[:2]
        shown = shown - shown[0] + scores[row, 0]  # row scores are in cell units
        np.testing.assert_allclose(shown, scores[row], rtol=3e-6, atol=2e-5)
    if FAMILIES[family].bounds_density is None:
        for row in (0, 5):
            expected = reference_scores(columns, labels, row, 2)
            np.testing.assert_allclose(scores[row], expected, rtol=1e-9)
    # across the tables' end, 16384
    for k, size in ((5, 16_380), (6, 16_384), (7, 16_390)):
        for row in range(size):
            block.insert_row(row, k)
        block.score_rows(table, wide := np.zeros((3, 8)), 0, 3)
        shown = block.row_scores(1)[[0, k]]
        expected = wide[1, [0, k]]
        np.testing.assert_allclose(shown[1] - shown[0], expected[1] - expected[0], atol=2e-5)


# ------------------------------------------------------------------ drift
def drift_mixture(kind, seed):
    """2000 rows; the data of a `kind` through offset and scale as the encoder makes them."""
    rng = np.random.default_rng(seed)
    n = 2000
    if kind == "mixed":
        columns = random_columns(COLUMN_FAMILIES, n, seed)
        return columns, make_mixture(columns, 3.0, 0.2, seed=seed)
    values = {
        "offset": 2952788047.4 + rng.normal(size=n),
        "constant": np.full(n, 2952788047.4),
        "far": 1000.0 + rng.normal(size=n),
    }[kind]
    offset, scale = (0.0, 1.0) if kind == "far" else (values.mean(), values.std() or 1.0)
    table = Table(["f4", "f4"], [0, 0], [offset, 0.0], [scale, 1.0])
    other = rng.normal(size=n)
    other[rng.random(n) < 0.3] = np.nan
    table.append([np.float32((values - offset) / scale), np.float32(other)])
    bit_generator = np.random.PCG64(seed)
    block = FAMILIES["normal"](table, [0, 1])
    prior = PitmanYor(3.0, 0.2)
    mixture = Mixture(table, [block], prior, Subsample(n, "random", bit_generator))
    return None, (mixture, bit_generator)


DRIFTS = [(kind, beta) for kind in ("mixed", "offset", "constant", "far") for beta in (0.0, 1.0)]
QUICK_DRIFTS = [("offset", 0.0), ("offset", 1.0), ("constant", 1.0), ("far", 0.0)]


@pytest.mark.parametrize(
    ("kind", "beta", "n_moves"),
    [
        *((*case, 200_000) for case in QUICK_DRIFTS),
        *(pytest.param(*case, 1_000_000, marks=pytest.mark.slow) for case in DRIFTS),
    ],
)
def test_statistics_after_many_moves(kind, beta, n_moves):
    """So many removes and as many inserts: statistics equal those made in one pass."""
    _, (mixture, bit_generator) = drift_mixture(kind, 15)
    n = mixture.table.n_rows
    stop = n_moves + n
    knots = np.array([[0, 0], [n, n], [stop, n]])
    # with the energy off, the prior alone moves rows among many clusters
    assert churn([mixture], mixture.subsample, bit_generator, knots, 0, stop, beta) == stop
    mixture.validate()
    labels = mixture.get_labels()
    for block in mixture.blocks:
        rebuilt = block.spare(block.n_slots)
        rebuilt.build(np.arange(n), labels, block.n_slots)
        kept, fresh = block.to_arrays(), rebuilt.to_arrays()
        for name, value in fresh.items():
            if value.dtype.kind != "f":
                np.testing.assert_array_equal(kept[name], value)
            else:
                np.testing.assert_allclose(kept[name], value, rtol=2e-9, atol=2e-9)
        np.testing.assert_allclose(
            block.log_marginals(), rebuilt.log_marginals(), rtol=1e-8, atol=1e-7
        )
        if block.family == "normal":
            assert np.all(kept["m2"] >= 0)
            if kind == "constant":
                assert not kept["m2"][0].any()
        for row in (0, 999):
            np.testing.assert_allclose(
                block.row_scores(row), rebuilt.row_scores(row), rtol=1e-5, atol=1e-5
            )


def test_raw_sums_of_squares_would_drift():
    """Control: what the test above would see of raw sums, even in float64 and without moves."""
    values = 2952788047.4 + np.random.default_rng(15).normal(size=2000)
    raw = (values**2).sum() - values.sum() ** 2 / len(values)
    assert abs(raw - len(values) * values.var()) > 1.0


# ------------------------------------------------------------------ rows at once
def many_numbers(family, gaps):
    """A block of 30 columns, of which the first five have no gaps, and rows far from it."""
    rng = np.random.default_rng(3)
    cells = rng.normal(size=(60, 30)).astype(np.float32)
    cells[rng.random(cells.shape) < gaps] = np.nan
    cells[:, :5] = rng.normal(size=(60, 5))
    table = Table(["f4"] * 30, [0] * 30, np.zeros(30), np.linspace(0.5, 2.0, 30))
    table.append(list(cells.T))
    block = FAMILIES[family](table, range(30), n_slots=16)
    block.build(np.arange(60), np.arange(60) % 5, 16)
    cells[0], cells[1, ::3], cells[2, :2] = 1e18, -1e15, 3e38
    queries = table.empty_like()
    queries.append(list(cells.T))
    return block, queries


@pytest.mark.parametrize("family", ["normal", "log_normal"])
@pytest.mark.parametrize("gaps", [0.0, 0.3], ids=["whole", "gaps"])
def test_a_row_is_scored_as_its_cells_one_by_one(family, gaps):
    """Cells share the logarithm of a product, which is split where cells are far out."""
    block, queries = many_numbers(family, gaps)
    together, apart = np.zeros((2, 60, 6))
    block.score_rows(queries, together)
    for f in range(30):
        block.score_feature(f, queries, apart, 0, 60)
    np.testing.assert_allclose(together, apart, rtol=1e-12)
    assert np.isfinite(together).all()
    some = np.zeros((50, 6))
    block.score_rows(queries, some, 7, 57)
    np.testing.assert_array_equal(some, together[7:57])


@pytest.mark.parametrize("family", ["normal", "log_normal"])
@pytest.mark.parametrize("gaps", [0.0, 0.3], ids=["whole", "gaps"])
def test_tails_show_the_distance(family, gaps):
    """Of a logarithm where the family is of logarithms."""
    block, queries = many_numbers(family, gaps)
    found, expected = np.zeros((2, 60, 6))
    block.add_surprisals(queries, found)
    for f in range(30):
        scores, centres = np.zeros((60, 6)), np.zeros((16, 6))
        scale = queries.scales[block.columns[f]]
        block.score_numbers(f, queries.column(block.columns[f]), scale, scores)
        block.score_numbers(f, block.predictive_mean(f).astype(np.float32), scale, centres)
        h = block.tail_exponent(f)[:6]
        excess = np.maximum(np.diag(centres) - scores, 0.0)
        there = ~queries.missing(block.columns[f])[:, None]
        expected += there * (2 * h * np.expm1(np.minimum(excess / (2 * h), 30.0)) - excess)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert found.any()
