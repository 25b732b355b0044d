"""The families of whole rows: the contract of test_components.py, and the laws of test_moves.py.

Random tests: fixed seeds, one try; a goodness-of-fit test alarms falsely once in 10,000.
"""

import pickle
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import stats

from oracles.bits import all_scores, assert_same_arrays
from oracles.enumeration import (
    check_counts,
    count_p_value,
    enumerate_joint,
    enumerate_posterior,
    marginal,
)
from oracles.mixtures import (
    NUMBER_ROWS,
    encode,
    end_labels,
    hyper_mapping,
    hyper_vector,
    joined,
    make_blocks,
    make_mixture,
    make_table,
    random_covariance,
    random_rows,
    segments_of,
    set_partition,
    split_rows,
)
from oracles.reference import EXAMPLES, ROW_EXAMPLES, log_marginal, log_predictive
from skanneal.families import FAMILIES, Table
from skanneal.families._forms import diagonal, flatten, starts, unflatten
from skanneal.moves import FeatureHyperparameters, Gibbs, SplitMerge, churn
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import LinearAnneal, SequentialGibbs
from skanneal.states import Mixture, Subsample

every_family = pytest.mark.parametrize("family", NUMBER_ROWS)
N_ROWS, N_SLOTS = 90, 20
SCORES = {"rtol": 1e-5, "atol": 2e-5}  # of float32 caches


def filled(family, *, d=3, n_rows=N_ROWS, n_slots=N_SLOTS, seed=1):
    """A block of d columns, rows in random slots, slot 3 empty."""
    rng = np.random.default_rng(seed)
    column = random_rows(family, n_rows, rng, d)
    (block,) = make_blocks(make_table([column]), [column], n_slots)
    labels = rng.integers(n_slots, size=n_rows)
    labels[labels == 3] = 4
    block.build(np.arange(n_rows), labels, n_slots)
    return column, block, labels


def rows_in(column, labels, k):
    return [column[1][i] for i in np.flatnonzero(labels == k)]


def reference_scores(column, labels, row, n_slots):
    """Log predictive of a row, by its index or as it is, in each slot."""
    family, values, hyper = column
    row = values[row] if isinstance(row, int | np.integer) else row
    return np.array(
        [log_predictive(family, row, rows_in(column, labels, k), hyper) for k in range(n_slots)]
    )


# ------------------------------------------------------------------ scores and marginals
@every_family
@pytest.mark.parametrize("d", [1, 2, 3, 7, 8, 13])
def test_row_scores_are_the_log_predictives(family, d):
    column, block, labels = filled(family, d=d)
    for row in range(0, N_ROWS, 13):
        expected = reference_scores(column, labels, row, N_SLOTS)
        np.testing.assert_allclose(block.row_scores(row)[:N_SLOTS], expected, **SCORES)


@every_family
@pytest.mark.parametrize("d", [1, 3, 8, 13])
def test_log_marginals(family, d):
    column, block, labels = filled(family, d=d)
    name, _, hyper = column
    expected = [log_marginal(name, rows_in(column, labels, k), hyper) for k in range(N_SLOTS)]
    for actual in (block.log_marginals(), block.log_marginals(0)):
        np.testing.assert_allclose(actual[:N_SLOTS], expected, rtol=1e-10, atol=1e-9)
        assert not actual[N_SLOTS:].any()


@every_family
def test_scores_without_a_row(family):
    """The slot of each row as it would be without the row, be it alone there or not."""
    column, block, labels = filled(family, n_rows=40)
    labels[7] = 3  # alone
    block.build(np.arange(40), labels, N_SLOTS)
    before = block.to_arrays()
    for row in range(40):
        rest = labels.copy()
        rest[row] = -1
        expected = reference_scores(column, rest, row, N_SLOTS)[labels[row]]
        shown = block.row_score_without(row, labels[row])
        np.testing.assert_allclose(shown, expected, rtol=1e-6, atol=1e-6)
    assert_same_arrays(block.to_arrays(), before)


@every_family
@pytest.mark.parametrize("d", [1, 3, 8])
def test_score_rows_of_queries(family, d):
    column, block, labels = filled(family, d=d)
    fresh = random_rows(family, 9, np.random.default_rng(2), d)[1]
    columns = split_rows([column])
    queries = block.table.empty_like()
    cells = list(zip(*fresh, strict=True))
    queries.append([encode(c, values) for c, values in zip(columns, cells, strict=True)])
    out = np.full((6, N_SLOTS), 0.5)
    block.score_rows(queries, out, 2, 8)
    for row in range(2, 8):
        expected = reference_scores(column, labels, fresh[row], N_SLOTS)
        np.testing.assert_allclose(out[row - 2] - 0.5, expected, rtol=1e-9, atol=1e-9)
    alone = np.zeros((1, 5))  # the batch and the number of slots say nothing
    block.score_rows(queries, alone, 4, 5)
    np.testing.assert_array_equal(alone[0] + 0.5, out[2, :5])
    queries.append([np.full(1, np.nan)] * d)  # a row without cells
    out = np.zeros((1, 4))
    block.score_rows(queries, out, 9, 10)
    for i in range(d):
        block.score_feature(i, queries, out, 9, 10)
    assert not out.any()


