"""Rows of linked views that move together, against exact laws by enumeration.

Counts of independent states or copies are compared by chi-square tests, fixed seeds, one try: a
right sweep alarms once in 10,000. Beside them stand wrong laws that the same test must reject.

A sweep leaves the law of its docstring where no slot with tilts is emptied: once a slot is, its
tilts are gone. So the law is enumerated for rows beside anchors, labelled rows outside S that keep
the slots with tilts. Of slots that are emptied the law of a whole sweep is worked out step by step.
"""

import copy
import math
from collections import Counter
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from oracles import t_reference
from oracles.bits import assert_same_arrays, same_arrays
from oracles.crosscat_chains import Case, Rows, column, make_state, view_blocks
from oracles.crosscat_enumeration import summed
from oracles.enumeration import (
    canonical,
    check_counts,
    clusters,
    count_p_value,
    enumerate_posterior,
    normalised,
    partitions,
)
from oracles.gaps_reference import observed_log_marginal
from oracles.joint_views import FAMILY, hyper_of_view, joint_column
from oracles.links import scaled
from oracles.mixtures import make_blocks, make_table
from oracles.reference import log_marginal
from skanneal.chains._linked import N_SWEEPS, link_draws
from skanneal.families import FAMILIES
from skanneal.moves import _linked_rows, move_linked_rows
from skanneal.moves._linked_gibbs import linked_sweep
from skanneal.parallel import StopFlag, TimeLimit
from skanneal.partition_priors import Finite, PitmanYor
from skanneal.states import (
    CrossCat,
    Mixture,
    Subsample,
    draw_arrays,
    recount,
    state_from_arrays,
)
from skanneal.states._links import links_of

REJECT = 1e-6  # what a control's p-value must be below


# ---- the slow oracle ----------------------------------------------------------------------------


class View:
    """A view's law: p(partition) p(cells | it), from the formulas.

    Parameters
    ----------
    column : (family, values, hyper)
    prior : (class, concentration, discount)
    log_cluster : callable, optional
        Log marginal likelihood of a cluster of these rows.
    """

    def __init__(self, column, prior, log_cluster=None):
        self.column = column
        self.kind, self.concentration, self.discount = prior

        def by_formula(rows):
            family, values, hyper = column
            return log_marginal(family, [values[row] for row in rows], hyper)

        self.log_cluster = cache(log_cluster or by_formula)

    @property
    def prior(self):
        return self.kind(self.concentration, self.discount)

    def log_join(self, size):
        return math.log(size - self.discount)

    def log_open(self, n_clusters):
        """Of a new cluster beside others; the first one is opened surely."""
        weight = self.concentration + n_clusters * self.discount if n_clusters else 1.0
        return math.log(weight) if weight > 1e-9 else -math.inf

    def log_joint(self, labels):
        """Up to a constant: rows enter one after another, a cluster after the other."""
        members = clusters(labels)
        total = sum(self.log_open(i) for i in range(1, len(members)))
        for rows in members:
            total += sum(self.log_join(n) for n in range(1, len(rows))) + self.log_cluster(rows)
        return total


class Setting(NamedTuple):
    """Views of some rows, of which the first ones are anchors: row i in slot i.

    tilts: by two views the t of their first slots.
    """

    views: list
    tilts: dict
    n_rows: int
    n_anchors: int = 2

    @property
    def moved(self):
        return range(self.n_anchors, self.n_rows)

    def tilt(self, key):
        """The sum of tilts over rows and links; slots that no anchor keeps have none."""
        total = 0.0
        for (u, v), t in self.tilts.items():
            for row in self.moved:
                k, j = key[u][row], key[v][row]
                if k < len(t) and j < len(t[0]):
                    total += t[k][j]
        return total

    def law(self, tilted=True):
        """The law of the docstring, over the partitions of all views in which anchors are apart."""
        anchors = tuple(range(self.n_anchors))
        some = [of for of in partitions(self.n_rows) if of[: self.n_anchors] == anchors]
        logs = [
            {of: log for of in some if (log := view.log_joint(of)) > -1e9} for view in self.views
        ]
        return normalised(
            {
                key: sum(of[labels] for of, labels in zip(logs, key))
                + (self.tilt(key) if tilted else 0.0)
                for key in product(*logs)
            }
        )


def random_tilts(seed, n_given=2, n_other=2, size=1.3):
    values = np.random.default_rng(seed).normal(size=(n_given, n_other)) * size
    return np.float32(values).tolist()


# ---- views of the package -----------------------------------------------------------------------


