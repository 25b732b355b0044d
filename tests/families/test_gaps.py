"""Rows with missing cells in the families of whole rows: scores, fills, chains and queries.

Random tests: fixed seeds, one try; a goodness-of-fit test alarms falsely once in 10,000.
"""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from oracles.enumeration import canonical, normalised
from oracles.gappy_tables import GAPPY, LEVEL, NowAndThen, p_values, table_of
from oracles.gaps_reference import (
    log_weights_of,
    observed_columns,
    observed_log_marginal,
    observed_log_predictive,
)
from oracles.mixtures import (
    NUMBER_ROWS,
    hyper_vector,
    random_covariance,
    random_rows,
    run_segments,
    segments_of,
)
from oracles.reference import ROW_EXAMPLES, log_marginal, log_predictive
from skanneal.families import FAMILIES
from skanneal.moves import FeatureHyperparameters, Permutation, SplitMerge
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import LinearAnneal
from skanneal.states import Mixture, Subsample, logs_without

every_family = pytest.mark.parametrize("family", NUMBER_ROWS)
N_SLOTS = 20


def with_gaps(rows, rng, share):
    """The rows with a share of their cells missing."""
    return [tuple(None if rng.random() < share else cell for cell in row) for row in rows]


def block_of(family, rows, queries, hyper):
    """A block whose slots hold complete rows, slot 3 none, reading queries with gaps."""
    d, rng = len(rows[0]), np.random.default_rng(1)
    labels = rng.integers(N_SLOTS, size=len(rows))
    labels[labels == 3] = 4
    block = FAMILIES[family](table_of(rows), range(d), [hyper_vector(family, hyper)], N_SLOTS)
    block.build(np.arange(len(rows)), labels, N_SLOTS)
    block.bind(table_of(queries))
    members = [[rows[i] for i in np.flatnonzero(labels == k)] for k in range(N_SLOTS)]
    return block, members


FORMS = {
    "isotropic": lambda d, rng: (0.7 * np.eye(d), 5.0 * np.eye(d)),
    "diagonal": lambda d, rng: (np.diag(rng.uniform(0.2, 2, d)), np.diag(rng.uniform(1, 9, d))),
    "white prior": lambda d, rng: (random_covariance(d, rng), 4.0 * np.eye(d)),
    "proportional": lambda d, rng: (np.diag(np.arange(1.0, d + 1)), np.diag(np.arange(3.0, d + 3))),
}


def hyper_of(family, form, d, rng, hyper):
    if form is not None:
        covariance, prior = FORMS[form](d, rng)
        hyper = hyper | {"covariance": covariance, "prior_covariance": prior}
    return hyper


CASES = [(family, d, None) for family in NUMBER_ROWS for d in (1, 3, 8)]
CASES += [("known_normal", d, form) for d in (9,) for form in FORMS]


