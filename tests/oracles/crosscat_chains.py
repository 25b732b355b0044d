"""Small tables of CrossCat whose laws are enumerated, and independent chains of every move."""

import math
from collections import Counter
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from oracles.crosscat_enumeration import (
    CrossCatTarget,
    summed,
    view_labels,
)
from oracles.enumeration import (
    canonical,
    check_counts,
    count_p_value,
    normalised,
)
from oracles.mixtures import (
    COLUMN_FAMILIES,
    hyper_vector,
    make_table,
    random_columns,
)
from oracles.reference import EXAMPLES
from skanneal import moves as room
from skanneal.chains import ChainPlan, run_chain
from skanneal.families import FAMILIES
from skanneal.families._division import by_column, vectors_of
from skanneal.moves import (
    ColumnBlock,
    ColumnGibbs,
    ColumnSets,
    EachView,
    FeatureHyperparameters,
    PartitionHyperparameters,
    SplitMerge,
    ViewReallocation,
    ViewSplitMerge,
    churn,
)
from skanneal.partition_priors import PitmanYor, PriorGrid
from skanneal.states import CrossCat, Mixture, Subsample

SLOW = pytest.mark.slow
FILLED = 20  # times that fills, where there are any, are drawn given the partitions
REJECT = 1e-6  # what a control's p-value must be below


def column(family, values, **other):
    """A column of these values, exact in the table's types, with the family's example of
    hyperparameters or others."""
    if family == "normal":
        values = [None if value is None else float(np.float32(value)) for value in values]
    return family, values, EXAMPLES[family][1] | other


class Case(NamedTuple):
    """A data set with its hyperpriors; a grid of one point is a fixed value.

    A column's hyper is a mapping or a list of them. Weights of None are equal ones.
    """

    columns: list
    view_grid: list
    row_grid: list
    beta: float = 1.0
    view_weights: tuple | None = None
    row_weights: tuple | None = None
    kind: type = PitmanYor
    target: type = CrossCatTarget

    def grid_of(self, what):
        """The PriorGrid of "view" or "row"."""
        weights = getattr(self, f"{what}_weights")
        log_weights = None if weights is None else np.log(weights)
        return PriorGrid(getattr(self, f"{what}_grid"), log_weights)

    @property
    def n_rows(self):
        return len(self.columns[0][1])

    def mappings(self):
        """For every column, its hyperparameters' mappings."""
        return [h if isinstance(h, list) else [h] for _, _, h in self.columns]

    def with_hypers(self, indices):
        """The columns with one mapping each."""
        return [
            (family, values, mappings[i])
            for (family, values, _), mappings, i in zip(self.columns, self.mappings(), indices)
        ]


DATA = {
    # the columns have one partition of the rows
    "agree": [
        column("normal", [-3.0, 3.0, -2.5]),
        column("bernoulli", [True, False, True]),
        column("poisson", [0, 40, None]),
    ],
    # each its own; two columns of one family with different hyperparameters
    "differ": [
        column("normal", [-3.0, 3.0, -2.5], sigma2_0=0.05),
        column("normal", [4.0, None, -3.0], kappa0=0.1, sigma2_0=0.1),
        column("poisson", [2, 40, 1]),
    ],
    "3x4": [
        column("categorical", [0, 2, 2, 0]),
        column("poisson", [3, 30, 25, None]),
        column("normal", [-3.0, None, 3.0, 2.6]),
    ],
    "4x3": [
        column("normal", [-3.0, 3.0, 2.5]),
        column("categorical", [0, 0, 2]),
        column("bernoulli", [True, None, False]),
        column("poisson", [2, 40, 1]),
    ],
    "4x4": [
        column("normal", [-3.0, 3.0, -2.5, 2.6]),
        column("categorical", [0, 2, 0, 2]),
        column("bernoulli", [True, False, None, True]),
        column("poisson", [2, None, 30, 35]),
    ],
    "silent": [column(family, [None] * 3) for family in ("normal", "categorical", "poisson")],
}
# Per prior: the features' pairs, the rows' pairs; the first of each where fixed.
PRIORS = {
    "DP": ([(1.0, 0.0), (0.3, 0.0)], [(1.0, 0.0), (3.0, 0.0)]),
    "PY": ([(0.8, 0.3), (0.3, 0.6)], [(0.7, 0.3), (2.0, 0.0)]),
    "steep": ([(0.1, 0.6), (1.0, 0.3)], [(0.4, 0.5), (2.0, 0.1)]),
}


def make_case(data, prior, inferred=False, beta=1.0):
    """A data set under a prior, its pairs fixed or inferred."""
    n_points = 2 if inferred else 1
    view_grid, row_grid = PRIORS[prior]
    return Case(DATA[data], view_grid[:n_points], row_grid[:n_points], beta)