@every_family
def test_cells_given_the_rest_of_their_row(family):
    """The conditional density integrates to one and is proportional to the row's."""
    column, block, _ = filled(family, d=3)
    row = np.array(column[1][5])
    grid = np.sinh(np.linspace(-12, 12, 4801))
    for i in range(3):
        table = Table(["f4"] * 3, [0] * 3, [0.0, 5.0, 0.0], [1.0, 2.0, 0.5])
        cells = np.tile(row, (len(grid), 1))
        cells[:, i] = grid
        table.append(list(np.float32(cells.T)))
        conditional, joint = np.zeros((2, len(grid), N_SLOTS))
        block.score_feature(i, table, conditional, 0, len(grid))
        block.score_rows(table, joint)
        places = np.float64(np.float32(grid)) * table.scales[i]
        total = np.trapezoid(np.exp(conditional), places, axis=0)
        np.testing.assert_allclose(total, 1.0, atol=2e-4)
        near = np.abs(grid) < 20
        difference = (joint - conditional)[near]
        np.testing.assert_allclose(difference, difference[:1] + 0 * difference, atol=1e-8)


@every_family
def test_scores_are_in_the_users_units(family):
    rng = np.random.default_rng(3)
    offsets, scales = np.array([12.5, -3.0, 7.0]), np.array([0.25, 4.0, 1.5])
    _, cells, hyper = random_rows(family, 12, rng)
    forms = FAMILIES[family].forms
    users = {}
    for form, (name, value) in zip(forms, hyper.items(), strict=True):
        users[name] = value
        if form == "location":
            users[name] = offsets + scales * value
        elif form == "covariance":
            users[name] = value * np.outer(scales, scales)
    values = (offsets + scales * np.array(cells)).tolist()
    table = Table(["f4"] * 3, [0] * 3, offsets, scales)
    table.append(list(np.float32(np.transpose(cells))))
    block = FAMILIES[family](table, [0, 1, 2], [hyper_vector(family, hyper)])
    block.build(np.arange(11), np.zeros(11, int), 1)
    expected = log_marginal(family, values[:11], users)
    assert block.log_marginals()[0] + block.log_jacobian() == pytest.approx(expected, rel=1e-9)
    out = np.zeros((1, 1))
    block.score_rows(table, out, 11, 12)
    expected = log_predictive(family, values[11], values[:11], users)
    assert out[0, 0] == pytest.approx(expected, rel=1e-8)


@every_family
def test_chain_rule_in_any_order(family):
    column, block, _ = filled(family, n_rows=30)
    rng = np.random.default_rng(4)
    expected = log_marginal(*column)
    for _ in range(3):
        empty = block.spare(1)
        total = exact = 0.0
        for row in rng.permutation(30):
            total += float(empty.row_scores(row)[0])
            out = np.zeros((1, 1))
            empty.score_rows(block.table, out, row, row + 1)
            exact += out[0, 0]
            empty.insert_row(row, 0)
        assert total == pytest.approx(expected, abs=5e-4)
        assert exact == pytest.approx(expected, abs=1e-8)
        assert empty.log_marginals()[0] == pytest.approx(expected, abs=1e-8)


# ------------------------------------------------------------------ operations on slots
def statistics(block):
    """Statistics of a block without the factor's roundings and history."""
    drop = {"factor", "updates"}
    return {name: value for name, value in block.to_arrays().items() if name not in drop}


