"""Rows with heavy tails: scores, weights, queries and chains against the formulas.

Random tests: fixed seeds, one try; a goodness-of-fit test alarms falsely once in 10,000.
"""

from collections import Counter
from functools import cache, partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from oracles import t_reference as oracle
from oracles.bits import assert_same_arrays
from oracles.enumeration import canonical, clusters, log_eppf, normalised, partitions
from oracles.gappy_tables import GAPPY as FIVE
from oracles.gappy_tables import LEVEL, NowAndThen, p_values, table_of
from oracles.mixtures import random_covariance, run_segments, segments_of
from skanneal.families import FAMILIES
from skanneal.families._forms import flatten
from skanneal.moves import FeatureHyperparameters, Permutation, SplitMerge
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import LinearAnneal
from skanneal.states import Mixture, Subsample, logs_without

FAMILY = FAMILIES["multivariate_t"]
N = 40
FEW = [FIVE[0], FIVE[1], FIVE[2], (3.5, -4.0), FIVE[4]]  # one row with a gap, one of gaps


def hyper_of(d, degrees=4.0, seed=0, kappa0=0.4):
    rng = np.random.default_rng(seed)
    return {
        "mu0": rng.normal(size=d),
        "kappa0": kappa0,
        "nu0": d - 1 + 2.5,
        "scale0": random_covariance(d, rng),
        "degrees": degrees,
    }


def mixture_of(rows, hyper, seed=0, discount=0.3):
    table, bits = table_of(rows), np.random.PCG64(seed)
    vector = flatten(FAMILY.forms, [hyper[name] for name in FAMILY.coordinate_names], len(rows[0]))
    block = FAMILY(table, range(len(rows[0])), [vector])
    subsample = Subsample(table.n_rows, "random", bits)
    return Mixture(table, [block], PitmanYor(1.0, discount), subsample), bits


def filled(d=3, *, n=N, degrees=4.0, seed=1, n_slots=4, gaps=()):
    """(mixture, rows, weights, labels): slot 3 is empty; weights vary much."""
    rng = np.random.default_rng(seed)
    hyper = hyper_of(d, degrees)
    rows = np.float32(rng.normal(size=(n, d))).astype(float).tolist()
    shown = [
        tuple(None if (i, j) in gaps else x for j, x in enumerate(r)) for i, r in enumerate(rows)
    ]
    mixture, bits = mixture_of(shown, hyper)
    weights = np.float32(rng.gamma(1.0, size=n) + 1e-3).astype(float)
    fills = mixture.table.fills()
    fills[: len(gaps)] = [rows[i][j] for i, j in sorted(gaps)]
    fills[len(fills) - n :] = weights
    mixture.table.set_fills(fills)
    labels = rng.integers(n_slots - 1, size=n)
    mixture.subsample.fill()
    mixture.replace(np.arange(n), labels)
    return mixture, rows, weights, labels, hyper


def within(rows, weights, labels, k, without=None):
    at = [i for i in np.flatnonzero(labels == k) if i != without]
    return [rows[i] for i in at], weights[at]


# ---- scores ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 3, 9])
@pytest.mark.parametrize("degrees", [1.0, 4.0, 40.0])
def test_the_weight_of_a_row_is_integrated_out(d, degrees):
    """In queries to 1e-9, of complete rows to 1e-7, and to 1e-5 in row steps: near and far, with
    gaps and few rows in a slot."""
    mixture, rows, weights, labels, hyper = filled(d, degrees=degrees)
    rng = np.random.default_rng(5)
    asked = [tuple(rng.normal(size=d) * size) for size in (0.1, 1.0, 30.0, 1e4)]
    if d > 1:
        asked += [(*row[:-1], None) for row in asked[:3]] + [(None, *asked[1][1:])]
    asked = [tuple(None if x is None else float(np.float32(x)) for x in row) for row in asked]
    (block,) = mixture.blocks
    queries = table_of([*asked, (None,) * d])
    out = np.zeros((len(asked) + 1, 4))
    block.score_rows(queries, out)
    assert not out[-1].any()
    block.bind(queries)
    for i, row in enumerate(asked):
        expected = [
            oracle.log_predictive(row, *within(rows, weights, labels, k), hyper) for k in range(4)
        ]
        near = 1e-9 if None in row else 1e-7
        np.testing.assert_allclose(out[i], expected, rtol=near, atol=near)
        np.testing.assert_allclose(block.row_scores(i)[:4], expected, rtol=2e-5, atol=2e-5)


