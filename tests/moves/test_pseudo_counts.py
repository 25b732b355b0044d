"""Pseudo-counts of a column that are drawn together: all of them move by the same number of steps.

The line's law against the slow formula, the move in the enumerated posterior over partitions and
pseudo-counts, and kernels that the same tests must reject. Fixed seeds, one try: a right kernel
alarms once in 10,000.
"""

from collections import Counter
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from oracles.enumeration import (
    check_counts,
    clusters,
    count_p_value,
    enumerate_joint,
    marginal,
    normalised,
)
from oracles.mixtures import hyper_mapping, hyper_vector, make_mixture, set_partition
from oracles.move_states import (
    PRIOR_GRID,
    REJECT,
    column,
    draw_states,
    set_hypers,
    state_of,
    summed,
)
from oracles.reference import EXAMPLES, log_marginal
from skanneal.chains import ChainPlan
from skanneal.chains._clock import ChainClock
from skanneal.chains._moves import ChainMoves
from skanneal.families import FAMILIES
from skanneal.moves import FeatureHyperparameters, Gibbs, PartitionHyperparameters, SplitMerge
from skanneal.moves._pseudo_counts import draw_together
from skanneal.parallel import StopFlag

TOGETHER = [name for name, f in FAMILIES.items() if f.first_pseudo_count is not None]
GRID = np.array([0.01, 0.1, 1.0, 10.0])


def flat(grids):
    """The grids as `draw_together` takes them."""
    return np.concatenate(grids), np.cumsum([0, *map(len, grids)]).astype(np.int64)


def block_of(family, places, labels=(0, 1, 0, 1, 1)):
    """A mixture of one column, its block, and grids on which its coordinates have these places."""
    hyper = hyper_vector(family, EXAMPLES[family][1])
    first = FAMILIES[family].first_pseudo_count
    grids = [np.array([value, value + 1.0]) for value in hyper[:first]] + [GRID] * len(
        hyper[first:]
    )
    hyper[first:] = GRID[places[: len(hyper) - first]]
    values = column(family, missing={2})[1]
    mixture, bit_generator = make_mixture([(family, values, hyper_mapping(family, hyper))])
    set_partition(mixture, labels)
    return mixture, mixture.blocks[0], grids, bit_generator


# ---- the line -----------------------------------------------------------------------------------


@pytest.mark.parametrize("places", [[1, 2, 1], [0, 3, 1], [2, 2, 2]], ids=str)
@pytest.mark.parametrize("beta", [1.0, 0.4])
@pytest.mark.parametrize("family", TOGETHER)
def test_a_shift_has_the_conditional_law_of_its_line(family, places, beta):
    mixture, block, grids, bit_generator = block_of(family, places)
    before, first = block.get_hyper(0), FAMILIES[family].first_pseudo_count
    places = np.searchsorted(GRID, before[first:])
    members = clusters(mixture.get_labels().tolist())
    values, line = column(family, missing={2})[1], {}
    for shift in range(-places.min(), len(GRID) - places.max()):
        hyper = hyper_mapping(family, np.r_[before[:first], GRID[places + shift]])
        scores = [log_marginal(family, [values[row] for row in rows], hyper) for rows in members]
        line[shift] = beta * sum(scores)
    counts = Counter()
    for _ in range(1000):
        drawn = draw_together(block, 0, *flat(grids), beta, bit_generator)
        now = block.get_hyper(0)
        moved = np.unique(np.searchsorted(GRID, now[first:]) - places)
        assert len(moved) == 1 and np.array_equal(now[:first], before[:first])
        assert drawn == len(places) * (len(line) > 1)
        counts[int(moved[0])] += 1
    check_counts(counts, normalised(line))
    block.refresh_all()
    mixture.validate()


@pytest.mark.parametrize("family", TOGETHER)
def test_what_has_no_grid_or_is_not_on_it_stays(family):
    def stays(grids):
        state = bit_generator.state
        assert draw_together(block, 0, *flat(grids), 1.0, bit_generator) == 0
        assert np.array_equal(block.get_hyper(0), before) and bit_generator.state == state

    _, block, grids, bit_generator = block_of(family, [1, 2, 1])
    before = block.get_hyper(0)
    stays([*grids[:-1], np.empty(0)])
    stays([*grids[:-1], before[-1:]])  # its only point is where it is
    stays([*grids[:-1], GRID * 1.5])
    assert draw_together(block, 0, *flat(grids), 1.0, bit_generator) > 0


def test_a_family_without_pseudo_counts_stays():
    mixture, bit_generator = make_mixture([column("poisson")])
    set_partition(mixture, (0, 0, 1, 1, 1))
    grids = [[v, 2.0 * v] for v in mixture.blocks[0].get_hyper(0)]
    assert draw_together(mixture.blocks[0], 0, *flat(grids), 1.0, bit_generator) == 0


