"""The churn, split-merge and hyperparameter moves against exact laws by enumeration.

Every comparison is a chi-square test of independent chains' end states, fixed seeds, one try: a
right kernel alarms once in 10,000. Beside them stand controls, wrong laws and wrong kernels, that
the same test must reject.
"""

import math
from collections import Counter
from functools import cache
from itertools import permutations, product

import numpy as np
import pytest

from oracles.enumeration import (
    Target,
    always,
    annealed_sizes,
    canonical,
    check_counts,
    clusters,
    count_p_value,
    enumerate_joint,
    enumerate_posterior,
    forced_paths,
    log_split_ratio,
    marginal,
    near_partners,
    normalised,
    partitions,
    schedule_law,
    split_merge_transitions,
    uniform,
)
from oracles.mixtures import (
    COLUMN_FAMILIES,
    canonical_counts,
    end_labels,
    hyper_vector,
    joined,
    make_mixture,
    make_table,
    restart,
    run_segments,
    segments_of,
    set_partition,
)
from oracles.move_states import (
    PRIOR_GRID,
    REJECT,
    N,
    column,
    draw_states,
    hyper_options,
    set_hypers,
    state_of,
    summed,
)
from oracles.reference import EXAMPLES
from skanneal import moves as room
from skanneal.chains import ChainPlan, run_chain
from skanneal.families import FAMILIES
from skanneal.moves import (
    FeatureHyperparameters,
    Gibbs,
    PartitionHyperparameters,
    SplitMerge,
    churn,
)
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import EnergyAnneal, LinearAnneal, SequentialGibbs

COLUMNS = {family: [column(family), column(family, 2)] for family in COLUMN_FAMILIES}
COLUMNS["mixed"] = [column(family) for family in COLUMN_FAMILIES]
COLUMNS["missing"] = [column(f, missing={i, 4 - i}) for i, f in enumerate(COLUMN_FAMILIES)]
COLUMNS["gappy normal"] = [column("normal", missing={1, 2}), column("normal", 1)]
every_data = pytest.mark.parametrize("data", COLUMNS)
both_priors = pytest.mark.parametrize("discount", [0.0, 0.3], ids=["DP", "PY"])
SCHEDULES = {
    "sequential": SequentialGibbs(n_sweeps=30),
    "linear": LinearAnneal(n_sweeps=30, final_sweeps=10),
}


@cache
def posterior(data, concentration, discount, beta=1.0):
    """Exact law of the partition."""
    return enumerate_posterior(COLUMNS[data], concentration, discount, beta=beta)


# ------------------------------------------------------------------ Gibbs at full data
def check_posterior(data, discount, schedule, n_chains, moves=()):
    """Independent chains of 30 sweeps; their counts."""
    mixture, bit_generator = make_mixture(COLUMNS[data], 1.0, discount, seed=1)
    path = SCHEDULES[schedule].path(N)
    segments = segments_of(SCHEDULES[schedule], N) if moves else joined(path)
    counts = end_labels(mixture, bit_generator, segments, n_chains, moves)
    mixture.validate()
    check_counts(counts, posterior(data, 1.0, discount))
    return counts


def check_controls(counts, data, discount):
    """The counts reject another discount (or any), and a concentration off by a discount."""
    assert count_p_value(counts, posterior(data, 1.0, 0.3 - discount)) < REJECT
    assert count_p_value(counts, posterior(data, 1.3, discount)) < REJECT


@every_data
@both_priors
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.few(11)
def test_posterior_by_few_chains(data, discount, schedule):
    check_posterior(data, discount, schedule, 1000)


@pytest.mark.parametrize(
    ("data", "discount", "schedule"),
    [
        pytest.param(*case, marks=() if case == ("normal", 0.3, "linear") else pytest.mark.slow)
        for case in product(COLUMNS, [0.0, 0.3], SCHEDULES)
    ],
)
def test_posterior(data, discount, schedule):
    """20,000 independent chains of 30 sweeps."""
    counts = check_posterior(data, discount, schedule, 20_000)
    check_controls(counts, data, discount)