def test_the_oracle_does_not_hang_on_its_nodes():
    hyper = hyper_of(2, 2.0)
    one = oracle.log_predictive((0.4, 9.0), [(0.1, 0.2)], [0.3], hyper)
    other = oracle.log_predictive((0.4, 9.0), [(0.1, 0.2)], [0.3], hyper, n_nodes=1217)
    assert one == pytest.approx(other, abs=1e-10)
    whole = [(0.1, 0.2), (2.0, -1.0)]
    first = oracle.log_marginal(whole[:1], hyper)
    terms = [
        oracle.log_marginal_given(whole[:1], [w], hyper)
        + oracle.log_weight_density(np.log(w), 2.0)
        + oracle.log_predictive(whole[1], whole[:1], [w], hyper)
        for w in np.exp(oracle.LOGS)
    ]
    both = logsumexp(terms) + np.log(oracle.STEP)
    assert oracle.log_marginal(whole, hyper) == pytest.approx(both, abs=1e-4)
    assert first == pytest.approx(oracle.log_predictive(whole[0], [], np.empty(0), hyper), abs=1e-4)
    grid = np.sinh(np.linspace(-13, 13, 2001))
    joint = [oracle.log_predictive_given((0.4, x), 0.7, whole, [0.3, 2.0], hyper) for x in grid]
    part = oracle.log_predictive_given((0.4, None), 0.7, whole, [0.3, 2.0], hyper)
    assert np.log(np.trapezoid(np.exp(joint), grid)) == pytest.approx(part, abs=1e-4)


@pytest.mark.parametrize("d", [1, 3, 8])
def test_given_the_weights(d):
    """Marginals, scores of rows with their weights, and those without the row."""
    mixture, rows, weights, labels, hyper = filled(d)
    (block,) = mixture.blocks
    for k in range(4):
        own, w = within(rows, weights, labels, k)
        expected = oracle.log_marginal_given(own, w, hyper)
        expected += (oracle.log_weight_density(np.log(w), 4.0) - np.log(w)).sum()
        assert block.log_marginals()[k] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    for i in range(0, N, 7):
        given = [
            oracle.log_predictive_given(
                rows[i], weights[i], *within(rows, weights, labels, k), hyper
            )
            for k in range(4)
        ]
        np.testing.assert_allclose(block.row_scores(i)[:4], given, rtol=1e-5, atol=2e-5)
        rest = within(rows, weights, labels, labels[i], without=i)
        expected = oracle.log_predictive_given(rows[i], weights[i], *rest, hyper)
        assert block.row_score_without(i, labels[i]) == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("d", [1, 3, 8])
@pytest.mark.parametrize("degrees", [1.0, 4.0, 40.0])
@pytest.mark.few(2)
def test_row_steps_propose_and_correct(d, degrees):
    """Corrected, a proposal is the density with the weight summed out; it is close to it as it is.

    The control, slots that still hold the row, is another number."""
    gaps = ((0, 0), (2, d - 1)) if d > 1 else ()
    mixture, rows, weights, labels, hyper = filled(d, degrees=degrees, gaps=gaps)
    (block,) = mixture.blocks
    far = []
    for i in range(0, N, 2):
        row = tuple(None if (i, j) in gaps else x for j, x in enumerate(rows[i]))
        logs, corrections = block.row_proposals(i, labels[i])
        expected = [
            oracle.log_predictive(row, *within(rows, weights, labels, k, without=i), hyper)
            for k in range(4)
        ]
        np.testing.assert_allclose(logs[:4] + corrections[:4], expected, rtol=2e-5, atol=1e-4)
        assert np.abs(corrections[:4]).max() < 0.5
        held = oracle.log_predictive(row, *within(rows, weights, labels, labels[i]), hyper)
        far.append(abs(held - expected[labels[i]]))
    assert max(far) > 0.1