def subsample_of(n_rows, moved):
    """The rows of S."""
    others = sorted(set(range(n_rows)) - set(moved))
    arrays = Subsample(n_rows).to_arrays() | {
        "order": np.array([*moved, *others]),
        "window": np.array([0, len(moved)]),
        "inside": np.array([len(moved)]),
    }
    return Subsample.from_arrays(arrays)


def mixtures_of(views, n_rows, moved):
    subsample, out = subsample_of(n_rows, moved), []
    for view in views:
        table = make_table([view.column])
        out.append(Mixture(table, make_blocks(table, [view.column]), view.prior, subsample))
    return out


def arrays_of(tilts):
    """The tilts as `linked_sweep` takes them, of 16 slots each, 0 where there are none."""
    out = {}
    for pair, t in tilts.items():
        out[pair] = np.zeros((16, 16), np.float32)
        out[pair][: len(t), : len(t[0])] = t
    return out


def check_statistics(mixtures, n_rows):
    """Those after all sweeps are those of a recount."""
    whole = Subsample(n_rows)
    whole.fill()
    for mixture in mixtures:
        own = mixture.subsample
        mixture.bind_subsample(whole)
        mixture.validate()
        recount(mixture)
        mixture.bind_subsample(own)


def ends(setting, mixtures, starts, tilts, seed, n_sweeps=2, n_fills=0):
    """Counts of what sweeps lead to; before them fills are drawn, which starts do not have."""
    bits, every, counts = np.random.PCG64(seed), np.arange(setting.n_rows), Counter()
    for start in starts:
        for mixture, labels in zip(mixtures, start):
            mixture.replace(every, np.array(labels))
            for _ in range(n_fills):
                mixture.draw_fills(every, bits)
        arrays = arrays_of(tilts)
        for _ in range(n_sweeps):
            linked_sweep(mixtures, arrays, bits)
        counts[tuple(canonical(mixture.get_labels().tolist()) for mixture in mixtures)] += 1
    check_statistics(mixtures, setting.n_rows)
    return counts


def draws_of(law, n, seed):
    keys = list(law)
    rng = np.random.default_rng([seed, 1])
    return [keys[i] for i in rng.choice(len(keys), n, p=list(law.values()))]


def statistics_of(setting):
    """What of a state is counted: each view, the labels of a row, how many rows are where."""
    row = setting.n_rows - 1
    out = [lambda key, v=v: key[v] for v in range(len(setting.views))]
    out.append(lambda key: tuple(labels[row] for labels in key))
    for u, v in setting.tilts:
        out.append(lambda key, u=u, v=v: (key[u][row], key[v][row - 1]))
        out.append(lambda key, u=u, v=v: places(key[u], key[v], setting.moved))
    return [*out, lambda key: key]


def places(one, two, rows):
    """How often the moved rows are in each pair of slots, those without tilts alike."""
    return tuple(sorted(Counter((min(one[i], 2), min(two[i], 2)) for i in rows).items()))


def check_law(setting, counts, law):
    for statistic in statistics_of(setting):
        check_counts(summed(counts, statistic), summed(law, statistic))


def places_p_value(setting, counts, law):
    """By where the rows are in linked views: where faults of the tilts show most. The least of
    each link's."""
    p_values = []
    for u, v in setting.tilts:

        def statistic(key, u=u, v=v):
            return places(key[u], key[v], setting.moved)

        p_values.append(count_p_value(summed(counts, statistic), summed(law, statistic)))
    return min(p_values)


# ---- a sweep leaves its law ---------------------------------------------------------------------

NUMBERS = column("normal", [-1.5, 1.25, 0.5, -0.75, 1.0, 0.0])
OTHERS = column("normal", [0.75, -0.5, -1.25, 1.5, 0.25, -0.25], sigma2_0=0.3)
LEVELS = column("categorical", [0, 2, 1, 2, 0, 1])
COUNTS = column("poisson", [1, 6, 3, 0, 4, 2])
PY, DP = (PitmanYor, 0.7, 0.3), (PitmanYor, 1.0, 0.0)


def of_first(column, n=5):
    family, values, hyper = column
    return family, values[:n], hyper


ROWS = np.float32(3.0 * np.random.default_rng(0).normal(size=(5, 3))).astype(float).tolist()
TAILS = (
    "multivariate_t",
    ROWS,
    {
        "mu0": [0.25] * 3,
        "kappa0": 0.4,
        "nu0": 3.5,
        "scale0": (0.6 * np.eye(3)).tolist(),
        "degrees": 1.0,
    },
)