class NowAndThen:
    """A move that is made every few segments only: its set-up costs more than five rows' Gibbs."""

    def __init__(self, move, period):
        self.move, self.period, self.n = move, period, 0

    def sweep(self, state, bit_generator, *, beta=1.0):
        """Make the move, or not; it counts segments and looks at nothing else."""
        self.n += 1
        if self.n % self.period == 0:
            self.move.sweep(state, bit_generator, beta=beta)


@pytest.mark.parametrize("data", ["mixed", "missing"])
@both_priors
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_posterior_with_split_merge_by_few_chains(data, discount, schedule):
    """The same with split-merge proposals among the segments."""
    check_posterior(data, discount, schedule, 150, [NowAndThen(SplitMerge(n_proposals=5), 19)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "discount", "schedule"),
    [*product(COLUMNS, [0.3], ["linear"]), ("mixed", 0.0, "linear"), ("mixed", 0.3, "sequential")],
)
def test_posterior_with_split_merge(data, discount, schedule):
    """20,000 independent chains of 30 sweeps, with split-merge proposals among them."""
    move = NowAndThen(SplitMerge(n_proposals=5), 19)
    counts = check_posterior(data, discount, schedule, 20_000, [move])
    check_controls(counts, data, discount)


@pytest.mark.parametrize("selection", ["window", "stratified"])
@pytest.mark.few(1)
def test_posterior_under_other_selections(selection):
    """At full data the window is a systematic scan, strata change only the order."""
    mixture, bit_generator = make_mixture(
        COLUMNS["mixed"], 0.7, 0.3, selection=selection, seed=3, strata=[0, 0, 1, 1, 2]
    )
    segments = joined(LinearAnneal(n_sweeps=30, final_sweeps=10).path(N))
    counts = end_labels(mixture, bit_generator, segments, 6000)
    check_counts(counts, enumerate_posterior(COLUMNS["mixed"], 0.7, 0.3))


# ------------------------------------------------------------------ broken kernels
def python_chains(kernel, data, concentration, discount, n_chains, n_sweeps=6):
    """End labels of Gibbs chains whose draws are made here from the mixture's own scores."""
    mixture, _ = make_mixture(COLUMNS[data], concentration, discount)
    mixture.subsample.fill()
    rng = np.random.default_rng(4)
    uniforms = rng.random((n_chains, n_sweeps * N)).tolist()
    counts = Counter()
    mixture.replace(np.arange(N), np.zeros(N, int))
    for chain in uniforms:  # from where the chain before ended: 6 sweeps forget it
        for t, u in enumerate(chain):
            row = t % N
            mixture.remove_row(row)
            weights = np.cumsum(np.exp(kernel(mixture, row)))
            mixture.insert_row(row, int(np.searchsorted(weights, u * weights[-1], side="right")))
        counts[mixture.get_labels().tobytes()] += 1
    return canonical_counts(counts)


def right_kernel(mixture, row):
    return np.add(*mixture.scores(row))


def one_cluster_more(mixture, row):
    """Counts the new cluster as one beside itself: an off-by-one that only d > 0 shows."""
    log_prior, log_lik = mixture.scores(row)
    prior = mixture.prior
    log_prior[mixture.open_slot] = math.log(
        prior.concentration + prior.discount * (mixture.n_clusters + 1)
    )
    return log_prior + log_lik


def drops_the_discount(mixture, row):
    log_prior, log_lik = mixture.scores(row)
    sizes = mixture.sizes()
    used = np.flatnonzero(sizes)
    log_prior[used] = np.log(sizes[used])
    return log_prior + log_lik


def a_column_twice(mixture, row):
    """Counts the likelihood twice."""
    log_prior, log_lik = mixture.scores(row)
    return log_prior + 2.0 * log_lik


def test_a_right_kernel_passes():
    counts = python_chains(right_kernel, "bernoulli", 0.2, 0.6, 2000)
    check_counts(counts, posterior("bernoulli", 0.2, 0.6))