def joint_law(case):
    """Law of (point of the features' pair, every column's hyper, state)."""
    log_weights = {}
    indices_of = product(*[range(len(mappings)) for mappings in case.mappings()])
    for (g, pair), indices in product(enumerate(case.view_grid), indices_of):
        columns, weights = case.with_hypers(indices), case.row_weights
        target = case.target(columns, pair, case.row_grid, row_weights=weights, beta=case.beta)
        log_weight = math.log(case.view_weights[g]) if case.view_weights else 0.0
        for state in target.states():
            log_weights[g, indices, state] = log_weight + target.log_joint(state)
    return normalised(log_weights)


@cache
def law_of(*arguments):
    """joint_law of make_case(...), kept."""
    return joint_law(make_case(*arguments))


def weighted_points(key):
    """The points of the features' pair and of the views' of the first and third feature."""
    return key[0], content_of(key, 0)[1], content_of(key, 2)[1]


def views_of(key):
    """The partition of the features."""
    return view_labels(key[2])


def content_of(key, feature):
    """The rows' partition, and the point, of a feature's view."""
    return next(content for features, content in key[2] if feature in features)


STATISTICS = {
    "views": views_of,
    "rows of the first feature's view": lambda key: content_of(key, 0),
    "rows of the third feature's view": lambda key: content_of(key, 2),
    "hyperparameters": lambda key: (key[0], key[1], len(key[2]), content_of(key, 1)[1]),
    "state": lambda key: key,
}


def check_all(counts, law):
    """Every statistic of the counts against its law, each at the file's level."""
    for statistic in STATISTICS.values():
        check_counts(summed(counts, statistic), summed(law, statistic))


def view_p_value(counts, law):
    """Of the partition of the features alone: where the feature moves' faults show most."""
    return count_p_value(summed(counts, views_of), summed(law, views_of))


def view_blocks(table, columns, features, n_slots=16):
    """One block per family among these features."""
    by_family = {family: [f for f in features if columns[f][0] == family] for family in FAMILIES}
    hyper = {f: hyper_vector(columns[f][0], columns[f][2]) for f in features}
    return [
        FAMILIES[family](table, at, vectors_of(FAMILIES[family], at, hyper), n_slots)
        for family, at in by_family.items()
        if at
    ]


def make_state(case, key, table, subsample):
    """The CrossCat of a key of the joint law, its rows the subsample's in rising order."""
    g, indices, views = key
    columns = case.with_hypers(indices)
    rows = np.sort(subsample.rows())
    families = {family: [] for family, _, _ in columns}
    for f, (family, _, _) in enumerate(columns):
        families[family].append(f)
    table = CrossCat.filled(table, families)
    view_of = np.empty(len(columns), dtype=np.int64)
    mixtures = []
    for v, (features, (labels, point)) in enumerate(views):
        view_of[list(features)] = v
        blocks = view_blocks(table, columns, features)
        prior = case.kind(*case.row_grid[point])
        mixtures.append(Mixture(table, blocks, prior, subsample))
        mixtures[-1].replace(rows, np.array(labels))
    return CrossCat(table, mixtures, view_of, case.kind(*case.view_grid[g]), subsample)


def hypers_of(state):
    """Each column's hyperparameters, as its block has them."""
    return {
        j: vector
        for view in state.views
        for block in view.blocks
        for j, vector in by_column(block).items()
    }


def key_of(case, state):
    """The inverse of make_state."""
    hyper = hypers_of(state)
    indices = tuple(
        [tuple(hyper_vector(family, m)) for m in mappings].index(tuple(hyper[j]))
        for j, ((family, _, _), mappings) in enumerate(zip(case.columns, case.mappings()))
    )
    rows = np.sort(state.subsample.rows())
    views = []
    for v, view in enumerate(state.views):
        point = case.row_grid.index((view.prior.concentration, view.prior.discount))
        labels = canonical(view.get_labels()[rows].tolist())
        views.append((tuple(np.flatnonzero(state.view_of == v).tolist()), (labels, point)))
    g = case.view_grid.index((state.prior.concentration, state.prior.discount))
    return g, indices, tuple(sorted(views))


class Rows:
    """A Gibbs step of as many rows as S has, in every view."""

    def sweep(self, state, bit_generator, *, beta=1.0):
        """S is all rows."""
        n = state.subsample.size
        knots = np.array([[0, n], [n, n]], dtype=np.int64)
        churn(state.views, state.subsample, bit_generator, knots, 0, n, beta)


def alone(make):
    """One column move with row Gibbs."""
    return lambda grid: [make(grid), Rows()]


MOVES = {
    **{name: alone(move) for name, move in room.COLUMN_MOVES.items()},
    "column_block": alone(lambda grid: ColumnBlock(grid, n_auxiliary=1.5)),
    "column_gibbs, one auxiliary": alone(lambda grid: ColumnGibbs(grid, n_auxiliary=1)),
    "column_block, one pass": alone(lambda grid: ColumnBlock(grid, n_auxiliary=4, n_passes=1)),
    "all": lambda grid: [
        ColumnGibbs(grid, n_auxiliary=2),
        EachView(SplitMerge(n_proposals=2)),
        ColumnBlock(grid),
        Rows(),
        ColumnSets(grid, n_proposals=1),
        ViewSplitMerge(grid, n_proposals=1),
        ViewReallocation(grid, n_proposals=1),
    ],
}