def log_tails(rows):
    """Of a cluster of rows with heavy tails, their weights integrated out."""
    return t_reference.log_marginal([ROWS[row] for row in rows], TAILS[2])


@cache
def setting(name):
    one, two = random_tilts(1), random_tilts(2)
    if name == "two views":
        return Setting([View(NUMBERS, PY), View(LEVELS, DP)], {(0, 1): one}, 6)
    if name == "finite":
        views = [View(LEVELS, (Finite, 3.0, -1.0)), View(OTHERS, (Finite, 2.0, -0.5))]
        return Setting(views, {(0, 1): one}, 6)
    if name == "no room":  # as many components as there are anchors
        views = [View(NUMBERS, (Finite, 1.5, -0.75)), View(LEVELS, (Finite, 2.0, -1.0))]
        return Setting(views, {(1, 0): one}, 6)
    if name == "heavy tails":
        views = [View(TAILS, PY, log_tails), View(of_first(LEVELS), PY)]
        return Setting(views, {(0, 1): one}, 5)
    views = [View(of_first(of), prior) for of, prior in ((NUMBERS, PY), (LEVELS, DP), (COUNTS, PY))]
    if name == "chain":
        return Setting(views, {(0, 1): one, (2, 1): two}, 5)
    assert name == "star"
    return Setting(views, {(0, 1): one, (0, 2): two}, 5)


SETTINGS = ["two views", "finite", "no room", "chain", "star", "heavy tails"]


@cache
def law_of(name):
    return setting(name).law()


@pytest.mark.parametrize("name", SETTINGS)
def test_a_sweep_leaves_its_law(name):
    """Exact draws make two sweeps and must stay exact draws."""
    own, law = setting(name), law_of(name)
    mixtures = mixtures_of(own.views, own.n_rows, own.moved)
    n_fills = 20 if name == "heavy tails" else 0
    starts = draws_of(law, 1500, 1)
    check_law(own, ends(own, mixtures, starts, own.tilts, 1, n_fills=n_fills), law)


def test_laws_are_those_of_the_priors_and_of_the_families():
    """Without tilts the rows beside anchors have the law of a mixture, given that these are apart,
    and views are independent."""
    law = setting("two views").law(tilted=False)
    for v, (of, prior) in enumerate(((NUMBERS, PY), (LEVELS, DP))):
        whole = enumerate_posterior([of], *prior[1:])
        apart = {labels: p for labels, p in whole.items() if labels[0] != labels[1]}
        total = math.fsum(apart.values())
        found = summed(law, lambda key, v=v: key[v])
        assert found == pytest.approx({labels: p / total for labels, p in apart.items()})


class Uncorrected(FAMILIES["multivariate_t"]):
    """Rows go where they are proposed to go."""

    proposes = False


def test_proposals_that_are_not_corrected_fail():
    own, law = setting("heavy tails"), law_of("heavy tails")
    mixtures = mixtures_of(own.views, own.n_rows, own.moved)
    (block,) = mixtures[0].blocks
    mixtures[0].set_blocks([Uncorrected(block.table, [0, 1, 2], [block.get_hyper(0)])])
    counts = ends(own, mixtures, draws_of(law, 1500, 1), own.tilts, 1, n_fills=20)
    assert places_p_value(own, counts, law) < REJECT


def turned(t):
    return [list(row) for row in zip(*t)]


WRONG = {
    "none": lambda tilts: {},
    "of the other view's slots": lambda tilts: {pair: turned(t) for pair, t in tilts.items()},
    "half": lambda tilts: {pair: (0.5 * np.array(t)).tolist() for pair, t in tilts.items()},
    "of one link only": lambda tilts: dict([next(iter(tilts.items()))]),
}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("two views", "none"),
        ("finite", "none"),
        ("two views", "of the other view's slots"),
        ("chain", "of the other view's slots"),
        ("star", "half"),
        ("chain", "of one link only"),
    ],
)
def test_sweeps_by_other_tilts_fail(name, wrong):
    own, law = setting(name), law_of(name)
    mixtures = mixtures_of(own.views, own.n_rows, own.moved)
    counts = ends(own, mixtures, draws_of(law, 1500, 2), WRONG[wrong](own.tilts), 2)
    assert places_p_value(own, counts, law) < REJECT


# ---- numbers that are jointly normal, with gaps -------------------------------------------------

JOINT = [  # clusters are narrow: fills of another one would be far off
    joint_column(values, 0.03)
    for values in (
        [-1.5, 1.0, None, 1.25, -0.5],
        [-1.0, 1.5, -0.75, None, 0.5],
        [0.5, -1.0, 1.5, -0.25, None],
        [1.0, -0.5, None, 0.75, 1.25],
    )
]
FEATURES = (0, 1), (2, 3)