@pytest.mark.parametrize("kernel", [one_cluster_more, drops_the_discount, a_column_twice])
@pytest.mark.few(1)
def test_a_broken_kernel_fails(kernel):
    counts = python_chains(kernel, "bernoulli", 0.2, 0.6, 2000)
    assert count_p_value(counts, posterior("bernoulli", 0.2, 0.6)) < REJECT


# ------------------------------------------------------------------ while churning
STRATA = [0, 0, 0, 1, 2]


def stratified_enter(rows):
    """The stratum least present, ties uniform; a row of it uniform."""
    inside = {s: STRATA.count(s) for s in STRATA}
    for row in rows:
        inside[STRATA[row]] -= 1
    open_strata = {STRATA[row] for row in rows}
    least = min(inside[s] for s in open_strata)
    best = [s for s in open_strata if inside[s] == least]
    law = {}
    for s in best:
        members = [row for row in rows if STRATA[row] == s]
        law |= {row: 1 / len(best) / len(members) for row in members}
    return law


SELECTIONS = {
    "random": "random",
    "window": "window",
    "stratified": (uniform, stratified_enter),
}


@cache
def churn_law(n_swaps, selection, discount):
    sizes = annealed_sizes(N, n_swaps)
    return schedule_law(COLUMNS["missing"], sizes, SELECTIONS[selection], 1.0, discount)


@cache
def churn_counts(n_swaps, selection, n_chains):
    mixture, bit_generator = make_mixture(
        COLUMNS["missing"], 1.0, 0.3, selection=selection, seed=5 + n_swaps, strata=STRATA
    )
    schedule = LinearAnneal(n_sweeps=1 + n_swaps, final_sweeps=0)
    return end_labels(mixture, bit_generator, joined(schedule.path(N)), n_chains)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("n_swaps", [0, 1, 2])
@pytest.mark.few(2)
def test_law_of_the_annealed_path_by_few_chains(n_swaps, selection):
    counts = churn_counts(n_swaps, selection, 15_000)
    check_counts(counts, churn_law(n_swaps, selection, 0.3))
    assert count_p_value(counts, churn_law(n_swaps, selection, 0.0)) < REJECT


@pytest.mark.slow
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("n_swaps", [0, 1, 2])
def test_law_of_the_annealed_path(n_swaps, selection):
    """End labels of 250,000 chains against the schedule's own exact law."""
    counts = churn_counts(n_swaps, selection, 250_000)
    check_counts(counts, churn_law(n_swaps, selection, 0.3))
    # controls: another number of swaps, and the discount dropped
    other = churn_law((n_swaps + 1) % 3, selection, 0.3)
    assert count_p_value(counts, other) < REJECT
    assert count_p_value(counts, churn_law(n_swaps, selection, 0.0)) < REJECT


def test_paths_differ_from_the_posterior():
    """Control: the annealed law is not the posterior, and the test tells them apart."""
    counts = churn_counts(0, "random", 15_000)
    assert count_p_value(counts, posterior("missing", 1.0, 0.3)) < REJECT


@pytest.mark.slow
def test_a_falling_and_rising_path():
    sizes = [0, 1, 2, 3, 4, 2, 1, 1, 2, 3, 3]
    mixture, bit_generator = make_mixture(COLUMNS["missing"], 1.0, 0.3, seed=9)
    knots = np.column_stack([np.arange(len(sizes)), sizes])
    counts = Counter()
    for _ in range(50_000):
        restart(mixture, bit_generator)
        churn([mixture], mixture.subsample, bit_generator, knots, 0, len(sizes) - 1)
        counts[mixture.get_labels().tobytes()] += 1
    law = schedule_law(COLUMNS["missing"], sizes, "random", 1.0, 0.3)
    # slots of rows outside S are -1
    check_counts(canonical_counts(counts), law)