@every_family
@pytest.mark.parametrize("d", [3, 9])
def test_add_then_remove_is_the_identity(family, d):
    _, block, _ = filled(family, d=d)
    before, arrays = all_scores(block), statistics(block)
    rng = np.random.default_rng(6)
    moves = [(int(rng.integers(N_ROWS)), int(rng.integers(N_SLOTS))) for _ in range(60)]
    for row, k in moves:
        block.insert_row(row, k)
    for row, k in reversed(moves):
        block.remove_row(row, k)
    for name, value in statistics(block).items():
        np.testing.assert_allclose(value, arrays[name], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(all_scores(block), before, **SCORES)


@every_family
def test_an_emptied_slot_is_as_new(family):
    _, block, labels = filled(family)
    new = block.spare(N_SLOTS)
    for row in np.random.default_rng(7).permutation(np.flatnonzero(labels == 5)):
        block.remove_row(row, 5)
    assert all_scores(block)[:, 5].tobytes() == all_scores(new)[:, 5].tobytes()
    assert block.log_marginals()[5] == 0.0
    kept, fresh = block.to_arrays(), new.to_arrays()
    for name in fresh:
        if kept[name].shape[-1:] == (block.n_slots,):
            assert kept[name][..., 5].tobytes() == fresh[name][..., 5].tobytes(), name


@every_family
def test_merge_copy_clear_spare(family):
    _, block, labels = filled(family)
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
        merged.log_marginals(), rebuilt.log_marginals(), rtol=1e-10, atol=1e-10
    )
    np.testing.assert_allclose(all_scores(merged), all_scores(rebuilt), **SCORES)
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
@pytest.mark.parametrize("d", [1, 3, 9])
def test_the_two_sides_of_a_split_are_weighed_and_joined(family, d):
    """As other slots are scored and others' rows inserted."""
    _, block, labels = filled(family, d=d)
    sides, one_by_one = block.spare(2), block.spare(2)
    for i in range(40):
        shown = sides.weighed(i)
        np.testing.assert_allclose(shown, one_by_one.row_scores(i)[:2], **SCORES)
        sides.join_row(i, labels[i] % 2)
        one_by_one.insert_row(i, labels[i] % 2)
    np.testing.assert_allclose(sides.log_marginals(), one_by_one.log_marginals(), rtol=1e-10)
    for k in range(2):  # a copy is complete
        block.copy_slot(sides, k, k)
    np.testing.assert_allclose(all_scores(block)[:, :2], all_scores(one_by_one)[:, :2], **SCORES)
    block.validate()


@pytest.mark.parametrize("family", NUMBER_ROWS)
def test_log_densities_of_cells_at_their_centres(family):
    """Any of them, with those of a table's rows at the centres as the judge."""
    _, block, _ = filled(family, d=5, n_slots=6)
    centres = np.array([block.predictive_mean(i)[:6] for i in range(5)]).T
    masks = np.random.default_rng(3).random((12, 5)) < 0.6
    masks[0], masks[1] = True, False
    rows = [
        [float(x) if there else None for x, there in zip(centre, mask)]
        for mask in masks
        for centre in centres
    ]
    queries, out = make_table([(family, rows, None)]), np.zeros((len(rows), 6))
    block.score_rows(queries, out)
    expected = out.reshape(12, 6, 6)[:, np.arange(6), np.arange(6)]
    got = block.log_centres(masks, np.arange(6))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(block.log_centres(masks, [4]), got[:, [4]])


@every_family
@pytest.mark.parametrize("d", [1, 3, 8, 21])
def test_extend_equals_inserts(family, d):
    _, block, _ = filled(family, d=d, n_slots=37)
    one_by_one = type(block).from_arrays(block.to_arrays(), block.table)
    sizes = block.sizes()
    for row in (5, 60, 5):
        block.extend_row(row, 2)
        for k in np.flatnonzero(sizes[:32]):
            one_by_one.insert_row(row, k)
    assert np.array_equal(block.sizes()[:32], sizes[:32] + 3 * (sizes[:32] > 0))
    assert np.array_equal(block.sizes()[32:], sizes[32:])
    assert_same_arrays(one_by_one.to_arrays(), block.to_arrays())
    assert all_scores(one_by_one).tobytes() == all_scores(block).tobytes()
    block.validate()


@every_family
@pytest.mark.parametrize("d", [1, 3, 8, 21])
def test_a_dropped_slot_is_opened_as_new(family, d):
    _, block, labels = filled(family, d=d)
    stays = np.flatnonzero(~np.isin(labels, (2, 7)))
    cleared = block.spare(N_SLOTS)
    cleared.build(stays, labels[stays], N_SLOTS)
    for k in (2, 7):
        block.drop_slot(k)
    for row, opened in ((5, 3), (60, 7), (8, -1), (7, 2)):
        block.extend_row(row, 2, opened)
        for k in np.flatnonzero(cleared.sizes()):
            cleared.insert_row(row, k)
        if opened >= 0:
            cleared.insert_row(row, opened)
    assert_same_arrays(cleared.to_arrays(), block.to_arrays())
    assert all_scores(cleared).tobytes() == all_scores(block).tobytes()
    block.validate()