def log_rows(features):
    """Of a cluster of rows in a view of these columns, gaps integrated out."""
    hyper = hyper_of_view([JOINT[f][2] for f in features])

    def log_cluster(rows):
        cells = [sum((JOINT[f][1][row] for f in features), ()) for row in rows]
        return observed_log_marginal(FAMILY, cells, hyper)

    return log_cluster


@pytest.mark.parametrize("tilted", [True, False])
def test_gaps_of_joint_columns(tilted):
    """Fills, which views share, are part of the state; the partitions' law is the enumerated one.

    The control's tilts are left out."""
    views = [View(None, PY, log_rows(own)) for own in FEATURES]
    own = Setting(views, {(0, 1): random_tilts(3)}, 5)
    law, table = own.law(), CrossCat.filled(make_table(JOINT), {FAMILY: [0, 1, 2, 3]})
    subsample = subsample_of(own.n_rows, own.moved)
    mixtures = [
        Mixture(table, view_blocks(table, JOINT, features), view.prior, subsample)
        for features, view in zip(FEATURES, views)
    ]
    tilts = own.tilts if tilted else {}
    counts = ends(own, mixtures, draws_of(law, 1500, 4), tilts, 4, n_fills=20)
    if tilted:
        check_law(own, counts, law)
    else:
        assert places_p_value(own, counts, law) < REJECT


# ---- steps of every kind ------------------------------------------------------------------------


class Steps(NamedTuple):
    """The law of a whole sweep from one start, step by step from the formula: prior's weight times
    likelihood times exp(sum of tilts), and a slot that is emptied loses its tilts.

    start: by view the slots of all rows; moved: the rows of S.
    """

    views: list
    start: list
    moved: list
    tilts: dict

    def law(self):
        law = {(tuple(map(tuple, self.start)), frozenset()): 1.0}
        for v, row in product(range(len(self.views)), sorted(self.moved)):
            after = Counter()
            for state, p in law.items():
                for new, chance in self.step(state, v, row):
                    after[new] += p * chance
            law = after
        return summed(law, lambda state: state[0])

    def step(self, state, v, row):
        """(state, probability) after a row's step in a view; a state has the slots that were
        emptied, too."""
        slots, emptied = state
        members = {}
        for other, slot in enumerate(slots[v]):
            if other != row:
                members.setdefault(slot, []).append(other)
        if slots[v][row] not in members:
            emptied = self.emptied(emptied, v, slots[v][row])
        view, open_slot = self.views[v], min(set(range(99)) - set(members))
        logs = {open_slot: view.log_open(len(members)) + view.log_cluster((row,))}
        logs[open_slot] += self.tilt_of_new(v, row, open_slot, slots, emptied)
        for slot, rows in members.items():
            logs[slot] = view.log_join(len(rows)) + self.tilt(v, row, slot, slots, emptied)
            logs[slot] += view.log_cluster((*rows, row)) - view.log_cluster(tuple(rows))
        for slot, chance in normalised({s: log for s, log in logs.items() if log > -1e9}).items():
            own = list(slots[v])
            own[row] = slot
            yield ((*slots[:v], tuple(own), *slots[v + 1 :]), emptied), chance

    def emptied(self, before, v, slot):
        return before | {(v, slot)}

    def tilt_of_new(self, v, row, slot, slots, emptied):
        return 0.0

    def tilt(self, v, row, slot, slots, emptied):
        """The sum over the links of a view of the t of a slot and of the row's slots there."""
        total = 0.0
        for (u, w), t in self.tilts.items():
            if v in (u, w):
                at = {u: slots[u][row], w: slots[w][row], v: slot}
                there = at[u] < len(t) and at[w] < len(t[0])
                if there and not {(u, at[u]), (w, at[w])} & emptied:
                    total += t[at[u]][at[w]]
        return total


class NoTilts(Steps):
    def tilt(self, v, row, slot, slots, emptied):
        return 0.0


class FirstLinkOnly(Steps):
    def tilt(self, *step):
        return Steps(*self[:3], dict([next(iter(self.tilts.items()))])).tilt(*step)


class Turned(Steps):
    """Tilts of slots of the other view."""

    def tilt(self, *step):
        return Steps(*self[:3], {pair: turned(t) for pair, t in self.tilts.items()}).tilt(*step)


class OldSlot(Steps):
    """A new component has the tilts that its slot had."""

    def emptied(self, before, v, slot):
        return before

    def tilt_of_new(self, v, row, slot, slots, emptied):
        return self.tilt(v, row, slot, slots, emptied)