def test_two_views_share_one_subsample():
    """Two mixtures in one churn: each has its own law, and both label the same rows."""
    first, bit_generator = make_mixture(COLUMNS["normal"], 1.0, 0.3, seed=10)
    second, _ = make_mixture(COLUMNS["poisson"], 0.5, 0.0)
    second.bind_subsample(first.subsample)
    sizes = annealed_sizes(N, 1)
    knots = np.column_stack([np.arange(len(sizes)), sizes])
    counts = [Counter(), Counter()]
    views = [first, second]
    for _ in range(20_000):
        while first.subsample.size:
            row = first.subsample.leave_row(bit_generator)
            first.remove_row(row)
            second.remove_row(row)
        churn(views, first.subsample, bit_generator, knots, 0, len(sizes) - 1)
        for count, view in zip(counts, views, strict=True):
            count[view.get_labels().tobytes()] += 1
    for view in views:
        view.validate()
    check_counts(
        canonical_counts(counts[0]), schedule_law(COLUMNS["normal"], sizes, "random", 1.0, 0.3)
    )
    check_counts(
        canonical_counts(counts[1]), schedule_law(COLUMNS["poisson"], sizes, "random", 0.5, 0.0)
    )


# ------------------------------------------------------------------ the prior, the energy
@both_priors
def test_silent_likelihood_returns_the_prior(discount):
    columns = [column(family, missing=range(N)) for family in COLUMN_FAMILIES]
    mixture, bit_generator = make_mixture(columns, 1.2, discount, seed=11)
    segments = joined(LinearAnneal(n_sweeps=4, final_sweeps=1).path(N))
    counts = end_labels(mixture, bit_generator, segments, 20_000)
    prior = Target([], 1.2, discount, n_rows=N).posterior()
    check_counts(counts, prior)
    other = Target([], 1.2, 0.3 - discount, n_rows=N).posterior()
    assert count_p_value(counts, other) < REJECT


@both_priors
@pytest.mark.few(1)
def test_energy_of_one_half(discount):
    """At full data with exponent 0.5, with and without split-merge."""
    law = posterior("mixed", 1.0, discount, 0.5)
    mixture, bit_generator = make_mixture(COLUMNS["mixed"], 1.0, discount, seed=12)
    knots = np.array([[0, 0], [N, N], [30 * N, N]])
    for move, n_chains in [(None, 3000), (SplitMerge(n_proposals=9), 300)]:
        counts = Counter()
        for _ in range(n_chains):
            restart(mixture, bit_generator)
            churn([mixture], mixture.subsample, bit_generator, knots, 0, 15 * N, 0.5)
            if move is not None:
                move.sweep(mixture, bit_generator, beta=0.5)
            churn([mixture], mixture.subsample, bit_generator, knots, 15 * N, 16 * N, 0.5)
            counts[mixture.get_labels().tobytes()] += 1
        counts = canonical_counts(counts)
        check_counts(counts, law)
        if move is None:
            assert count_p_value(counts, posterior("mixed", 1.0, discount)) < REJECT


def test_energy_schedule_ends_in_the_posterior():
    mixture, bit_generator = make_mixture(COLUMNS["mixed"], 1.0, 0.3, seed=13)
    schedule = EnergyAnneal(n_sweeps=14, beta_min=0.2, final_sweeps=9, start="sequential")
    segments = segments_of(schedule, N)
    assert min(segment.beta for segment in segments) < 0.5
    counts = end_labels(mixture, bit_generator, segments, 6000)
    check_counts(counts, posterior("mixed", 1.0, 0.3))


# ------------------------------------------------------------------ moves leave their law


def after_moves(data, concentration, discount, moves, n_chains, *, beta=1.0, start=None, seed=14):
    """End labels after moves, from exact draws of the target (or another law)."""
    mixture, bit_generator = make_mixture(COLUMNS[data], concentration, discount, seed=seed)
    law = posterior(data, concentration, discount, beta) if start is None else start
    counts = Counter()
    for labels in draw_states(law, n_chains, seed):
        set_partition(mixture, labels)
        for move in moves:
            move.sweep(mixture, bit_generator, beta=beta)
        counts[mixture.get_labels().tobytes()] += 1
    mixture.validate()
    return canonical_counts(counts)


def exact(move):
    """A move with its defaults, as it is once burn-in is over."""
    made = move()
    made.burn_in = False
    return made