@pytest.mark.parametrize(("family", "d", "form"), CASES)
def test_scores_are_those_of_the_observed_cells(family, d, form):
    rng = np.random.default_rng(d)
    _, rows, hyper = random_rows(family, 70, rng, d)
    hyper = hyper_of(family, form, d, rng, hyper)
    queries = with_gaps(random_rows(family, 4, rng, d)[1], rng, 0.4)
    queries += [(None,) * d, (*rows[0][:-1], None)]
    block, members = block_of(family, rows, queries, hyper)
    out = np.zeros((len(queries), N_SLOTS))
    block.score_rows(block.table, out)
    for i, row in enumerate(queries):
        expected = [observed_log_predictive(family, row, of, hyper) for of in members[:6]]
        np.testing.assert_allclose(out[i, :6], expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(block.row_scores(i)[:6], expected, rtol=2e-5, atol=1e-4)


@pytest.mark.parametrize(("family", "d", "form"), CASES)
@pytest.mark.few(2)
def test_row_steps_leave_the_row_and_its_fills_out(family, d, form):
    """What a slot is drawn from, of its own row: the control, with the fill, is another number.

    Of two rows, the other one's mean alone is left; far fills have taken the place of digits."""
    rng = np.random.default_rng(d)
    _, rows, hyper = random_rows(family, 40, rng, d)
    hyper = hyper_of(family, form, d, rng, hyper)
    rows = np.float32(rows).astype(float)
    gaps = rng.random(rows.shape) < 0.4
    gaps[0], gaps[1] = True, False
    fills = rows[gaps] + np.where(rng.random(gaps.sum()) < 0.1, 200.0, 0.0)
    rows[gaps] = fills = np.float32(fills)
    shown = [tuple(None if g else x for x, g in zip(*of)) for of in zip(rows.tolist(), gaps)]
    mixture, _ = mixture_of(family, shown, hyper=hyper)
    mixture.table.set_fills(fills)
    mixture.subsample.fill()
    labels = np.minimum(np.arange(40) // 2 % 9, 4)
    mixture.replace(np.arange(40), labels)
    (block,) = mixture.blocks
    for i in range(0, 40, 3):
        logs, corrections = block.row_proposals(i, labels[i])
        assert not corrections.any()
        for k in range(5):
            of = [rows[j].tolist() for j in np.flatnonzero(labels == k) if j != i]
            expected = observed_log_predictive(family, shown[i], of, hyper)
            assert logs[k] == pytest.approx(expected, rel=1e-4, abs=2e-3)
        if 0 < gaps[i].sum() < d:
            assert abs(block.row_score_without(i, labels[i]) - logs[labels[i]]) > 1e-2


@every_family
def test_the_observed_density_integrates_the_missing_cell_out(family):
    """Of the oracle: the law of fewer columns is the integral over the others."""
    values, hyper = ROW_EXAMPLES[family]
    grid = np.sinh(np.linspace(-13, 13, 4001))
    joint = [log_predictive(family, (0.4, x), values[:3], hyper) for x in grid]
    expected = np.log(np.trapezoid(np.exp(joint), grid))
    shown = observed_log_predictive(family, (0.4, None), values[:3], hyper)
    assert shown == pytest.approx(expected, abs=1e-4)


@every_family
@pytest.mark.parametrize("d", [2, 5])
def test_conditionals_of_missing_cells(family, d):
    """Each cell's density given the others, and the law of a missing one."""
    rng = np.random.default_rng(3)
    _, rows, hyper = random_rows(family, 60, rng, d)
    row = list(random_rows(family, 1, rng, d)[1][0])
    if d > 2:
        row[3] = None
    grid = np.float64(np.float32(np.sinh(np.linspace(-11, 11, 1501))))
    asked = [(*row[:1], float(x), *row[2:]) for x in grid]
    block, members = block_of(family, rows, [*asked, (*row[:1], None, *row[2:])], hyper)
    cells = np.zeros((len(grid), N_SLOTS))
    block.score_feature(1, block.table, cells, 0, len(grid))
    law = block.conditionals(1, block.table, [len(grid)], N_SLOTS)
    for k in (0, 3, 7):
        whole = [observed_log_predictive(family, x, members[k], hyper) for x in asked[::50]]
        rest = observed_log_predictive(family, (*row[:1], None, *row[2:]), members[k], hyper)
        np.testing.assert_allclose(cells[::50, k], np.array(whole) - rest, rtol=1e-8, atol=1e-8)
        centre, square, degrees = (a[0, k] for a in law)
        student = stats.norm() if np.isinf(degrees) else stats.t(degrees)
        expected = student.logpdf((grid - centre) / np.sqrt(square)) - 0.5 * np.log(square)
        np.testing.assert_allclose(cells[:, k], expected, rtol=1e-8, atol=1e-8)
    gone = np.zeros((1, N_SLOTS))  # of a missing cell there is nothing to say
    block.score_feature(1, block.table, gone, len(grid), len(grid) + 1)
    assert not gone.any()


@every_family
@pytest.mark.parametrize("given", [(0.4, None, -0.2), (None, None, -0.2), (None, None, None)])
def test_missing_cells_are_drawn_from_their_law(family, given):
    """Each alone by Kolmogorov and Smirnov, and a projection of two."""
    rng = np.random.default_rng(4)
    _, rows, hyper = random_rows(family, 60, rng, 3)
    block, _ = block_of(family, rows, [given], hyper)
    n, k = 4000, 2
    draws = block.sample_gaps(block.table, np.zeros(n, int), np.full(n, k), np.random.PCG64(5))
    missing = [j for j in range(3) if given[j] is None]
    for j in missing:
        centre, square, degrees = (a[0, k] for a in block.conditionals(j, block.table, [0], 5))
        law = stats.norm() if np.isinf(degrees) else stats.t(degrees)
        scaled = (draws[:, j] - centre) / np.sqrt(square)
        assert stats.kstest(scaled, law.cdf).pvalue > 1e-4
    for j in observed_columns(given):
        assert (draws[:, j] == np.float32(given[j])).all()
    if len(missing) > 1:  # the second given the first
        first, second = missing[:2]
        filled = [tuple(row[:second]) + (None,) + given[second + 1 :] for row in draws.tolist()]
        block.bind(table_of(filled))
        at = block.conditionals(second, block.table, range(n), 5)
        centre, square, degrees = (a[:, k] for a in at)
        scaled = (draws[:, second] - centre) / np.sqrt(square)
        law = stats.norm() if np.isinf(degrees[0]) else stats.t(degrees[0])
        assert stats.kstest(scaled, law.cdf).pvalue > 1e-4


# ---- tables and states ---------------------------------------------------------------------------


def test_tables_with_fills():
    rows = [(1.0, None, 3.0), (4.0, 5.0, 6.0), (None, None, 9.0), (None, 2.0, None)]
    table = table_of(rows)
    filled = table.with_fills([0, 1])
    assert table.fills() is None and table.with_fills([]) is table
    assert filled.fills().tolist() == [0.0] * 4  # of the last column none
    filled.set_fills([1.5, 2.5, 3.5, 4.5])
    other = filled.with_fills([0, 1])
    assert other.fills().tolist() == [0.0] * 4
    assert filled.fills().tolist() == [1.5, 2.5, 3.5, 4.5]
    for j in range(3):  # what is asked of a table is what the user gave
        np.testing.assert_array_equal(filled.column(j), table.column(j))
        np.testing.assert_array_equal(filled.take([2, 0]).column(j), table.take([2, 0]).column(j))
        assert filled.missing(j).tolist() == table.missing(j).tolist()
    with pytest.raises(ValueError, match="takes no further rows"):
        filled.append([np.zeros(1, np.float32)] * 3)


@every_family
def test_rows_left_out(family):
    """Each row's observed cells given the others' labels and fills; the state stays."""
    mixture, bit_generator = mixture_of(family, seed=4)
    run_segments(mixture, bit_generator, annealed(len(GAPPY)))
    labels, fills = mixture.get_labels(), mixture.table.fills()
    before = mixture.to_arrays()
    shown = logs_without(mixture, np.arange(len(GAPPY)))
    filled = np.array(GAPPY, dtype=float)
    filled[np.isnan(filled)] = fills
    for i, row in enumerate(GAPPY):
        others = [j for j in range(len(GAPPY)) if j != i]
        slots = sorted({int(labels[j]) for j in others})
        of = [[filled[j].tolist() for j in others if labels[j] == k] for k in slots] + [[]]
        weights = [len(rows) - 0.3 for rows in of[:-1]] + [1.0 + 0.3 * len(slots)]
        hyper = hypers_of(family)[0]
        logs = [observed_log_predictive(family, row, rows, hyper) for rows in of]
        expected = logsumexp(np.log(weights) + logs) - np.log(len(others) + 1.0)
        assert shown[i] == pytest.approx(expected, abs=1e-4)
    before = {name: value for name, value in before.items() if not name.endswith("/updates")}
    for name, value in before.items():
        np.testing.assert_allclose(mixture.to_arrays()[name], value, rtol=1e-7, atol=1e-9)


GRIDS = {
    "multivariate_normal": [
        {"kappa0": kappa0, "scale0": [[first, 0.1], [0.1, 0.6]]}
        for kappa0 in (0.1, 1.0)
        for first in (0.2, 2.0)
    ],
    "known_normal": [{"covariance": [[0.3, 0.2], [0.2, 0.25]]}],
}


def hypers_of(family):
    return [ROW_EXAMPLES[family][1] | one for one in GRIDS[family]]


@cache
def law_of(family, discount=0.3):
    """Over partitions and the hyperparameters' indices."""
    return normalised(log_weights_of(family, GAPPY, hypers_of(family), discount))


def mixture_of(family, rows=GAPPY, *, seed=0, discount=0.3, hyper=None):
    bit_generator = np.random.PCG64(seed)
    table = table_of(rows)
    hyper = hyper_vector(family, hypers_of(family)[0] if hyper is None else hyper)
    block = FAMILIES[family](table, range(len(rows[0])), [hyper])
    subsample = Subsample(table.n_rows, "random", bit_generator)
    return Mixture(table, [block], PitmanYor(1.0, discount), subsample), bit_generator


class KeptFills:
    """Control: the fills that there were at first come back."""

    def sweep(self, state, bit_generator, *, beta=1.0):
        self.put(state, np.zeros(len(state.table.fills())))

    def put(self, state, fills):
        rows = state.subsample.rows()
        labels = state.labels_of(rows)
        state.table.set_fills(fills)
        state.replace(rows, labels)


class FillsFromThePrior(KeptFills):
    """Control: what is missing is drawn without a look at the cluster."""

    new = None

    def sweep(self, state, bit_generator, *, beta=1.0):
        if self.new is None:
            self.new = state.blocks[0].spare(1)
        self.new.follow(state.blocks[0])
        new, table = self.new, state.table
        rows = np.arange(table.n_rows)
        drawn = new.sample_gaps(table, rows, np.zeros(len(rows), int), bit_generator)
        gaps = np.column_stack([table.missing(j) for j in range(table.n_columns)])
        self.put(state, drawn[gaps])


def grids_of(family):
    if family == "known_normal":
        return [None] * 8
    return [None, None, np.array([0.1, 1.0]), None, np.array([0.2, 2.0]), None, None]


def index_of(family, block):
    vectors = [tuple(hyper_vector(family, hyper)) for hyper in hypers_of(family)]
    return vectors.index(tuple(block.get_hyper(0)))


def counts_of(family, n_chains, moves, schedule, seed=1):
    """Counts of (partition, hyperparameters) at the ends of independent chains from nothing."""
    mixture, bit_generator = mixture_of(family, seed=seed)
    segments = schedule(len(GAPPY))
    counts = Counter()
    for _ in range(n_chains):
        while mixture.subsample.size:
            mixture.remove_row(mixture.subsample.leave_row(bit_generator))
        run_segments(mixture, bit_generator, segments, moves)
        partition = canonical(mixture.get_labels().tolist())
        counts[partition, index_of(family, mixture.blocks[0])] += 1
    mixture.validate()
    return counts


def hyperparameters(family):
    return [FeatureHyperparameters({0: grids_of(family)})]


def all_moves():
    return [
        NowAndThen(SplitMerge(n_proposals=5), 7),
        NowAndThen(Permutation("uniform", "exact"), 11),
    ]


def annealed(n_rows):
    return segments_of(LinearAnneal(n_sweeps=25, final_sweeps=15), n_rows)


def test_the_oracle_does_not_hang_on_its_nodes():
    """Two rows with gaps and their densities in the other order; one filled in closed form."""
    hyper = hypers_of("multivariate_normal")[1]
    there = observed_log_marginal("multivariate_normal", GAPPY, hyper)
    back = observed_log_marginal("multivariate_normal", GAPPY[::-1], hyper)
    assert there == pytest.approx(back, abs=1e-6)
    complete = [(0.5, 1.0), (-1.0, 0.0)]
    expected = log_marginal("multivariate_normal", complete, hyper)
    assert observed_log_marginal("multivariate_normal", complete, hyper) == expected


def tried(family, n_chains, moves, seed):
    """The least p-value of the partition, the hyperparameters, and both, times three."""
    counts = counts_of(family, n_chains, [*moves, *hyperparameters(family)], annealed, seed)
    return 3 * min(p_values(counts, law_of(family)))


@every_family
@pytest.mark.few(1)
def test_posterior(family):
    """All moves together, hyperparameters inferred, have the law of the observed cells."""
    assert tried(family, 400, all_moves(), 2) > LEVEL


@every_family
@pytest.mark.few(1)
def test_fills_that_are_not_redrawn_show(family):
    assert tried(family, 400, [KeptFills()], 3) < LEVEL


@pytest.mark.slow
@every_family
@pytest.mark.parametrize("moves", [(), all_moves()], ids=["gibbs", "all"])
def test_posterior_at_length(family, moves):
    assert tried(family, 10_000, moves, 4) > LEVEL


@pytest.mark.slow
@every_family
def test_fills_from_the_prior_show(family):
    assert tried(family, 4000, [FillsFromThePrior()], 5) < LEVEL