@pytest.mark.parametrize("size", [1e3, 1e9, 1e30])
def test_proposals_of_far_rows(size):
    mixture, *_ = filled(3)
    (block,) = mixture.blocks
    block.bind(table_of([(size, -size, 0.5 * size)]))
    logs, corrections = block.row_proposals(0)
    assert np.isfinite(logs).all() and np.isfinite(corrections).all()


def test_a_row_alone_without_itself():
    mixture, rows, weights, labels, hyper = filled(3)
    mixture.remove_row(7)
    mixture.insert_row(7, mixture.open_slot)
    expected = oracle.log_predictive_given(rows[7], weights[7], [], np.empty(0), hyper)
    (block,) = mixture.blocks
    assert block.row_score_without(7, mixture.get_labels()[7]) == pytest.approx(expected, abs=2e-5)


def test_rows_left_out():
    """What summaries ask of each row: its weight is integrated out, the state stays."""
    mixture, rows, weights, labels, hyper = filled(2, n=12)
    before = mixture.to_arrays()
    shown = logs_without(mixture, np.arange(12))
    for i in range(12):
        of = [within(rows, weights, labels, k, without=i) for k in range(4)]
        logs = [oracle.log_predictive(rows[i], *own, hyper) for own in of]
        sizes = [len(own) - 0.3 for own, _ in of[:3]]
        weighed = np.log([*sizes, 1.0 + 0.9]) + logs
        assert shown[i] == pytest.approx(logsumexp(weighed) - np.log(12.0), abs=1e-4)
    for name, value in mixture.to_arrays().items():
        if not name.endswith("updates"):
            np.testing.assert_allclose(value, before[name], rtol=1e-7, atol=1e-9)


# ---- draws -------------------------------------------------------------------------------------


def cdf_of_weight(row, rows, weights, hyper):
    logs = np.linspace(-60.0, 6.0, 8000)
    terms = oracle.log_predictive_given(row, np.exp(logs), rows, weights, hyper)
    mass = np.exp(terms + oracle.log_weight_density(logs, hyper["degrees"]) - terms.max())
    cumulative = np.cumsum(mass)
    return lambda w: np.interp(np.log(w), logs, cumulative / cumulative[-1])


@pytest.mark.parametrize("far", [1.0, 40.0])
@pytest.mark.parametrize("gap", [False, True])
def test_weights_are_drawn_from_their_law(far, gap):
    """By the row step's own draw: Kolmogorov and Smirnov, and a control one degree away."""
    gaps = ((0, 1),) if gap else ()
    mixture, rows, weights, labels, hyper = filled(3, gaps=gaps)
    row = tuple(None if gap and j == 1 else x for j, x in enumerate(rows[0]))
    bits, drawn = np.random.PCG64(3), []
    for _ in range(3000):
        mixture.draw_fills([0], bits)
        drawn.append(mixture.table.fills()[-N])
    rest = within(rows, weights, labels, labels[0], without=0)
    law = cdf_of_weight(row, *rest, hyper)
    assert stats.kstest(drawn, law).pvalue > 1e-4
    assert stats.kstest(drawn, cdf_of_weight(row, *rest, hyper | {"degrees": 9.0})).pvalue < 1e-6


def test_a_row_that_lacks_everything_has_a_weight_of_the_prior():
    gaps = ((0, 0), (0, 1))
    mixture, *_ = filled(2, gaps=gaps)
    bits, drawn = np.random.PCG64(3), []
    for _ in range(2000):
        mixture.draw_fills([0], bits)
        drawn.append(mixture.table.fills()[-N])
    assert stats.kstest(drawn, stats.gamma(2.0, scale=0.5).cdf).pvalue > 1e-4