# every registered move, with Gibbs after it
MOVES = {
    **{name: [exact(move), Gibbs()] for name, move in room.MOVES.items()},
    "split_merge": [SplitMerge(n_proposals=50)],
    "both": [SplitMerge(n_proposals=20), Gibbs()],
    "looks": [SplitMerge(n_proposals=50, first_look=3)],
}


@pytest.mark.parametrize("data", ["mixed", "missing"])
@both_priors
@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.few(8)
def test_moves_leave_the_posterior(data, discount, moves):
    counts = after_moves(data, 1.0, discount, MOVES[moves], 250)
    check_counts(counts, posterior(data, 1.0, discount))


@pytest.mark.parametrize(("concentration", "discount"), [(0.4, 0.6), (3.0, 0.0), (-0.1, 0.3)])
def test_split_merge_leaves_other_priors(concentration, discount):
    counts = after_moves("mixed", concentration, discount, MOVES["split_merge"], 250)
    check_counts(counts, posterior("mixed", concentration, discount))


@pytest.mark.slow
def test_split_merge_of_uniform_pairs_leaves_the_posterior():
    move = SplitMerge(n_proposals=20, uniform_pairs=True)
    counts = after_moves("mixed", 1.0, 0.3, [move], 5000)
    check_counts(counts, posterior("mixed", 1.0, 0.3))


@pytest.mark.parametrize("moves", ["split_merge", "looks"])
def test_split_merge_leaves_the_tempered_posterior(moves):
    counts = after_moves("mixed", 1.0, 0.3, MOVES[moves], 250, beta=0.5)
    check_counts(counts, posterior("mixed", 1.0, 0.3, 0.5))


def test_split_merge_moves():
    """Control: from another law the moves go to the posterior, so they do move."""
    start = normalised(dict.fromkeys(partitions(N), 0.0))
    none = after_moves("mixed", 1.0, 0.3, [], 5000, start=start)
    some = after_moves("mixed", 1.0, 0.3, [SplitMerge(n_proposals=150)], 150, start=start)
    assert count_p_value(none, posterior("mixed", 1.0, 0.3)) < REJECT
    check_counts(some, posterior("mixed", 1.0, 0.3))


def test_split_merge_takes_the_prior_from_the_mixture():
    """Control: the posterior of another discount is not left."""
    start = posterior("mixed", 1.0, 0.0)
    counts = after_moves("mixed", 1.0, 0.6, [SplitMerge(n_proposals=40)], 800, start=start)
    assert count_p_value(counts, start) < REJECT


@both_priors
@pytest.mark.parametrize("labels", [(0, 1, 0, 1, 0, 1), (0, 1, 0, 1, 1, 1), (0, 1, 0, 1, 0, 0)])
@pytest.mark.few(3)
def test_how_often_two_clusters_merge(labels, discount):
    """One proposal, many times, of rows that overlap: a merge is accepted with probabilities in
    between, which depend on small ones of its forced allocation."""
    n, n_times, expected = 6, 6000, 0.0
    columns = [("normal", [0.0, 2.0, -0.4, 2.6, 0.3, 1.8], EXAMPLES["normal"][1])]
    target = Target(columns, 1.0, discount)
    for i, j in permutations(range(n), 2):
        if labels[i] != labels[j]:
            proposed = (1.0 if labels.count(labels[i]) == 1 else 0.5) / labels.count(labels[j])
            others = [row for row in range(n) if row not in (i, j)]
            for order in permutations(others):
                for share, log_z in forced_paths(target, i, j, order, labels):
                    log_ratio = log_split_ratio(target, i, j, tuple(range(n)), 1, log_z)
                    log_ratio += math.log(proposed * (n - 1))  # of one cluster, j is any other row
                    accepted = share * math.exp(min(0.0, -log_ratio))
                    expected += proposed * accepted / n / math.factorial(n - 2)
    mixture, bit_generator = make_mixture(columns, 1.0, discount, seed=18)
    move, merged = SplitMerge(n_proposals=1), 0
    for _ in range(n_times):
        set_partition(mixture, labels)
        move.sweep(mixture, bit_generator)
        merged += mixture.n_clusters == 1
    assert 0.2 < expected < 0.4
    check_counts({True: merged, False: n_times - merged}, {True: expected, False: 1.0 - expected})