def moves_of(case, make):
    """Column moves and row moves, and the hyperparameters' where they are inferred."""
    moves = make(case.grid_of("row"))
    if len(case.row_grid) > 1:
        moves.append(EachView(PartitionHyperparameters(case.grid_of("row"))))
    if len(case.view_grid) > 1:
        moves.append(PartitionHyperparameters(case.grid_of("view")))
    grids = {}
    for j, ((family, _, _), mappings) in enumerate(zip(case.columns, case.mappings())):
        vectors = np.array([hyper_vector(family, mapping) for mapping in mappings])
        grids[j] = [np.unique(values) for values in vectors.T]
    if any(len(mappings) > 1 for mappings in case.mappings()):
        moves.append(EachView(FeatureHyperparameters(grids)))
    return moves


def ends(case, starts, moves, n_rounds, seed):
    """Counts of the states that rounds of moves lead to, each from its own start."""
    bit_generator = np.random.PCG64(seed)
    table = make_table(case.with_hypers([0] * len(case.columns)))
    subsample = Subsample(table.n_rows, "random", bit_generator)
    subsample.fill()
    counts = Counter()
    for start in starts:
        state = make_state(case, start, table, subsample)
        for view in state.views * FILLED:
            view.draw_fills(subsample.rows(), bit_generator)
        for _ in range(n_rounds):
            for move in moves:
                move.sweep(state, bit_generator, beta=case.beta)
        counts[key_of(case, state)] += 1
    state.validate()
    return counts


def draws_of(law, n, seed):
    """n independent draws of a law."""
    keys = list(law)
    rng = np.random.default_rng([seed, 1])  # not the stream that the moves take from PCG64(seed)
    return [keys[i] for i in rng.choice(len(keys), n, p=list(law.values()))]


def check_stays(case, law, make, n_starts, n_rounds=2, seed=1):
    """From exact draws, rounds of moves lead to exact draws."""
    counts = ends(case, draws_of(law, n_starts, seed), moves_of(case, make), n_rounds, seed)
    check_all(counts, law)
    return counts


COLUMN_MOVES = list(room.COLUMN_MOVES)
FEW_CONTROLS = ("column_block", "view_split_merge")


def draw_key(case, draw):
    """The key of the joint law of a chain's draw."""
    views = []
    for v in range(int(draw["view_of"].max()) + 1):
        pair = float(draw[f"view{v}/concentration"]), float(draw[f"view{v}/discount"])
        labels = canonical(draw[f"view{v}/labels"].tolist())
        features = tuple(np.flatnonzero(draw["view_of"] == v).tolist())
        views.append((features, (labels, case.row_grid.index(pair))))
    g = case.view_grid.index((float(draw["view_concentration"]), float(draw["view_discount"])))
    return g, (0,) * len(case.columns), tuple(sorted(views))


def chain_counts(case, moves, schedule, n_chains, seed):
    """Counts of the final draws of run_chain, the features' hyperparameters fixed."""
    families, hyper = {}, {}
    for j, (family, _, mapping) in enumerate(case.columns):
        families.setdefault(family, []).append(j)
        hyper[j] = hyper_vector(family, mapping)
    model = ChainPlan(
        make_table(case.columns),
        {family: np.array(at) for family, at in families.items()},
        hyper,
        {j: [None] * len(values) for j, values in hyper.items()},
        case.grid_of("row"),
        moves,
        view_grid=case.grid_of("view"),
        partition_prior=case.kind.name,
    )
    counts = Counter()
    for child in np.random.SeedSequence(seed).spawn(n_chains):
        (draw,) = run_chain(model, schedule, child)["draws"]
        counts[draw_key(case, draw)] += 1
    return counts


CHAIN_MOVES = {
    "column_block": ("gibbs", "split_merge", "column_block"),
    "column_gibbs": ("gibbs", "column_gibbs"),
    "column_sets": ("gibbs", "column_sets"),
    "view_split_merge": ("gibbs", "view_split_merge"),
    "all": ("gibbs", "split_merge", *COLUMN_MOVES),
}


def big_state(seed, n_rows=40, n_inside=30):
    """(columns, state, bit generator): a dense and a gappy column per family."""
    columns = random_columns(COLUMN_FAMILIES, n_rows, seed)
    bit_generator = np.random.PCG64(seed)
    table = make_table(columns)
    subsample = Subsample(n_rows, "random", bit_generator)
    for _ in range(n_inside):
        subsample.enter_row(bit_generator)
    view_prior, row_prior = PitmanYor(1.5, 0.3), PitmanYor(0.5, 0.4)
    view_of = view_prior.draw(len(columns), bit_generator)
    rows = subsample.rows()
    views = []
    for v in range(int(view_of.max()) + 1):
        blocks = view_blocks(table, columns, np.flatnonzero(view_of == v))
        views.append(Mixture(table, blocks, row_prior, subsample))
        views[-1].replace(rows, row_prior.draw(n_inside, bit_generator))
    return columns, CrossCat(table, views, view_of, view_prior, subsample), bit_generator