class Remembered(Steps):
    """The next component in the slot has its tilts, for the linked views as for this one."""

    def emptied(self, before, v, slot):
        return before


class OneDirection(Steps):
    """Only the view whose slot was emptied forgets."""

    def tilt(self, v, row, slot, slots, emptied):
        return super().tilt(v, row, slot, slots, {of for of in emptied if of[0] == v})


def first(columns, n):
    return [(family, (values * 3)[:n], hyper) for family, values, hyper in columns]


@cache
def steps(kind, cls=Steps):
    """Eight rows, the first two of them in S, if nothing else is said; slots without rows have no
    tilts."""
    of, priors = [NUMBERS, LEVELS, COUNTS], [PY, (Finite, 4.0, -1.0), DP]
    moved, n, tilts = [0, 1], 8, {(0, 1): random_tilts(5, 3, 3, 1.0)}
    if kind == "shared":
        start = [[0, 1, 0, 1, 0, 1, 2, 2], [1, 0, 1, 0, 2, 1, 0, 2]]
    elif kind == "alone in the lowest slot":
        start, priors[0] = (
            [[0, 1, 1, 2, 1, 2, 2, 1], [1, 0, 1, 0, 2, 1, 0, 2]],
            (PitmanYor, 4.0, 0.1),
        )
    elif kind == "alone above a free slot":
        start, priors[0] = (
            [[4, 0, 2, 0, 0, 2, 2, 0], [1, 0, 1, 0, 2, 1, 0, 2]],
            (PitmanYor, 2.0, 0.1),
        )
        tilts = {(0, 1): with_rows(random_tilts(6, 5, 3), [1, 3])}
    elif kind == "both alone":
        start = [[0, 1, 1, 2, 1, 2, 2, 1], [0, 1, 1, 2, 2, 1, 2, 2]]
        priors = [(PitmanYor, 4.0, 0.1), (PitmanYor, 3.0, 0.2)]
    elif kind in ("chain", "star"):
        start = [[0, 1, 0, 1, 0, 1, 2], [1, 0, 1, 0, 2, 1, 2], [0, 1, 1, 0, 0, 1, 1]]
        last = (2, 1) if kind == "chain" else (0, 2)
        tilts[last] = random_tilts(7, *((2, 3) if kind == "chain" else (3, 2)), 1.5)
        moved, n = [0], 7
    elif kind == "alone in a chain":
        start = [[0, 1, 0, 1, 0, 1, 2], [1, 0, 2, 0, 2, 0, 2], [0, 1, 1, 0, 0, 1, 1]]
        priors, moved, n = [DP, (PitmanYor, 6.0, 0.1), PY], [0], 7
        tilts[1, 2] = random_tilts(8, 3, 2, 1.5)
    elif kind == "beyond the tilts":
        start = [[0, 1, 0, 1, 0, 1, 2, 2], [17, 0, 17, 0, 20, 17, 0, 20]]
        tilts = {(0, 1): random_tilts(9, 3, 1, 1.5)}
    elif kind == "the last slot with tilts":
        start = [[15, 0, 15, 0, 0, 15, 0, 15], [1, 0, 1, 0, 2, 1, 0, 2]]
        tilts = {(0, 1): with_rows(random_tilts(13, 16, 3, 1.5), range(1, 15))}
    else:
        assert kind == "more slots"
        moved, n = [15, 16], 17
        start = [[*range(15), 0, 1], [*[0, 1] * 8, 1]]
        of, priors = [LEVELS, NUMBERS], [(PitmanYor, 30.0, 0.5), (Finite, 2.0, -1.0)]
        tilts = {(0, 1): random_tilts(10, 15, 2, 1.5)}
    views = [View(*one) for one in zip(first(of, n), priors)][: len(start)]
    return cls(views, start, moved, tilts)


def with_rows(t, none):
    return [[0.0] * len(row) if k in none else row for k, row in enumerate(t)]


KINDS = [
    "shared",
    "alone in the lowest slot",
    "alone above a free slot",
    "both alone",
    "chain",
    "star",
    "alone in a chain",
    "beyond the tilts",
    "the last slot with tilts",
    "more slots",
]