@both_priors
@pytest.mark.parametrize("labels", [(0, 0, 0, 0, 1), (0, 0, 1, 1, 2), (0, 1, 0, 2, 2)])
@pytest.mark.parametrize("looks", [(), (3,)])
def test_one_proposal_beside_other_clusters(labels, discount, looks):
    """Where a proposal ends, many times, of rows that would join clusters with unlike chances."""
    columns = [("normal", [0.0, 1.0, 1.4, 2.6, 4.0], EXAMPLES["normal"][1])]
    target, n_times, expected, counts = Target(columns, 1.0, discount), 4000, Counter(), Counter()
    given = target, labels, forced_paths, always, near_partners, (looks, looks)
    for state, probability in split_merge_transitions(*given):
        expected[canonical(state)] += probability
    mixture, bit_generator = make_mixture(columns, 1.0, discount, seed=19)
    move = SplitMerge(n_proposals=1, first_look=min(looks, default=n_times))
    for _ in range(n_times):
        set_partition(mixture, labels)
        move.sweep(mixture, bit_generator)
        counts[canonical(mixture.get_labels().tolist())] += 1
    check_counts(counts, expected)


class Skipping(SplitMerge):
    """Proposals of more than two rows are seldom made."""

    def _tries(self, n, n_columns):
        return self.n_proposals, 2.0


@pytest.mark.parametrize("data", ["mixed", "missing"])
@both_priors
def test_split_merge_that_skips_pairs_leaves_the_posterior(data, discount):
    counts = after_moves(data, 1.0, discount, [Skipping(n_proposals=100)], 250)
    check_counts(counts, posterior(data, 1.0, discount))


@pytest.mark.parametrize("labels", [[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 0, 1, 2, 2]])
def test_pairs_are_skipped_by_the_rows_of_both_clusters(labels):
    n, n_times = len(labels), 3000
    columns = [(f, values[:n], hyper) for f, values, hyper in COLUMNS["mixed"]]
    mixture, bit_generator = make_mixture(columns, 1.0, 0.3, seed=17)
    target, expected = Target(columns, 1.0, 0.3), 0.0
    for i in range(n):
        for j, chance in near_partners(target, tuple(labels), i).items():
            size = sum(label in (labels[i], labels[j]) for label in labels)
            expected += chance * min(1.0, 2.0 / size) / n
    made = 0
    for _ in range(n_times):
        set_partition(mixture, labels)
        made += Skipping(n_proposals=1).sweep(mixture, bit_generator).proposed
    assert abs(made - n_times * expected) <= 5.0 * math.sqrt(n_times * expected)


def test_split_merge_in_the_long_run():
    """One chain of n = 4, split-merge with Gibbs, thinned until draws are nearly independent."""
    columns = [(f, values[:4], hyper) for f, values, hyper in COLUMNS["missing"]]
    mixture, bit_generator = make_mixture(columns, 0.8, 0.4, seed=15)
    set_partition(mixture, [0, 0, 1, 1])
    moves = [SplitMerge(), Gibbs()]
    counts = Counter()
    for _ in range(400):
        for move in moves:
            move.sweep(mixture, bit_generator)
        for _ in range(8):
            moves[1].sweep(mixture, bit_generator)
        counts[mixture.get_labels().tobytes()] += 1
    mixture.validate()
    check_counts(canonical_counts(counts), enumerate_posterior(columns, 0.8, 0.4))


def test_split_merge_of_few_rows():
    columns = [("poisson", [0, 9], {"shape": 1.0, "rate": 0.5})]
    mixture, bit_generator = make_mixture(columns, 1.0, 0.3, seed=16)
    assert SplitMerge().sweep(mixture, bit_generator) == (0, 0, 0)
    counts = Counter()
    law = enumerate_posterior(columns, 1.0, 0.3)
    for labels in draw_states(law, 2000, 16):
        set_partition(mixture, labels)
        info = SplitMerge(n_proposals=3).sweep(mixture, bit_generator)
        assert info.proposed == 3 >= info.accepted
        counts[canonical(mixture.get_labels().tolist())] += 1
    check_counts(counts, law)