@every_family
def test_arrays_bit_for_bit(family):
    _, block, labels = filled(family)
    for row in range(30):  # a history leaves other roundings than a pass over the rows
        block.insert_row(row, row % N_SLOTS)
        if row > 20:
            block.remove_row(row - 15, (row - 15) % N_SLOTS)
    arrays = pickle.loads(pickle.dumps(block.to_arrays()))
    again = FAMILIES[family].from_arrays(arrays, block.table)
    assert_same_arrays(again.to_arrays(), block.to_arrays())
    assert all_scores(again).tobytes() == all_scores(block).tobytes()
    assert again.log_marginals().tobytes() == block.log_marginals().tobytes()
    short = FAMILIES[family].from_arrays(block.to_arrays(N_SLOTS), block.table)
    assert all_scores(short).tobytes() == all_scores(block).tobytes()
    for one in (block, again):
        for row in range(5):
            one.insert_row(row, 4)
    assert_same_arrays(again.to_arrays(), block.to_arrays())


@every_family
def test_validate_sees_a_stale_cache(family):
    _, block, _ = filled(family)
    block.validate()
    if family == "known_normal":
        for call in (lambda: block.set_hyper(0, 0, 2.0), lambda: block.grid_scores(0, 0, [1.0])):
            with pytest.raises(ValueError, match="given, not inferred"):
                call()
        return
    arrays = block.to_arrays()
    block.validate()
    assert_same_arrays(block.to_arrays(), arrays)  # it changes nothing
    for h in (0, len(block.get_hyper(0)) - 1):
        block.set_hyper(0, h, block.get_hyper(0)[h] * 1.7 + 0.3)  # without refresh_all
        with pytest.raises(AssertionError, match="stale"):
            block.validate()


@pytest.mark.parametrize("family", [f for f in NUMBER_ROWS if f != "known_normal"])
def test_set_hyper_and_refresh(family):
    column, block, labels = filled(family)
    changed = (*column[:2], random_rows(family, 1, np.random.default_rng(50))[2])
    for h, value in enumerate(hyper_vector(family, changed[2])):
        block.set_hyper(0, h, value)
    block.refresh_all()
    np.testing.assert_array_equal(block.get_hyper(0), hyper_vector(family, changed[2]))
    for row in (0, 11, 60):
        expected = reference_scores(changed, labels, row, N_SLOTS)
        np.testing.assert_allclose(block.row_scores(row)[:N_SLOTS], expected, **SCORES)
    pair = filled(family)[1].spare(N_SLOTS)
    pair.follow(block)
    for k in range(N_SLOTS):
        pair.copy_slot(block, k, k)
    assert all_scores(pair).tobytes() == all_scores(block).tobytes()


@pytest.mark.parametrize("family", [f for f in NUMBER_ROWS if f != "known_normal"])
def test_grid_scores(family):
    """Of every coordinate, by whatever way; a constant is free."""
    column, block, labels = filled(family)
    vector = hyper_vector(family, column[2])
    for h in range(len(vector)):
        grid = vector[h] * np.array([1.02, 1.0, 0.97, 1.05])
        if h in inferred_places(family, 3):
            grid = vector[h] * np.array([2.5, 1.0, 0.9, 40.0])
        expected = []
        for value in grid:
            changed = vector.copy()
            changed[h] = value
            hyper = hyper_mapping(family, changed)
            expected.append(
                sum(log_marginal(family, rows_in(column, labels, k), hyper) for k in range(N_SLOTS))
            )
        shown = block.grid_scores(0, h, grid)
        np.testing.assert_allclose(
            shown - shown[0], np.array(expected) - expected[0], rtol=1e-9, atol=1e-8
        )
    np.testing.assert_array_equal(block.get_hyper(0), vector)
    block.validate()


def inferred_places(family, d):
    """Coordinates that have grids by default."""
    table = Table(["f4"] * d, [0] * d)
    table.append([np.float32(np.arange(5) - 2)] * d)
    grids = FAMILIES[family].grids(table, np.arange(d))
    assert len(grids) == len(FAMILIES[family].default_hyper(table, np.arange(d)))
    return [h for h, grid in enumerate(grids) if grid is not None]


def test_what_is_inferred():
    at = starts(FAMILIES["multivariate_normal"].forms, 3)
    expected = [at[1], at[2], *(at[3] + diagonal(3))]
    assert inferred_places("multivariate_normal", 3) == expected


def test_a_variance_that_off_diagonals_forbid_is_never_drawn():
    column, block, _ = filled("multivariate_normal", d=2)
    hyper = column[2] | {"scale0": [[1.0, 0.9], [0.9, 1.0]]}
    for h, value in enumerate(hyper_vector("multivariate_normal", hyper)):
        block.set_hyper(0, h, value)
    scores = block.grid_scores(0, 6, np.array([0.5, 0.8, 0.82, 2.0]))
    assert np.isneginf(scores).tolist() == [True, True, False, False]