def test_pseudo_counts_wait_for_all_rows(monkeypatch):
    """In a chain; the move itself draws them together or not."""
    mixture, block, grids, bit_generator = block_of("categorical", [1, 1, 1])
    for together, n_draws in [(True, 6), (False, 3)]:
        move = FeatureHyperparameters({0: grids}, together)
        assert move.sweep(mixture, bit_generator).proposed == n_draws
    plan = ChainPlan(mixture.table, {}, {}, {0: grids}, np.array([[1.0, 0.0]]), ("gibbs",))
    moves, found = ChainMoves(plan, ChainClock()), []
    segment = SimpleNamespace(start=0, stop=1, beta=1.0)
    for _ in range(2):
        moves.make(mixture, bit_generator, segment, False, StopFlag())
        found.append(moves.features.together)
        mixture.remove_row(mixture.subsample.leave_row(bit_generator))
    assert found == [True, False]


# ---- the move -----------------------------------------------------------------------------------


class OneByOne(FeatureHyperparameters):
    """Base of the controls: the draws of single coordinates, and then a faulty shift."""

    def sweep(self, state, bit_generator, *, beta=1.0):
        info = super().sweep(state, bit_generator, beta=beta)
        for block in state.blocks:
            for f, j in enumerate(block.columns.tolist()):
                self.shift(block, f, *self.grids[j], bit_generator)
            block.refresh_all()
        return info


class Unscored(OneByOne):
    """All shifts are equally probable."""

    def shift(self, block, f, grid, starts, bit_generator):
        draw_together(block, f, grid, starts, 0.0, bit_generator)


class Clipped(OneByOne):
    """Shifts that are too far for some coordinates move the others: there is no way back."""

    def shift(self, block, f, grid, starts, bit_generator):
        before, parts = block.get_hyper(f), np.split(grid, starts[1:-1])
        places = [int(np.flatnonzero(part == v)[0]) for part, v in zip(parts, before)]
        ends, scores = [], []
        for shift in range(-len(GRID) + 1, len(GRID)):
            ends.append([p[np.clip(i + shift, 0, len(p) - 1)] for p, i in zip(parts, places)])
            set_coordinates(block, f, ends[-1])
            scores.append(block.log_marginals(f)[block.sizes() > 0].sum())
        weights = np.exp(np.array(scores) - max(scores))
        rng = np.random.Generator(bit_generator)
        set_coordinates(block, f, ends[rng.choice(len(ends), p=weights / weights.sum())])


def set_coordinates(block, f, values):
    for h, value in enumerate(values):
        block.set_hyper(f, h, value)


DATA = {
    "levels": [("categorical", [0, 2, 0, None, 1])],
    "booleans": [
        ("bernoulli", [True, True, True, True, True]),
        ("bernoulli", [False, True, None, False, False]),
    ],
}


@cache
def inferred(data):
    """(columns, their grids, the joint law of the state) of one column of levels or of two."""
    points = GRID[:3] if data == "levels" else GRID
    columns, grids, oracle = [], {}, []
    for j, (family, values) in enumerate(DATA[data]):
        hyper = EXAMPLES[family][1]
        n = len(hyper_vector(family, hyper))
        mappings = [hyper_mapping(family, np.array(v)) for v in product(points, repeat=n)]
        columns.append((family, values, mappings[0]))
        oracle.append((family, values, mappings))
        grids[j] = [points] * n
    return columns, oracle, grids, enumerate_joint(oracle, [0.3, 2.0], [0.0, 0.4])


def end_states(data, features, n_chains, seed):
    """End states of chains from exact draws of the joint law, after two rounds of all moves."""
    columns, oracle, grids, law = inferred(data)
    mixture, bit_generator = make_mixture(columns, seed=seed)
    moves = [Gibbs(), SplitMerge(), PartitionHyperparameters(PRIOR_GRID), features(grids)]
    counts = Counter()
    for labels, alpha, d, indices in draw_states(law, n_chains, seed):
        mixture.set_prior(type(mixture.prior)(alpha, d))
        set_hypers(mixture, oracle, indices)
        set_partition(mixture, labels)
        for _ in range(2):
            for move in moves:
                move.sweep(mixture, bit_generator)
        counts[state_of(mixture, oracle)] += 1
    mixture.validate()
    return counts, law


@pytest.mark.parametrize("data", ["levels", "booleans"])
def test_pseudo_counts_together_leave_the_joint_law(data):
    counts, law = end_states(data, FeatureHyperparameters, 1000, 21)
    for positions in [(0,), (1, 2), (3,), (0, 3)]:
        check_counts(summed(counts, *positions), marginal(law, *positions))


@pytest.mark.parametrize("fault", [Unscored, Clipped])
@pytest.mark.few(1)
def test_faulty_shifts_fail(fault):
    counts, law = end_states("booleans", fault, 2000, 22)
    first_column, exact = Counter(), Counter()
    for (*_, indices), count in counts.items():
        first_column[indices[0]] += count
    for (*_, indices), probability in law.items():
        exact[indices[0]] += probability
    assert count_p_value(first_column, exact) < REJECT