def test_queries_of_missing_cells():
    """Means and variances of cells, rows and cells that are drawn: by integration."""
    mixture, rows, weights, labels, hyper = filled(2, n=60, degrees=5.0)
    (block,) = mixture.blocks
    queries = table_of([(0.75, None)])
    grid = np.sinh(np.linspace(-9, 9, 401))
    for k in (0, 3):
        own = within(rows, weights, labels, k)
        logs = np.array([oracle.log_predictive((0.75, x), *own, hyper, 600) for x in grid])
        density = np.exp(logs - logs.max())
        density /= np.trapezoid(density, grid)
        mean = np.trapezoid(grid * density, grid)
        centre, square, degrees = (a[0, k] for a in block.conditionals(1, queries, [0], 4))
        assert centre == pytest.approx(mean, abs=2e-3)
        if k == 0:
            variance = np.trapezoid((grid - mean) ** 2 * density, grid)
            assert square * degrees / (degrees - 2) == pytest.approx(variance, rel=5e-3)
        drawn = block.sample_gaps(
            queries, np.zeros(3000, int), np.full(3000, k), np.random.PCG64(1)
        )
        cumulative = np.concatenate(
            [[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))]
        )
        assert stats.kstest(drawn[:, 1], partial(np.interp, xp=grid, fp=cumulative)).pvalue > 1e-4
        asked = table_of([(0.75, float(np.float32(x))) for x in grid[::50]])
        cells = np.zeros((len(grid[::50]), 4))
        block.score_feature(1, asked, cells, 0, len(cells))
        known = oracle.log_predictive((0.75, None), *own, hyper)
        whole = [
            oracle.log_predictive((0.75, float(np.float32(x))), *own, hyper) for x in grid[::50]
        ]
        np.testing.assert_allclose(cells[:, k], np.array(whole) - known, rtol=1e-8, atol=1e-8)
        first = np.array([oracle.log_predictive((x, None), *own, hyper, 600) for x in grid])
        density = np.exp(first - first.max())
        cumulative = np.concatenate(
            [[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))]
        )
        drawn = block.sample_rows(np.full(4000, k), np.random.PCG64(2))[:, 0]
        cumulative /= cumulative[-1]
        assert stats.kstest(drawn, partial(np.interp, xp=grid, fp=cumulative)).pvalue > 1e-4


# ---- the state ---------------------------------------------------------------------------------


def test_statistics_after_many_moves():
    rng = np.random.default_rng(2)
    rows = [tuple(row) for row in np.float32(rng.standard_t(2.0, size=(300, 4))).astype(float)]
    mixture, bits = mixture_of(rows, hyper_of(4))
    columns = FAMILY.grids(mixture.table, np.arange(4))
    moves = [SplitMerge(), Permutation("uniform", "exact"), FeatureHyperparameters({0: columns})]
    run_segments(mixture, bits, segments_of(LinearAnneal(n_sweeps=12), 300), moves)
    mixture.validate()
    (block,) = mixture.blocks
    again = Mixture.from_arrays(mixture.to_arrays(), table_of(rows), mixture.subsample)
    assert_same_arrays(again.to_arrays(), mixture.to_arrays())
    rebuilt = block.spare(block.n_slots)
    rebuilt.build(np.arange(300), mixture.get_labels(), block.n_slots)
    np.testing.assert_allclose(block.log_marginals(), rebuilt.log_marginals(), rtol=1e-9)
    for name in ("total", "logs", "mean", "scatter"):
        kept, fresh = block.to_arrays()[name], rebuilt.to_arrays()[name]
        np.testing.assert_allclose(kept, fresh, rtol=1e-8, atol=1e-7)
    for row in range(0, 300, 50):
        np.testing.assert_allclose(
            block.row_scores(row), rebuilt.row_scores(row), rtol=1e-5, atol=1e-4
        )