# ------------------------------------------------------------------ forms
def test_flat_vectors():
    forms = ("location", "positive", "covariance", "positives")
    matrix = np.array([[1.0, 2.0, 4.0], [2.0, 3.0, 5.0], [4.0, 5.0, 6.0]])
    flat = flatten(forms, [[7, 8, 9], 10, matrix, [11, 12, 13]], 3)
    assert flat.tolist() == [7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 11, 12, 13]
    assert starts(forms, 3) == [0, 3, 4, 10, 13]
    assert flat[4 + diagonal(3)].tolist() == [1, 3, 6]
    again = unflatten(forms, flat, 3)
    assert again[1] == 10 and again[2].tolist() == matrix.tolist()
    assert [again[0].tolist(), again[3].tolist()] == [[7, 8, 9], [11, 12, 13]]


# ------------------------------------------------------------------ draws
def marginal_law(family, rows, hyper, direction):
    """The law of direction . x in a slot, from the formulas."""
    n, d = len(rows), len(direction)
    direction = np.asarray(direction)
    total = np.sum(np.reshape(rows, (n, d)), axis=0)
    if family == "known_normal":
        covariance, m0, v0 = (np.asarray(hyper[name]) for name in FAMILIES[family].coordinate_names)
        spread = np.linalg.inv(np.linalg.inv(v0) + n * np.linalg.inv(covariance))
        centre = spread @ (np.linalg.solve(v0, m0) + np.linalg.solve(covariance, total))
        return stats.norm(
            direction @ centre, (direction @ (covariance + spread) @ direction) ** 0.5
        )
    mu0, kappa0, nu0 = (np.asarray(hyper[name]) for name in ("mu0", "kappa0", "nu0"))
    mean = total / n if n else mu0
    shifts = np.reshape(rows, (n, d)) - mean
    psi = hyper["scale0"] + shifts.T @ shifts
    psi = psi + kappa0 * n / (kappa0 + n) * np.outer(mean - mu0, mean - mu0)
    degrees, kappa = nu0 + n - d + 1, kappa0 + n
    scale = (direction @ psi @ direction * (kappa + 1) / (kappa * degrees)) ** 0.5
    return stats.t(degrees, direction @ (kappa0 * mu0 + total) / kappa, scale)


@every_family
@pytest.mark.parametrize("k", [0, 3])  # 3 is empty
def test_rows_are_drawn_from_the_predictive(family, k):
    column, block, labels = filled(family)
    rows = rows_in(column, labels, k)
    draws = block.sample_rows(np.full(20_000, k), np.random.PCG64(11))
    assert draws.shape == (20_000, 3)
    assert block.sample_rows(np.zeros(0, int), np.random.PCG64(1)).shape == (0, 3)
    for direction in ([1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, -1], [2, -1, 3]):
        law = marginal_law(family, rows, column[2], direction)
        assert stats.kstest(draws @ direction, law.cdf).pvalue > 1e-4
        # control: the law of a slot with one row more
        other = marginal_law(family, [*rows, [9, -9, 9]], column[2], direction)
        assert stats.kstest(draws @ direction, other.cdf).pvalue < 1e-6
    for i in range(3):
        centre = marginal_law(family, rows, column[2], np.eye(3)[i]).median()
        assert block.predictive_mean(i)[k] == pytest.approx(centre, rel=1e-9)


# ------------------------------------------------------------------ drift and conditioning
def noisy_mixture(family, kind, seed, n=1200, d=6):
    """Rows that are hard on the statistics, and a mixture whose prior alone moves them."""
    rng = np.random.default_rng(seed)
    hyper = random_rows(family, 1, rng, d)[2]
    values = rng.normal(size=(n, d))
    if kind == "singular":  # two directions hardly vary at all, and the prior is weak there
        values[:, 4] = values[:, 0] + values[:, 1]
        values[:, 5] = values[:, 2] - 1e-4 * values[:, 5]
        if family == "multivariate_normal":
            hyper["scale0"] = 1e-4 * np.eye(d)
    elif kind == "far":
        values += 1000.0
    elif kind == "outliers":
        values[:5] *= 1e5
    elif kind == "constant":
        values[:] = values[0]
    table = Table(["f4"] * d, [0] * d)
    table.append(list(np.float32(values.T)))
    bit_generator = np.random.PCG64(seed)
    block = FAMILIES[family](table, range(d), [hyper_vector(family, hyper)])
    subsample = Subsample(n, "random", bit_generator)
    return Mixture(table, [block], PitmanYor(3.0, 0.2), subsample), bit_generator