@cache
def copies(kind, n=2500):
    """Counts of the slots after a sweep, from n copies of the start."""
    own = steps(kind)
    n_rows = len(own.start[0])
    mixtures = mixtures_of(own.views, n_rows, own.moved)
    bits, every, counts = np.random.PCG64(3), np.arange(n_rows), Counter()
    starts = [np.array(labels) for labels in own.start]
    for _ in range(n):
        for mixture, labels in zip(mixtures, starts):
            mixture.replace(every, labels)
        linked_sweep(mixtures, arrays_of(own.tilts), bits)
        counts[tuple(tuple(mixture.get_labels().tolist()) for mixture in mixtures)] += 1
    check_statistics(mixtures, n_rows)
    return counts


def slots_of(kind):
    """What is counted: the moved rows in each view, the first one in all views, and everything."""
    own = steps(kind)
    row = own.moved[0]
    out = [lambda key, v=v: [key[v][i] for i in own.moved] for v in range(len(own.views))]
    out = [lambda key, of=of: tuple(of(key)) for of in out]
    return [*out, lambda key: tuple(labels[row] for labels in key), lambda key: key]


@pytest.mark.parametrize("kind", KINDS)
def test_a_sweep_has_the_law_of_its_steps(kind):
    law = steps(kind).law()
    for statistic in slots_of(kind):
        check_counts(summed(copies(kind), statistic), summed(law, statistic))
    if kind == "more slots":
        assert sum(n for (labels, _), n in copies(kind).items() if max(labels) > 15) > 99


@pytest.mark.parametrize(
    ("kind", "cls"),
    [
        *((kind, NoTilts) for kind in KINDS),
        ("shared", Turned),
        ("star", FirstLinkOnly),
        ("chain", FirstLinkOnly),
        ("alone in the lowest slot", OldSlot),
        ("alone in a chain", OldSlot),
        ("both alone", OldSlot),
        ("alone in the lowest slot", Remembered),
        ("both alone", Remembered),
        ("alone in the lowest slot", OneDirection),
        ("alone in a chain", OneDirection),
    ],
)
def test_steps_by_another_formula_fail(kind, cls):
    law = steps(kind, cls).law()
    assert (
        min(
            count_p_value(summed(copies(kind), statistic), summed(law, statistic))
            for statistic in slots_of(kind)
        )
        < REJECT
    )


@pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
def test_a_slot_that_is_emptied_has_no_tilts(pair):
    """Others have those that they had, although a new component may stand in the slot again."""
    own = steps("alone in the lowest slot")
    mixtures = mixtures_of(own.views, 8, own.moved)
    for mixture, labels in zip(mixtures, own.start):
        mixture.replace(np.arange(8), np.array(labels))
    tilts = arrays_of({pair: random_tilts(11, 3, 3)})
    expected = tilts[pair].copy()
    linked_sweep(mixtures, tilts, np.random.PCG64(0))
    slot = (0, slice(None)) if pair == (0, 1) else (slice(None), 0)
    assert expected[slot][:3].all()
    expected[slot] = 0.0
    np.testing.assert_array_equal(tilts[pair], expected)


@pytest.mark.parametrize("far", [30.0, -30.0])
def test_a_new_component_has_no_tilt(far):
    """A row alone, whose tilt would surely keep it where it is, or surely not: it goes by the prior
    and by its cells."""
    own = steps("alone in the lowest slot")
    own = own._replace(moved=[0], tilts={(0, 1): [[far] * 3, [0.0] * 3, [0.0] * 3]})
    mixtures = mixtures_of(own.views, 8, own.moved)
    bits, counts = np.random.PCG64(0), Counter()
    for _ in range(1000):
        for mixture, labels in zip(mixtures, own.start):
            mixture.replace(np.arange(8), np.array(labels))
        linked_sweep(mixtures, arrays_of(own.tilts), bits)
        counts[int(mixtures[0].get_labels()[0])] += 1
    law = summed(own.law(), lambda key: key[0][0])
    check_counts(counts, law)
    assert 0.05 < law[0] < 0.95


def test_sweeps_without_tilts_and_of_no_rows():
    """Unlinked views move by themselves; where S is empty nothing moves."""
    own = setting("two views")
    law = own.law(tilted=False)
    mixtures = mixtures_of(own.views, own.n_rows, own.moved)
    check_law(own, ends(own, mixtures, draws_of(law, 800, 5), {}, 5), law)
    mixtures = mixtures_of(own.views, own.n_rows, [])
    for mixture in mixtures:
        mixture.replace(np.arange(6), np.arange(6) % 2)
    linked_sweep(mixtures, arrays_of(own.tilts), np.random.PCG64(0))
    assert all(mixture.get_labels().tolist() == [0, 1] * 3 for mixture in mixtures)


# ---- rows of linked views move ------------------------------------------------------------------

N, K = 240, 3