def test_grid_scores():
    """Given the weights, of each coordinate; a constant is free."""
    mixture, rows, weights, labels, hyper = filled(3)
    (block,) = mixture.blocks
    vector = block.get_hyper(0)
    for h in range(len(vector)):
        grid = vector[h] * np.array([1.02, 1.0, 0.97])
        expected = []
        for value in grid:
            fresh = block.spare(block.n_slots)
            for place, own in enumerate(vector):
                fresh.set_hyper(0, place, value if place == h else own)
            fresh.refresh_all()
            fresh.build(np.arange(N), labels, block.n_slots)
            expected.append(fresh.log_marginals().sum())
        shown = block.grid_scores(0, h, grid)
        np.testing.assert_allclose(
            shown - shown[1], np.array(expected) - expected[1], rtol=1e-8, atol=1e-8
        )


# ---- the posterior by enumeration --------------------------------------------------------------

KAPPAS, DEGREES = (0.1, 1.0), (2.0, 8.0)


def hypers():
    return [hyper_of(2, degrees, 3, kappa0) for kappa0 in KAPPAS for degrees in DEGREES]


@cache
def law_of():
    """Over partitions and the hyperparameters' indices, weights and the missing cell summed out."""

    @cache
    def score(index, members):
        return oracle.log_marginal([FEW[i] for i in members], hypers()[index])

    out = {}
    for partition in partitions(len(FEW)):
        members = clusters(partition)
        log_prior = log_eppf([len(own) for own in members], 1.0, 0.3)
        for index in range(4):
            out[partition, index] = log_prior + sum(score(index, own) for own in members)
    return normalised(out)


class KeptState:
    """Control: of what is part of the state, fills or weights stay what they are once."""

    def __init__(self, fills, weights):
        self.fills, self.weights = fills, weights

    def sweep(self, state, bit_generator, *, beta=1.0):
        values, n = state.table.fills(), state.table.n_rows
        if self.fills:
            values[:-n] = 3.0
        if self.weights:
            values[-n:] = 0.05
        rows = state.subsample.rows()
        labels = state.labels_of(rows)
        state.table.set_fills(values)
        state.replace(rows, labels)


def hyper_move(degrees=DEGREES):
    grids = [None, None, np.array(KAPPAS), *[None] * 4, np.array(degrees)]
    return FeatureHyperparameters({0: grids})


def tried(n_chains, moves, seed):
    """The least p-value of the partition, the hyperparameters, and both, times three."""
    mixture, bits = mixture_of(FEW, hypers()[0], seed)
    segments = segments_of(LinearAnneal(n_sweeps=25, final_sweeps=15), len(FEW))
    counts, index = Counter(), {}
    for i, hyper in enumerate(hypers()):
        index[hyper["kappa0"], hyper["degrees"]] = i
    for _ in range(n_chains):
        while mixture.subsample.size:
            mixture.remove_row(mixture.subsample.leave_row(bits))
        run_segments(mixture, bits, segments, moves)
        vector = mixture.blocks[0].get_hyper(0)
        counts[canonical(mixture.get_labels().tolist()), index[vector[2], vector[-1]]] += 1
    mixture.validate()
    return 3 * min(p_values(counts, law_of()))


def all_moves():
    return [
        NowAndThen(SplitMerge(n_proposals=5), 7),
        NowAndThen(Permutation("uniform", "exact"), 11),
        NowAndThen(hyper_move(), 5),
    ]


def test_posterior():
    """All moves together, weights, gaps and hyperparameters inferred."""
    assert tried(150, all_moves(), 2) > LEVEL


@pytest.mark.parametrize(("fills", "weights"), [(True, False), (False, True)])
@pytest.mark.few(1)
def test_a_state_that_is_not_redrawn_shows(fills, weights):
    assert tried(200, [*all_moves(), KeptState(fills, weights)], 3) < LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("moves", [[hyper_move()], all_moves()], ids=["gibbs", "all"])
def test_posterior_at_length(moves):
    assert tried(2500, moves, 4) > LEVEL