@every_family
@pytest.mark.parametrize("kind", ["plain", "singular", "far", "outliers", "constant"])
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_statistics_after_many_moves(family, kind, beta):
    """100,000 removes and inserts: statistics equal those made in one pass."""
    mixture, bit_generator = noisy_mixture(family, kind, 15)
    n, stop = mixture.table.n_rows, 100_000 + mixture.table.n_rows
    knots = np.array([[0, 0], [n, n], [stop, n]])
    churn([mixture], mixture.subsample, bit_generator, knots, 0, stop, beta)
    mixture.validate()
    (block,) = mixture.blocks
    rebuilt = block.spare(block.n_slots)
    rebuilt.build(np.arange(n), mixture.get_labels(), block.n_slots)
    largest = max(1.0, np.abs([block.table.column(j) for j in range(6)]).max())
    kept, fresh = statistics(block), statistics(rebuilt)
    for name, value in fresh.items():
        # squares of the largest cells cancel in the scatters
        scale = largest**2 if name in ("scatter", "squares") else largest
        np.testing.assert_allclose(kept[name], value, rtol=2e-9, atol=1e-9 * scale)
    if kind == "outliers":
        return
    np.testing.assert_allclose(block.log_marginals(), rebuilt.log_marginals(), rtol=1e-6, atol=1e-4)
    for row in (0, 999):
        tolerance = 2e-2 if kind == "singular" else 2e-3
        np.testing.assert_allclose(
            block.row_scores(row), rebuilt.row_scores(row), rtol=1e-4, atol=tolerance
        )
        exact = np.zeros((1, block.n_slots))
        rebuilt.score_rows(block.table, exact, row, row + 1)
        np.testing.assert_allclose(block.row_scores(row), exact[0], rtol=1e-3, atol=tolerance)


def test_a_far_outlier_comes_and_goes():
    """What its squares leave behind in the scatter never makes a matrix indefinite."""
    rng = np.random.default_rng(20)
    d, n = 5, 40
    values = rng.normal(size=(n, d))
    values[-1] = 1e9 * rng.normal(size=d)
    hyper = {"mu0": np.zeros(d), "kappa0": 0.1, "nu0": d + 1.0, "scale0": 0.01 * np.eye(d)}
    column = ("multivariate_normal", np.float32(values).tolist(), hyper)
    (block,) = make_blocks(make_table([column]), [column])
    block.build(np.arange(n), np.zeros(n, int), 1)
    block.remove_row(n - 1, 0)
    assert np.all(np.isfinite(all_scores(block)))
    assert np.isfinite(block.log_marginals()[0])
    for row in range(n - 1):
        block.remove_row(row, 0)
    assert all_scores(block).tobytes() == all_scores(block.spare(1)).tobytes()


def test_ill_conditioned_rows_leave():
    """Few rows far apart under a small prior: a downdate would lose what the prior says."""
    rng = np.random.default_rng(21)
    for d, scale in product((2, 6), (1e-3, 1e-8)):
        values = np.float32(rng.normal(size=(6, d))).astype(float)
        hyper = {"mu0": np.zeros(d), "kappa0": 1e-3, "nu0": d + 1.0, "scale0": scale * np.eye(d)}
        column = ("multivariate_normal", values.tolist(), hyper)
        (block,) = make_blocks(make_table([column]), [column])
        labels = np.zeros(6, int)
        block.build(np.arange(6), labels, 1)
        for row in range(5):
            rest = labels.copy()
            rest[row] = -1
            expected = reference_scores(column, rest, row, 1)[0]
            np.testing.assert_allclose(block.row_score_without(row, 0), expected, rtol=1e-6)
            labels = rest
            block.remove_row(row, 0)
            expected = log_marginal("multivariate_normal", rows_in(column, labels, 0), hyper)
            np.testing.assert_allclose(block.log_marginals()[0], expected, rtol=1e-8)


# ------------------------------------------------------------------ posteriors by enumeration
N = 5
REJECT = 1e-6


def row_column(family):
    values, hyper = ROW_EXAMPLES[family]
    return family, values[:N], hyper


def gappy_column(family):
    values, hyper = EXAMPLES[family]
    return family, [None if i in (1, 3) else v for i, v in enumerate(values[:N])], hyper


COLUMNS = {family: [row_column(family)] for family in NUMBER_ROWS}
COLUMNS |= {
    f"{family} beside a gappy column": [row_column(family), gappy_column("normal")]
    for family in NUMBER_ROWS
}
SCHEDULES = {
    "gibbs": SequentialGibbs(n_sweeps=30),
    "annealed": LinearAnneal(n_sweeps=30, final_sweeps=10),
}


@cache
def posterior(data, discount):
    return enumerate_posterior(COLUMNS[data], 1.0, discount)


def test_the_data_tell_the_families_apart():
    """Controls: the laws of different data differ."""
    laws = [posterior(data, 0.0) for data in COLUMNS]
    assert len({tuple(np.round(list(law.values()), 4)) for law in laws}) == len(laws)