# ------------------------------------------------------------------ hyperparameters inferred


@cache
def inferred(data, prior):
    """(columns, grids per column, exact joint law of the state)."""
    families = {"others": ["bernoulli", "poisson"], "codes": ["categorical"]}.get(data, [data])
    columns, grids, oracle = [], {}, []
    for j, family in enumerate(families):
        values = column(family, missing={3} if j == 0 else ())[1]
        grids[j], mappings = hyper_options(family)
        columns.append((family, values, mappings[0]))
        oracle.append((family, values, mappings))
    alphas, discounts = ([0.3, 2.0], [0.0, 0.4]) if prior else (1.0, 0.3)
    return columns, oracle, grids, enumerate_joint(oracle, alphas, discounts)


class FromThePrior(FeatureHyperparameters):
    """Control: draws without a look at the data."""

    def sweep(self, state, bit_generator, *, beta=1.0):
        return super().sweep(state, bit_generator, beta=0.0)


def hyper_states(data, prior, features, n_chains, seed):
    """End states of chains that start in the exact joint law and make two rounds of moves."""
    columns, oracle, grids, law = inferred(data, prior)
    mixture, bit_generator = make_mixture(columns, 1.0, 0.3, seed=seed)
    moves = [Gibbs(), features(grids)]
    if prior:
        moves += [PartitionHyperparameters(PRIOR_GRID)]
    counts = Counter()
    for labels, alpha, d, indices in draw_states(law, n_chains, seed):
        mixture.set_prior(PitmanYor(alpha, d))
        set_hypers(mixture, oracle, indices)
        set_partition(mixture, labels)
        for _ in range(2):
            for move in moves:
                move.sweep(mixture, bit_generator)
        counts[state_of(mixture, oracle)] += 1
    mixture.validate()
    return counts, law


INFERRED_DATA = [
    "normal",
    "others",
    "codes",
    "log_normal",
    "semi_continuous",
    "semi_continuous_log_normal",
    "negative_binomial",
]


@pytest.mark.parametrize("data", INFERRED_DATA)
@pytest.mark.parametrize("prior", [False, True], ids=["fixed", "inferred"])
@pytest.mark.few(7)
def test_hyperparameters_leave_the_joint_law(data, prior):
    counts, law = hyper_states(data, prior, FeatureHyperparameters, 500, 17)
    for positions in [(0,), (1, 2), (3,), (0, 1, 2, 3)]:
        check_counts(summed(counts, *positions), marginal(law, *positions))


def test_hyperparameters_drawn_from_the_prior_fail():
    counts, law = hyper_states("others", True, FromThePrior, 1000, 18)
    assert count_p_value(counts, law) < REJECT


def test_concentration_and_discount_off_by_one_fail():
    """Control: scores of a partition that has one cluster more."""

    class OneMore(PartitionHyperparameters):
        def sweep(self, state, bit_generator, *, beta=1.0):
            sizes = np.append(state.sizes(), 1)
            scores = state.prior.grid_scores(sizes, self.grid.points)
            weights = np.cumsum(np.exp(scores - scores.max()))
            u = np.random.Generator(bit_generator).random() * weights[-1]
            state.set_prior(PitmanYor(*self.grid.points[int(np.searchsorted(weights, u))]))

    columns, oracle, grids, law = inferred("others", True)
    p_values = []
    for move in (PartitionHyperparameters(PRIOR_GRID), OneMore(PRIOR_GRID)):
        mixture, bit_generator = make_mixture(columns, 1.0, 0.3, seed=19)
        counts = Counter()
        for labels, alpha, d, _ in draw_states(law, 4000, 19):
            mixture.set_prior(PitmanYor(alpha, d))
            set_partition(mixture, labels)
            move.sweep(mixture, bit_generator)
            counts[labels, mixture.prior.concentration, mixture.prior.discount] += 1
        p_values.append(count_p_value(counts, marginal(law, 0, 1, 2)))
    assert p_values[0] > 1e-4
    assert p_values[1] < REJECT