def two_views(seed, linked=True, joint=False):
    """(state, true labels, which rows have no cells in the second view): these rows' labels there
    are random ones."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, N)
    silent = rng.random(N) < 1 / 3
    other = labels if linked else rng.integers(0, K, N)
    shown = np.where(silent, np.nan, 8.0 * other + rng.normal(size=N))
    first = 8.0 * labels + rng.normal(size=(2, N))
    numbers = [[None if np.isnan(x) else x for x in of] for of in (*first, shown)]
    if joint:
        columns = [joint_column(of, 1.0) for of in numbers]
    else:
        columns = [column("normal", of) for of in numbers]
    case = Case(columns, [(1.0, 0.2)], [(0.7, 0.2)])
    start = np.where(silent, rng.integers(0, K, N), other)
    subsample = Subsample(N)
    subsample.fill()
    key = 0, (0, 0, 0), (((0, 1), (labels, 0)), ((2,), (start, 0)))
    return make_state(case, key, make_table(columns), subsample), labels, silent


def agreement(state, labels, silent):
    """The share of the silent rows in the component of the second view that most of the other rows
    of their component in the first view are in."""
    found, right = state.views[1].get_labels(), 0
    for k in range(K):
        shown = found[~silent & (labels == k)]
        right += (found[silent & (labels == k)] == np.bincount(shown).argmax()).sum()
    return right / silent.sum()


def check_whole(state):
    state.validate()
    for view in state.views:
        recount(view)


@pytest.mark.parametrize("joint", [False, True])
def test_rows_go_where_their_linked_views_say(joint):
    """A third of the rows, which have no cells in a view, stood anywhere: after 2 sweeps 3 of 4
    are right, after some more 6 of 7. Sweeps of the rows by themselves do not help."""
    state, labels, silent = two_views(1, joint=joint)
    assert agreement(state, labels, silent) < 0.45
    alone, bits = copy_of(state), np.random.PCG64(1)
    move_linked_rows(state, 2, bits)
    check_whole(state)
    assert agreement(state, labels, silent) > 0.75
    for _ in range(3):
        move_linked_rows(state, 2, bits)
    check_whole(state)
    assert agreement(state, labels, silent) > 0.85
    assert (state.views[0].get_labels() == labels).mean() > 0.9
    for _ in range(8):
        Rows().sweep(alone, bits)
    assert agreement(alone, labels, silent) < 0.6


def copy_of(state):
    """Another state that has the same arrays."""
    subsample = Subsample(N)
    subsample.fill()
    return state_from_arrays(state.to_arrays(), state.table, subsample)


def test_a_state_without_links_stays_as_it_is():
    """Bit for bit, and no number is drawn; with links it does not."""
    for linked in (False, True):
        state, *_ = two_views(2, linked=linked)
        before, bits = state.to_arrays(), np.random.PCG64(5)
        move_linked_rows(state, 3, bits)
        stays = same_arrays(state.to_arrays(), before)
        assert stays == (bits.state == np.random.PCG64(5).state) == (not linked)


def test_no_sweeps_move_nothing():
    state, *_ = two_views(3)
    before = state.to_arrays()
    move_linked_rows(state, 0, np.random.PCG64(0))
    assert_same_arrays(state.to_arrays(), before)


@pytest.mark.parametrize("joint", [False, True])
def test_the_same_seed_gives_the_same_state(joint):
    found = []
    for seed in (4, 4, 5):
        state, *_ = two_views(4, joint=joint)
        move_linked_rows(state, 2, np.random.PCG64(seed))
        found.append(state.to_arrays())
    assert_same_arrays(found[0], found[1])
    assert not same_arrays(found[0], found[2])


def slow_tilts(state, links):
    """log of P(k, l) / (w_k w_l) of links, by slots, from the labels and the formulas."""
    out = {}
    for (u, v), c in zip(links["link_views"].tolist(), links["link_strengths"].tolist()):
        one, two = (state.views[w].get_labels().tolist() for w in (u, v))
        pairs, slots, shares = list(zip(one, two)), [], []
        for w, of in ((u, one), (v, two)):
            slots.append(sorted(set(of)))
            weights = [of.count(k) - state.views[w].prior.discount for k in slots[-1]]
            shares.append([weight / sum(weights) for weight in weights])
        law = [
            [
                w * (pairs.count((k, j)) + c * x) / (one.count(k) + c)
                for j, x in zip(slots[1], shares[1])
            ]
            for k, w in zip(slots[0], shares[0])
        ]
        law = scaled(law, *shares)
        out[u, v] = {
            (k, j): math.log(law[i][m] / (shares[0][i] * shares[1][m]))
            for i, k in enumerate(slots[0])
            for m, j in enumerate(slots[1])
        }
    return out


def test_tilts_are_by_slots(monkeypatch):
    """Slots with holes. Each sweep has tilts of the labels as they are by then; the links stay."""
    state, labels, _ = two_views(6)
    state.views[0].replace(np.arange(N), np.array([5, 0, 3])[labels])
    state.views[1].replace(np.arange(N), np.array([1, 2, 7])[state.views[1].get_labels()])
    links, seen = links_of(state), []

    def looked_at(views, tilts, bit_generator):
        expected = slow_tilts(state, links)
        assert tilts.keys() == expected.keys() and len(tilts) == 1
        for pair, found in tilts.items():
            shape = tuple(state.views[v].n_slots for v in pair)
            assert found.dtype == np.float32 and found.shape == shape
            slow = np.zeros(shape)
            for at, value in expected[pair].items():
                slow[at] = value
            np.testing.assert_allclose(found, slow, rtol=1e-4, atol=1e-4)
            seen.append(found.copy())
        linked_sweep(views, tilts, bit_generator)

    monkeypatch.setattr(_linked_rows, "linked_sweep", looked_at)
    move_linked_rows(state, 3, np.random.PCG64(6))
    assert len(seen) == 3 and not np.array_equal(seen[0], seen[1])


# ---- draws that are linked ----------------------------------------------------------------------


def kept_draws(n=3, joint=False):
    """(table, draws as chains keep them)."""
    states = [two_views(7, joint=joint)[0] for _ in range(n)]
    bits = np.random.PCG64(7)
    for state in states:
        Rows().sweep(state, bits)
    return states[0].table, [draw_arrays(state) for state in states]


@pytest.mark.parametrize("joint", [False, True])
def test_draws_are_linked(joint):
    """Each as by sweeps from the labels of the one before, whose views have the same columns, and
    not changed in place; another reading accepts them. The control begins with its own labels."""
    table, draws = kept_draws(joint=joint)
    assert ("fills" in draws[0]) == joint
    before, seed = copy.deepcopy(draws), np.random.SeedSequence(1)
    out = link_draws(table, draws, seed, TimeLimit(None), StopFlag())
    for one, two in zip(draws, before):
        assert_same_arrays(one, two)
    subsample, bits = Subsample(N), np.random.PCG64(np.random.SeedSequence(1))
    subsample.fill()
    labels = []
    for arrays, found in zip(draws, out):
        state = state_from_arrays(arrays, table, subsample)
        for view, of in zip(state.views, labels):
            view.replace(np.arange(N), of)
        own, bits_of_own = state_from_arrays(arrays, table, subsample), copy.deepcopy(bits)
        move_linked_rows(state, N_SWEEPS, bits)
        assert_same_arrays(found, draw_arrays(state, linked=True))
        if labels:
            move_linked_rows(own, N_SWEEPS, bits_of_own)
            assert not same_arrays(found, draw_arrays(own, linked=True))
        labels = [view.get_labels() for view in state.views]
        assert not same_arrays(found, arrays) and len(found["link_views"]) == 1
        assert_same_arrays(draw_arrays(state_from_arrays(found, table, subsample)), without(found))
    again = link_draws(table, draws, np.random.SeedSequence(1), TimeLimit(None), StopFlag())
    for one, two in zip(out, again):
        assert_same_arrays(one, two)


def without(arrays):
    return {name: of for name, of in arrays.items() if not name.startswith("link_")}


class AfterSome(StopFlag):
    """Is set after it has been asked some times."""

    def __init__(self, n):
        super().__init__()
        self.n = n

    def is_set(self):
        self.n -= 1
        return self.n < 0


@pytest.mark.parametrize("n_linked", [0, 1, 2])
def test_only_some_draws_are_linked_once_a_fit_is_stopped(n_linked):
    table, draws = kept_draws()
    out = link_draws(table, draws, np.random.SeedSequence(1), TimeLimit(None), AfterSome(n_linked))
    assert len(out) == n_linked and all("link_views" in of for of in out)


def test_without_time_the_first_draw_is_linked_and_kept():
    """As it would be if there were time for all; those that are not linked are left out."""
    table, draws = kept_draws()
    seed = np.random.SeedSequence(1)
    (first,) = link_draws(table, draws, seed, TimeLimit(1e-12), StopFlag())
    every = link_draws(table, draws, seed, TimeLimit(None), StopFlag())
    assert len(every) == len(draws)
    np.testing.assert_equal(first, every[0])
    assert "link_views" not in draws[0]