@pytest.mark.parametrize("data", COLUMNS)
@pytest.mark.parametrize("discount", [0.0, 0.3], ids=["DP", "PY"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.few(6)
def test_posterior(data, discount, schedule):
    """Independent chains of 30 sweeps."""
    mixture, bit_generator = make_mixture(COLUMNS[data], 1.0, discount, seed=1)
    segments = joined(SCHEDULES[schedule].path(N))
    counts = end_labels(mixture, bit_generator, segments, 4000)
    mixture.validate()
    check_counts(counts, posterior(data, discount))
    other = enumerate_posterior(COLUMNS[data], 2.0, discount)
    assert count_p_value(counts, other) < REJECT


class Several:
    """Split-merge proposals now and then, blind to the state."""

    def __init__(self):
        self.n = 0

    def sweep(self, state, bit_generator, *, beta=1.0):
        self.n += 1
        if self.n % 19 == 0:
            SplitMerge(n_proposals=5).sweep(state, bit_generator, beta=beta)


@pytest.mark.parametrize("data", COLUMNS)
@pytest.mark.parametrize("discount", [0.0, 0.3], ids=["DP", "PY"])
def test_posterior_with_split_merge(data, discount):
    mixture, bit_generator = make_mixture(COLUMNS[data], 1.0, discount, seed=2)
    segments = segments_of(SCHEDULES["annealed"], N)
    counts = end_labels(mixture, bit_generator, segments, 400, [Several()])
    mixture.validate()
    check_counts(counts, posterior(data, discount))


def test_split_merge_alone_leaves_the_posterior():
    """From exact draws, split-merge without Gibbs stays in the law."""
    data = "multivariate_normal beside a gappy column"
    law = posterior(data, 0.3)
    mixture, bit_generator = make_mixture(COLUMNS[data], 1.0, 0.3, seed=3)
    rng = np.random.default_rng(3)
    states = list(law)
    counts = {}
    for at in rng.choice(len(states), size=1500, p=list(law.values())):
        set_partition(mixture, states[at])
        SplitMerge(n_proposals=20).sweep(mixture, bit_generator)
        labels = canonical_labels(mixture)
        counts[labels] = counts.get(labels, 0) + 1
    check_counts(counts, law)


def canonical_labels(mixture):
    numbers = {}
    return tuple(numbers.setdefault(k, len(numbers)) for k in mixture.get_labels().tolist())


# ------------------------------------------------------------------ known covariances
def known_hyper(form, d, rng):
    """Hyperparameters that go each its own way through the kernels."""
    matrix = random_covariance(d, rng)
    covariance, prior = {
        "isotropic": (0.7 * np.eye(d), 5.0 * np.eye(d)),
        "diagonal": (np.diag(rng.uniform(0.2, 2, d)), np.diag(rng.uniform(1, 9, d))),
        "proportional": (matrix, 3.7 * matrix),
        "white prior": (matrix, 4.0 * np.eye(d)),
        "full": (matrix, 3.0 * random_covariance(d, rng)),
    }[form]
    return {"covariance": covariance, "prior_mean": rng.normal(size=d), "prior_covariance": prior}


@pytest.mark.parametrize("form", ["isotropic", "diagonal", "proportional", "white prior", "full"])
@pytest.mark.parametrize("d", [1, 2, 7, 16])
def test_known_covariances_of_every_form(form, d):
    rng = np.random.default_rng(30 + d)
    _, values, _ = random_rows("known_normal", 40, rng, d)
    column = ("known_normal", values, known_hyper(form, d, rng))
    (block,) = make_blocks(make_table([column]), [column], 20)
    labels = rng.integers(7, size=40)
    block.build(np.arange(40), labels, 20)
    one_by_one = type(block).from_arrays(block.to_arrays(), block.table)
    block.extend_row(0, 1)
    for k in np.unique(labels):
        one_by_one.insert_row(0, k)
    assert_same_arrays(one_by_one.to_arrays(), block.to_arrays())
    assert all_scores(one_by_one).tobytes() == all_scores(block).tobytes()
    for k in np.unique(labels):
        block.remove_row(0, k)
    exact = np.zeros((40, 8))
    block.score_rows(block.table, exact)
    for row in range(0, 40, 9):
        expected = reference_scores(column, labels, row, 8)
        np.testing.assert_allclose(block.row_scores(row)[:8], expected, **SCORES)
        np.testing.assert_allclose(exact[row], expected, rtol=1e-9)
        rest = labels.copy()
        rest[row] = -1
        expected = reference_scores(column, rest, row, 8)[labels[row]]
        np.testing.assert_allclose(block.row_score_without(row, labels[row]), expected, rtol=1e-6)
    expected = [log_marginal("known_normal", rows_in(column, labels, k), column[2]) for k in (0, 1)]
    np.testing.assert_allclose(block.log_marginals()[:2], expected, rtol=1e-9)
    draws = block.sample_rows(np.full(20_000, 2), np.random.PCG64(3))
    direction = rng.normal(size=d)
    law = marginal_law("known_normal", rows_in(column, labels, 2), column[2], direction)
    assert stats.kstest(draws @ direction, law.cdf).pvalue > 1e-4


# ------------------------------------------------------------------ hyperparameters
HYPER_GRIDS = {"kappa0": [0.1, 1.0], "nu0": [1.5, 6.0], "first": [0.2, 2.0], "second": [0.3, 1.5]}


def hyper_options():
    """(grids of the flat vector, list of mappings) of two columns of the multivariate normal."""
    base = ROW_EXAMPLES["multivariate_normal"][1]
    mappings = []
    for kappa0, nu0, first, second in product(*HYPER_GRIDS.values()):
        scale0 = [[first, 0.1], [0.1, second]]
        mappings.append({"mu0": base["mu0"], "kappa0": kappa0, "nu0": nu0, "scale0": scale0})
    parts = [np.array(grid) for grid in HYPER_GRIDS.values()]
    return [None, None, parts[0], parts[1], parts[2], None, parts[3]], mappings


class FromThePrior(FeatureHyperparameters):
    """Control: draws without a look at the data."""

    def sweep(self, state, bit_generator, *, beta=1.0):
        return super().sweep(state, bit_generator, beta=0.0)


@pytest.mark.parametrize("move", [FeatureHyperparameters, FromThePrior])
def test_hyperparameters_are_drawn_from_their_conditionals(move):
    """Chains from exact draws of partition and hyperparameters stay in their joint law."""
    grids, mappings = hyper_options()
    family, values, _ = row_column("multivariate_normal")
    oracle = [(family, values[:4], mappings)]
    law = enumerate_joint(oracle, 1.0, 0.3)
    vectors = [hyper_vector(family, mapping) for mapping in mappings]
    mixture, bit_generator = make_mixture([(family, values[:4], mappings[0])], 1.0, 0.3, seed=5)
    moves = [Gibbs(), move({0: grids})]
    rng = np.random.default_rng(5)
    states, counts = list(law), {}
    (block,) = mixture.blocks
    for at in rng.choice(len(states), size=6000, p=list(law.values())):
        labels, _, _, (index,) = states[at]
        for h, value in enumerate(vectors[index]):
            block.set_hyper(0, h, value)
        block.refresh_all()
        set_partition(mixture, labels)
        for _ in range(2):
            for one in moves:
                one.sweep(mixture, bit_generator)
        index = [tuple(v) for v in vectors].index(tuple(block.get_hyper(0)))
        state = canonical_labels(mixture), 1.0, 0.3, (index,)
        counts[state] = counts.get(state, 0) + 1
    mixture.validate()
    p_values = [count_p_value(counts, law)]
    for position in (0, 3):
        p_values.append(count_p_value(_summed(counts, position), marginal(law, position)))
    if move is FromThePrior:
        assert min(p_values) < REJECT
    else:
        assert min(p_values) > 1e-4 / 3


def _summed(counts, position):
    out = {}
    for state, count in counts.items():
        out[state[position]] = out.get(state[position], 0) + count
    return out


def test_hyperparameters_follow_long_sweeps():
    """After many sweeps of a large block, factors are those of the scatters."""
    column, block, labels = filled("multivariate_normal", d=5)
    table = block.table
    grids = FeatureHyperparameters({0: FAMILIES["multivariate_normal"].grids(table, np.arange(5))})
    bit_generator = np.random.PCG64(8)
    for _ in range(60):
        block.draw_hyper(0, *grids.grids[0], 1.0, bit_generator)
        block.refresh_all()
    hyper = hyper_mapping("multivariate_normal", block.get_hyper(0))
    fresh = FAMILIES["multivariate_normal"](table, range(5), [block.get_hyper(0)], N_SLOTS)
    fresh.build(np.arange(N_ROWS), labels, N_SLOTS)
    np.testing.assert_allclose(block.log_marginals(), fresh.log_marginals(), rtol=1e-8, atol=1e-8)
    expected = log_marginal("multivariate_normal", rows_in(column, labels, 0), hyper)
    assert block.log_marginals()[0] == pytest.approx(expected, rel=1e-8)
    assert np.allclose(
        hyper["scale0"] - np.diag(np.diag(hyper["scale0"])),
        column[2]["scale0"] - np.diag(np.diag(column[2]["scale0"])),
    )


def test_random_covariances_are_covariances():
    matrix = random_covariance(4, np.random.default_rng(1))
    assert np.linalg.eigvalsh(matrix).min() > 0