def test_hyperparameters_of_an_empty_subsample_come_from_the_grid():
    columns, _, grids, _ = inferred("others", False)
    mixture, bit_generator = make_mixture(columns, 1.0, 0.3, seed=20)
    counts = Counter()
    move = PartitionHyperparameters(PRIOR_GRID)
    for _ in range(2000):
        move.sweep(mixture, bit_generator)
        counts[mixture.prior.concentration, mixture.prior.discount] += 1
    check_counts(counts, {tuple(point): 0.25 for point in PRIOR_GRID.tolist()})


# ------------------------------------------------------------------ whole chains
# Coordinates that are drawn one by one mix slowly: 10 full-data sweeps are too few.
# Long: two hyperparameters have two modes with hardly anything between them.
INFERRED = LinearAnneal(n_sweeps=210, final_sweeps=200)


def check_chains(data, schedule, moves, n_chains, seed):
    """Final draws of run_chain, everything inferred, against the joint law."""
    columns, oracle, grids, law = inferred(data, True)
    table = make_table(columns)
    families = {}
    for j, (family, _, _) in enumerate(columns):
        families.setdefault(family, []).append(j)
    hyper = {j: hyper_vector(family, h) for j, (family, _, h) in enumerate(columns)}
    families = {family: np.array(at) for family, at in families.items()}
    model = ChainPlan(table, families, hyper, grids, PRIOR_GRID, moves)
    index = [[tuple(hyper_vector(c[0], m)) for m in c[2]] for c in oracle]
    counts = Counter()
    for child in np.random.SeedSequence(seed).spawn(n_chains):
        (draw,) = run_chain(model, schedule, child)["draws"]
        indices = []
        for j, (family, _, _) in enumerate(columns):
            if family in (
                "categorical",
                "bernoulli",
            ):  # one column of these, so all entries are its
                now = tuple(draw[f"{family}/pseudo_counts"])
            else:
                at = list(families[family]).index(j)
                now = tuple(
                    draw[f"{family}/{name}"][at] for name in FAMILIES[family].coordinate_names
                )
            indices.append(index[j].index(now))
        counts[
            canonical(draw["labels"].tolist()),
            float(draw["concentration"]),
            float(draw["discount"]),
            tuple(indices),
        ] += 1
    for positions in [(0,), (1, 2), (3,), (0, 1, 2, 3)]:
        check_counts(summed(counts, *positions), marginal(law, *positions))


@pytest.mark.slow
def test_chains_with_everything_inferred_by_few():
    check_chains("others", INFERRED, ("gibbs",), 50, 21)


@pytest.mark.slow
@pytest.mark.parametrize("data", INFERRED_DATA)
@pytest.mark.parametrize("moves", [("gibbs",), ("gibbs", "split_merge")], ids=["gibbs", "both"])
def test_chains_with_everything_inferred(data, moves):
    check_chains(data, INFERRED, moves, 500, 22)


def test_rows_of_a_cluster_are_exchangeable():
    """Relabelled slots and another order of rows give the same law: nothing depends on slots."""
    order = [3, 0, 4, 2, 1]
    columns = [(f, [values[i] for i in order], hyper) for f, values, hyper in COLUMNS["mixed"]]
    mixture, bit_generator = make_mixture(columns, 1.0, 0.3, seed=23)
    segments = joined(SequentialGibbs(n_sweeps=12).path(N))
    counts = Counter()
    for _ in range(5000):
        restart(mixture, bit_generator)
        run_segments(mixture, bit_generator, segments)
        labels = np.empty(N, int)
        labels[order] = mixture.get_labels()
        counts[canonical(labels.tolist())] += 1
    assert len(clusters(max(counts, key=counts.get))) >= 1
    check_counts(counts, posterior("mixed", 1.0, 0.3))
