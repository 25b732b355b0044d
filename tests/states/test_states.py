"""Subsamples and mixtures: laws of who enters and leaves, invariants, contracts of later work.

The contracts at the end have no estimator behind them: a run resumed from arrays, segments of a
permutation in spare blocks, rows appended, a feature moved from one view to another.
Random tests: fixed seeds, one try, false alarm once in 10,000.
"""

import math
import pickle
from collections import Counter, defaultdict
from itertools import pairwise, permutations

import numpy as np
import pytest

from oracles.bits import same_arrays
from oracles.enumeration import check_counts, count_p_value
from oracles.mixtures import (
    COLUMN_FAMILIES,
    encode,
    hyper_vector,
    in_cells,
    make_blocks,
    make_mixture,
    make_table,
    random_column,
    random_columns,
    reference_log_likelihood,
    set_partition,
)
from oracles.reference import log_marginal, log_predictive
from skanneal.chains import Chain, ChainPlan, run_chain
from skanneal.chains._moves import ChainMoves
from skanneal.families import FAMILIES
from skanneal.moves import SplitMerge, churn
from skanneal.parallel import StopFlag
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import LinearAnneal, PriorGibbs, size_at
from skanneal.states import CrossCat, Mixture, Subsample

every_selection = pytest.mark.parametrize("selection", ["random", "window", "stratified"])
STRATA = [0, 0, 0, 1, 2]


def twin(bit_generator):
    """Another bit generator in the same state."""
    new = type(bit_generator)()
    new.state = bit_generator.state
    return new


# ------------------------------------------------------------------ laws of the subsample
STEPS = "++-++-++-"  # + enters, - leaves


def sequence_law(n, steps, enter, leave):
    """Probability of every sequence of rows that enter and leave."""
    law = {(): 1.0}
    for step in steps:
        longer = defaultdict(float)
        for rows, probability in law.items():
            inside = set()
            for sign, row in zip(steps, rows, strict=False):
                (inside.add if sign == "+" else inside.discard)(row)
            chances = enter(n, inside) if step == "+" else leave(inside)
            for row, chance in chances.items():
                longer[(*rows, row)] += probability * chance
        law = longer
    return dict(law)


def uniform_enter(n, inside):
    outside = [row for row in range(n) if row not in inside]
    return {row: 1 / len(outside) for row in outside}


def uniform_leave(inside):
    return {row: 1 / len(inside) for row in inside}


def stratified_enter(n, inside):
    counts = {s: sum(STRATA[row] == s for row in inside) for s in set(STRATA)}
    waiting = {s: [r for r in range(n) if STRATA[r] == s and r not in inside] for s in counts}
    least = min(counts[s] for s in counts if waiting[s])
    best = [s for s in counts if waiting[s] and counts[s] == least]
    return {row: 1 / len(best) / len(waiting[s]) for s in best for row in waiting[s]}


def sequences(subsample, steps, n_draws, bit_generator):
    """Counts of the sequences of rows, from the empty subsample; a window is shuffled anew."""
    counts = Counter()
    for _ in range(n_draws):
        while subsample.size:
            subsample.leave_row(bit_generator)
        if subsample.selection == "window":
            subsample = Subsample(subsample.n_rows, "window", bit_generator)
        rows = [
            subsample.enter_row(bit_generator) if s == "+" else subsample.leave_row(bit_generator)
            for s in steps
        ]
        counts[tuple(rows)] += 1
    subsample.validate()
    return counts


def test_random_selection():
    counts = sequences(Subsample(4), "++-++-+", 40_000, np.random.PCG64(1))
    law = sequence_law(4, "++-++-+", uniform_enter, uniform_leave)
    assert len(law) == 4 * 3 * 2 * 3 * 2 * 3 * 2
    check_counts(counts, law)


def test_stratified_selection():
    steps = "+++-+-+"
    subsample = Subsample(5, "stratified", None, STRATA)
    counts = sequences(subsample, steps, 60_000, np.random.PCG64(2))
    check_counts(counts, sequence_law(5, steps, stratified_enter, uniform_leave))
    # control: strata ignored
    assert count_p_value(counts, sequence_law(5, steps, uniform_enter, uniform_leave)) < 1e-6


def test_window_selection():
    bit_generator = np.random.PCG64(3)
    subsample = Subsample(4, "window", bit_generator)
    counts = sequences(subsample, STEPS, 20_000, bit_generator)
    law = {}
    for order in permutations(range(4)):
        head = tail = 0
        rows = []
        for step in STEPS:
            rows.append(order[(head if step == "+" else tail) % 4])
            head, tail = head + (step == "+"), tail + (step == "-")
        law[tuple(rows)] = 1 / math.factorial(4)
    check_counts(counts, law)


def test_window_at_full_data_is_a_systematic_scan():
    bit_generator = np.random.PCG64(4)
    subsample = Subsample(7, "window", bit_generator)
    order = [subsample.enter_row(bit_generator) for _ in range(7)]
    for _ in range(3):
        for row in order:
            assert subsample.leave_row(bit_generator) == row
            assert subsample.enter_row(bit_generator) == row


def test_strata_stay_balanced_while_they_grow():
    strata = np.repeat([0, 1, 2, 3], [500, 40, 7, 1])
    bit_generator = np.random.PCG64(5)
    subsample = Subsample(len(strata), "stratified", bit_generator, strata)
    total = np.bincount(strata)
    while subsample.size < len(strata):
        subsample.enter_row(bit_generator)
        inside = np.bincount(strata[subsample.rows()], minlength=4)
        waiting = inside < total
        if waiting.any():
            assert inside[waiting].max() - inside[waiting].min() <= 1
            assert np.all(inside[~waiting] <= inside[waiting].min() + 1)
    subsample.validate()


@every_selection
def test_subsample_as_arrays(selection):
    bit_generator = np.random.PCG64(6)
    subsample = Subsample(5, selection, bit_generator, STRATA)
    for step in "+++-+-":
        (subsample.enter_row if step == "+" else subsample.leave_row)(bit_generator)
    again = Subsample.from_arrays(pickle.loads(pickle.dumps(subsample.to_arrays())))
    again.validate()
    other = twin(bit_generator)
    assert same_arrays(again.to_arrays(), subsample.to_arrays())
    for step in "+-+--++-":
        first = (subsample.enter_row if step == "+" else subsample.leave_row)(bit_generator)
        assert first == (again.enter_row if step == "+" else again.leave_row)(other)
    assert np.array_equal(subsample.rows(), again.rows())


@every_selection
def test_subsample_empty_full_and_filled(selection):
    bit_generator = np.random.PCG64(7)
    subsample = Subsample(5, selection, bit_generator, STRATA)
    with pytest.raises(ValueError, match="empty"):
        subsample.leave_row(bit_generator)
    subsample.fill()
    subsample.validate()
    assert sorted(subsample.rows()) == list(range(5))
    with pytest.raises(ValueError, match="every row"):
        subsample.enter_row(bit_generator)
    for _ in range(5):
        subsample.leave_row(bit_generator)
    assert len(subsample.rows()) == subsample.size == 0


def test_unknown_selection():
    with pytest.raises(ValueError, match="selection"):
        Subsample(3, "sorted")


@every_selection
def test_appended_rows_enter_by_the_same_law(selection):
    """Rows of S stay, the new ones are outside; then each selection goes on by its own law."""
    bit_generator = np.random.PCG64(8)
    for tail in range(4):  # the ring may be turned
        subsample = Subsample(5, selection, bit_generator, STRATA)
        for _ in range(3):
            subsample.enter_row(bit_generator)
        for _ in range(tail):
            subsample.leave_row(bit_generator)
            subsample.enter_row(bit_generator)
        before = sorted(subsample.rows())
        subsample.append_rows(3, [1, 3, 3])
        subsample.validate()
        assert sorted(subsample.rows()) == before
        strata = np.array([*STRATA, 1, 3, 3])
        inside = set(before)
        while subsample.size < 8:
            row = subsample.enter_row(bit_generator)
            if selection == "stratified":
                counts = np.bincount(strata[list(inside)], minlength=4)
                waiting = np.bincount(strata, minlength=4) > counts
                assert counts[strata[row]] == counts[waiting].min()
            assert row not in inside
            inside.add(row)
        assert inside == set(range(8))
    if selection == "window":  # still a scan in one order
        order = [subsample.leave_row(bit_generator) for _ in range(8)]
        assert sorted(order) == list(range(8))


def test_a_window_takes_appended_rows_after_those_waiting():
    bit_generator = np.random.PCG64(9)
    subsample = Subsample(4, "window", bit_generator)
    first = [subsample.enter_row(bit_generator) for _ in range(3)]
    gone = subsample.leave_row(bit_generator)
    subsample.append_rows(2)
    waiting = ({*range(4)} - {*first}).pop()
    entered = [subsample.enter_row(bit_generator) for _ in range(4)]
    assert entered[0] == waiting
    assert gone == first[0] and gone in entered[1:] and {4, 5} < {*entered}


# ------------------------------------------------------------------ the churn
PATHS = [
    [(0, 0), (30, 10), (50, 10)],
    [(0, 0), (10, 10), (14, 3), (40, 9), (60, 10)],
    [(0, 0), (7, 3), (20, 3), (21, 2), (61, 10), (62, 10)],
]


@every_selection
@pytest.mark.parametrize("path", PATHS)
def test_sizes_follow_the_path(path, selection):
    columns = random_columns(["bernoulli"], 10, 10)
    strata = np.arange(10) % 3
    mixture, bit_generator = make_mixture(
        columns, 1.0, 0.2, selection=selection, seed=11, strata=strata
    )
    knots = np.array(path)
    for a in range(path[-1][0]):
        assert churn([mixture], mixture.subsample, bit_generator, knots, a, a + 1) == a + 1
        assert mixture.subsample.size == size_at(knots, a + 1)
        mixture.subsample.validate()
        mixture.validate()


@every_selection
@pytest.mark.parametrize("path", PATHS)
def test_a_long_churn_in_pieces(path, selection):
    """Cut anywhere, also where the planner's own pieces end, a churn keeps to its path."""
    columns = random_columns(["bernoulli"], 10, 10)
    for pieces in (1, 7):
        mixture, bit_generator = make_mixture(
            columns, 1.0, 0.2, selection=selection, seed=12, strata=np.arange(10) % 3
        )
        knots = np.array([*path, (20_000, 10)])
        cuts = np.linspace(0, 20_000, pieces + 1).astype(int)
        for start, stop in pairwise(cuts):
            churn([mixture], mixture.subsample, bit_generator, knots, int(start), int(stop))
        mixture.validate()
        assert mixture.subsample.size == 10


def test_a_raised_flag_ends_a_churn():
    mixture, bit_generator = make_mixture(random_columns(["bernoulli"], 10, 10), seed=13)
    flag = np.ones(1, np.int32)
    knots = np.array([[0, 0], [10, 10]])
    assert churn([mixture], mixture.subsample, bit_generator, knots, 0, 10, stop_flag=flag) == 0
    mixture.validate()


# ------------------------------------------------------------------ invariants of a mixture
def check_log_prior(mixture, row):
    """Prior weights of every slot: used, the open one, masked."""
    log_prior, log_lik = mixture.scores(row)
    sizes = mixture.sizes()[: len(log_prior)]
    prior, n_clusters = mixture.prior, mixture.n_clusters
    expected = np.full(len(log_prior), -np.inf)
    expected[sizes > 0] = np.log(sizes[sizes > 0] - prior.discount)
    weight = prior.concentration + prior.discount * n_clusters if n_clusters else 1.0
    expected[mixture.open_slot] = math.log(weight)
    np.testing.assert_allclose(log_prior, expected, rtol=1e-6, atol=1e-6)
    assert np.all(np.isfinite(log_lik))
    assert mixture.sizes()[len(log_prior) :].sum() == 0


def any_slot(mixture, rng):
    """A used slot, the open one, or any below 80."""
    used = np.flatnonzero(mixture.sizes())
    choice = rng.integers(4)
    if choice == 0 and len(used):
        return int(rng.choice(used))
    return mixture.open_slot if choice < 3 else int(rng.integers(80))


@every_selection
@pytest.mark.parametrize("families", [["normal"], ["categorical", "poisson"], [*COLUMN_FAMILIES]])
def test_random_operations(families, selection):
    """Rows in and out of any slot, compact, new partitions, arrays: all invariants after each."""
    n = 100
    columns = random_columns(families, n, 14)
    strata = np.arange(n) % 4
    mixture, bit_generator = make_mixture(
        columns, 2.0, 0.3, selection=selection, seed=15, strata=strata
    )
    rng = np.random.default_rng(16)
    for step in range(600):
        grow = rng.random() < (0.8 if step < 200 else 0.3 if step < 400 else 0.6)
        subsample = mixture.subsample
        if grow and subsample.size < n:
            row = subsample.enter_row(bit_generator)
            mixture.insert_row(row, any_slot(mixture, rng))
        elif subsample.size:
            mixture.remove_row(subsample.leave_row(bit_generator))
        if step % 97 == 96:
            mixture.compact()
            assert mixture.n_tiles <= mixture.n_clusters // 16 + 1
        if step % 150 == 149:
            rows = subsample.rows()
            mixture.replace(rows, rng.integers(int(rng.integers(1, 70)), size=len(rows)))
        if step % 170 == 169:
            arrays = mixture.to_arrays()
            mixture = Mixture.from_arrays(arrays, mixture.table, subsample)
            assert same_arrays(mixture.to_arrays(), arrays)
        if step % 20 == 0:
            mixture.validate()
            subsample.validate()
            check_log_prior(mixture, 0)
    mixture.validate()
    expected = reference_log_likelihood(columns, mixture.get_labels())
    assert mixture.log_likelihood() == pytest.approx(expected, rel=1e-9)


def test_slots_open_empty_and_open_again():
    columns = random_columns([*COLUMN_FAMILIES], 70, 17)
    mixture, _ = make_mixture(columns, 1.0, 0.5)
    mixture.bind_subsample(None)
    for row in range(70):  # growth through 16, 32 and 64 slots
        assert mixture.open_slot == row
        mixture.insert_row(row, mixture.open_slot)
        check_log_prior(mixture, row)
        mixture.validate()
    assert mixture.n_clusters == 70 and mixture.n_slots >= 71
    for row in (40, 3, 69, 17):
        mixture.remove_row(row)
        mixture.validate()
        check_log_prior(mixture, row)
    assert mixture.open_slot == 3
    mixture.insert_row(17, 3)
    assert mixture.open_slot == 17
    mixture.insert_row(3, 17)
    assert mixture.open_slot == 40
    mixture.insert_row(40, 0)
    assert mixture.open_slot == 40
    mixture.validate()
    for row in np.random.default_rng(18).permutation(70):
        if mixture.get_labels()[row] >= 0:
            mixture.remove_row(row)
    mixture.validate()
    assert mixture.n_clusters == 0 and mixture.open_slot == 0
    empty = make_mixture(columns, 1.0, 0.5)[0]
    np.testing.assert_array_equal(mixture.scores(5)[1][:16], empty.scores(5)[1])


def test_compact_frees_tiles_and_keeps_the_partition():
    columns = random_columns([*COLUMN_FAMILIES], 66, 19)
    mixture, bit_generator = make_mixture(columns, 1.0, 0.3)
    labels = np.arange(66)
    set_partition(mixture, labels)
    for _ in range(60):
        mixture.remove_row(mixture.subsample.leave_row(bit_generator))
    rows = np.sort(mixture.subsample.rows())
    before = mixture.log_joint()
    _, log_weights = mixture.score_rows(mixture.table, 0, 1)
    mixture.compact()
    mixture.validate()
    assert mixture.n_tiles == 1
    assert sorted(mixture.get_labels()[rows]) == list(range(6))
    assert mixture.log_joint() == pytest.approx(before, rel=1e-12)
    np.testing.assert_array_equal(mixture.score_rows(mixture.table, 0, 1)[1], log_weights)


def test_members_sizes_and_errors():
    mixture, bit_generator = make_mixture(random_columns(["poisson"], 6, 20))
    set_partition(mixture, [0, 2, 2, 0, 5, 2])
    assert sorted(mixture.members(2)) == [1, 2, 5]
    assert mixture.members(1).size == 0
    assert mixture.sizes()[:6].tolist() == [2, 0, 3, 0, 0, 1]
    with pytest.raises(ValueError, match="already"):
        mixture.insert_row(0, 0)
    mixture.remove_row(0)
    with pytest.raises(ValueError, match="no label"):
        mixture.remove_row(0)
    with pytest.raises(AssertionError, match="subsample"):
        mixture.validate()


def test_log_joint_and_score_rows():
    columns = random_columns([*COLUMN_FAMILIES], 30, 21)
    mixture, _ = make_mixture(columns, 0.7, 0.3)
    labels = np.random.default_rng(22).choice([0, 1, 4, 20], 30)
    set_partition(mixture, labels)
    sizes = np.bincount(labels)
    sizes = sizes[sizes > 0]
    log_likelihood = reference_log_likelihood(columns, labels)
    log_prior = PitmanYor(0.7, 0.3).log_probability(sizes)
    assert mixture.log_likelihood() == pytest.approx(log_likelihood, rel=1e-10)
    assert mixture.log_joint() == pytest.approx(log_prior + log_likelihood, rel=1e-10)
    assert mixture.log_joint(0.5) == pytest.approx(log_prior + log_likelihood / 2, rel=1e-10)
    scores, log_weights = mixture.score_rows(mixture.table, 5, 9)
    weights = np.append(sizes - 0.3, 0.7 + 0.3 * 4) / 30.7
    np.testing.assert_allclose(np.exp(log_weights), weights, rtol=1e-12)
    assert weights.sum() == pytest.approx(1.0)
    for row in range(5, 9):
        for at, k in enumerate([0, 1, 4, 20, None]):
            expected = sum(
                log_predictive(f, values[row], [values[i] for i in np.flatnonzero(labels == k)], h)
                for f, values, h in columns
            )
            assert scores[row - 5, at] == pytest.approx(expected, rel=1e-8, abs=1e-9)


def test_a_mixture_without_rows_answers_queries():
    columns = random_columns([*COLUMN_FAMILIES], 30, 23)
    mixture, _ = make_mixture(columns, 0.7, 0.3)
    set_partition(mixture, np.random.default_rng(24).integers(3, size=30))
    bare = Mixture.from_arrays(mixture.to_arrays(), mixture.table.empty_like())
    first, second = mixture.score_rows(mixture.table), bare.score_rows(mixture.table)
    assert first[0].tobytes() == second[0].tobytes()
    assert first[1].tobytes() == second[1].tobytes()


# ------------------------------------------------------------------ the resume law
@every_selection
def test_a_resumed_churn_is_bit_for_bit(selection):
    n = 300
    columns = random_columns([*COLUMN_FAMILIES], n, 25)
    mixture, bit_generator = make_mixture(
        columns, 8.0, 0.3, selection=selection, seed=26, strata=np.arange(n) % 7
    )
    knots = np.array([[0, 0], [2 * n, n], [4 * n, n]])
    move = SplitMerge(n_proposals=4)
    for stop in (n // 2, n, 2 * n, 3 * n, 4 * n):
        start = {n // 2: 0, n: n // 2, 2 * n: n, 3 * n: 2 * n, 4 * n: 3 * n}[stop]
        arrays = pickle.loads(pickle.dumps((mixture.to_arrays(), mixture.subsample.to_arrays())))
        subsample = Subsample.from_arrays(arrays[1])
        again = Mixture.from_arrays(arrays[0], mixture.table, subsample)
        other = twin(bit_generator)
        for state, rng in ((mixture, bit_generator), (again, other)):
            churn([state], state.subsample, rng, knots, start, stop, 0.7)
            state.compact()
            move.sweep(state, rng)
        again.validate()
        assert same_arrays(again.to_arrays(), mixture.to_arrays())
        assert same_arrays(subsample.to_arrays(), mixture.subsample.to_arrays())
        assert other.state == bit_generator.state


def model_of(columns, moves=("gibbs", "split_merge"), strata=None):
    """A ChainPlan with everything inferred."""
    table = make_table(columns)
    families, grids = {}, {}
    for j, (family, _, _) in enumerate(columns):
        families.setdefault(family, []).append(j)
        cells = table.column(j)[~table.missing(j)]
        grids[j] = FAMILIES[family].grids(cells, int(table.n_levels[j]))
    families = {family: np.array(at) for family, at in families.items()}
    hyper = {j: hyper_vector(c[0], c[2]) for j, c in enumerate(columns)}
    prior_grid = np.array([(a, d) for d in (0.0, 0.3) for a in (0.5, 2.0, 8.0)])
    return ChainPlan(table, families, hyper, grids, prior_grid, moves, strata)


@every_selection
@pytest.mark.parametrize("start", ["empty", "prior"])
@pytest.mark.few(3)
def test_a_resumed_chain_is_bit_for_bit(selection, start):
    n = 160
    model = model_of(random_columns([*COLUMN_FAMILIES], n, 27), strata=np.arange(n) % 5)
    schedule = LinearAnneal(n_sweeps=6, final_sweeps=2, selection=selection)
    if start == "prior":
        schedule = PriorGibbs(n_sweeps=4, selection=selection)
    straight = Chain.begin(model, schedule, np.random.SeedSequence(28))
    straight.run()
    # the chain is stored and restored again and again while it runs
    chain = Chain.begin(model, schedule, np.random.SeedSequence(28))
    n_stored = 0
    while (segment := chain.pacer.next(0.0)) is not None:
        assert chain.make_assignments(segment, StopFlag())
        chain.make_moves(segment, StopFlag())
        if n_stored % 3 == 0:
            arrays = pickle.loads(pickle.dumps(chain.to_arrays()))
            chain = Chain.from_arrays(arrays, model)
        n_stored += 1
    assert n_stored > 3
    chain.state.validate()
    assert same_arrays(chain.draw(), straight.draw())
    assert chain.bit_generator.state == straight.bit_generator.state


def test_further_draws_equal_a_longer_run():
    n = 80
    model = model_of(random_columns([*COLUMN_FAMILIES], n, 29))
    schedule = LinearAnneal(n_sweeps=4, final_sweeps=1)
    seed = np.random.SeedSequence(30)
    together = run_chain(model, schedule, seed, n_draws=3, thin=2)
    first = run_chain(model, schedule, seed, n_draws=1)
    more = run_chain(model, schedule, seed, n_draws=2, thin=2, state=first["state"])
    assert first["complete"] and more["complete"]
    draws = first["draws"] + more["draws"]
    for one, other in zip(together["draws"], draws, strict=True):
        assert same_arrays(one, other)
    assert not same_arrays(draws[0], draws[1])
    for name in set(together["trace"]) - {"seconds"}:
        np.testing.assert_array_equal(together["trace"][name], more["trace"][name])


@pytest.mark.parametrize(("n", "least"), [(8, 8), (30, 10), (60, 15), (120, 30), (260, 50)])
def test_moves_wait_for_rows(n, least, monkeypatch):
    """For 50 of them, or a quarter of all, but at least for 10; at full data they never wait."""
    sizes, real = set(), ChainMoves.make

    def make(self, state, *rest):
        sizes.add(state.subsample.size)
        return real(self, state, *rest)

    monkeypatch.setattr(ChainMoves, "make", make)
    schedule = LinearAnneal(n_sweeps=40, final_sweeps=1)  # a churn for each row or two that enter
    run_chain(model_of(random_columns(["bernoulli"], n, 1)), schedule, np.random.SeedSequence(2))
    assert least <= min(sizes) <= 1.5 * least and max(sizes) == n


# ------------------------------------------------------------------ contracts of later work
@pytest.mark.parametrize("family", COLUMN_FAMILIES)
@pytest.mark.few(4)
def test_fifty_segments_as_a_beam(family):
    """Segments that end at a row, each one row longer than the next: running statistics."""
    n = 60
    columns = random_columns([family], n, 31)
    block = make_blocks(make_table(columns), columns)[0]
    columns = in_cells(columns)
    beam = block.spare(50)
    assert beam.n_slots >= 50 and not beam.sizes().any()
    first = {}  # slot -> first row of its segment
    for r in range(n):
        slot = r % 50  # the oldest segment is given up
        if slot in first:
            beam.build(*_rows_of(first, slot, r), 50)
        first[slot] = r
        scores = beam.row_scores(r)
        for k in list(first)[::7]:
            expected = sum(
                log_predictive(f, values[r], values[first[k] : r], h) for f, values, h in columns
            )
            assert scores[k] == pytest.approx(expected, rel=3e-6, abs=1e-5)
        for k in first:
            beam.insert_row(r, k)
        log_marginals = beam.log_marginals()
        for k in list(first)[::11]:
            expected = sum(log_marginal(f, v[first[k] : r + 1], h) for f, v, h in columns)
            assert log_marginals[k] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def _rows_of(first, without, stop):
    """(rows, slots) of all segments but one."""
    parts = [(np.arange(start, stop), k) for k, start in first.items() if k != without]
    rows = np.concatenate([rows for rows, _ in parts])
    return rows, np.concatenate([np.full(len(rows), k) for rows, k in parts])


@every_selection
@pytest.mark.parametrize("families", [["normal"], ["categorical"], [*COLUMN_FAMILIES]])
def test_appended_rows(families, selection):
    """Rows come in while a churn runs: the same labels and scores as a table that had them."""
    n, more = 40, 25
    rng = np.random.default_rng(32)
    columns = random_columns(families, n + more, 33)
    early = [(f, values[:n], h) for f, values, h in columns]
    strata = rng.integers(3, size=n + more)
    mixture, bit_generator = make_mixture(
        early, 1.0, 0.3, selection=selection, seed=34, strata=strata[:n]
    )
    knots = np.array([[0, 0], [2 * n, n], [3 * n, n]])
    churn([mixture], mixture.subsample, bit_generator, knots, 0, 3 * n)
    for stop in (n + 1, n + more):
        start = mixture.table.n_rows
        mixture.scores(start - 1)  # blocks remember the row they saw last
        mixture.table.append([encode(c, c[1][start:stop]) for c in columns])
        mixture.subsample.append_rows(stop - start, strata[start:stop])
        mixture.append_rows()
        mixture.validate()
        assert mixture.get_labels().shape == (stop,)
        assert (mixture.get_labels()[start:] == -1).all()
        whole = make_mixture(columns, 1.0, 0.3)[0]
        whole.bind_subsample(None)
        rows = mixture.subsample.rows()
        whole.replace(rows, mixture.get_labels()[rows])
        for row in (0, start - 1, start, stop - 1):
            np.testing.assert_allclose(
                mixture.scores(row)[1], whole.scores(row)[1], rtol=2e-6, atol=1e-5
            )
        knots = np.array([[0, start], [stop, stop], [4 * stop, stop]])
        churn([mixture], mixture.subsample, bit_generator, knots, 0, 4 * stop)
        mixture.validate()
        assert mixture.subsample.size == stop
    expected = reference_log_likelihood(columns, mixture.get_labels())
    assert mixture.log_likelihood() == pytest.approx(expected, rel=1e-9)


def test_a_chunk_that_grows_is_read_afresh():
    """The row scored last has another place in memory after the table has grown."""
    column = ("categorical", [0, 1, 2], {"pseudo_counts": [0.5, 1.0, 2.0]})
    table = make_table([column])
    (block,) = make_blocks(table, [column])
    block.insert_row(0, 0)
    for size in range(3, 40):
        before = block.row_scores(size - 1)[0]
        table.append([np.array([(size * 7) % 3])])
        held = [np.full(64, 255, np.uint8) for _ in range(50)]  # takes memory that was let go
        assert block.row_scores(size - 1)[0] == before
        cells = [int(v) for v in table.column(0)]
        expected = log_predictive("categorical", cells[size], [cells[0]], column[2])
        assert block.row_scores(size)[0] == pytest.approx(expected, rel=1e-5)
        del held


def two_views(n, seed):
    """Two mixtures over one table and one subsample: columns split between them."""
    columns = random_columns([*COLUMN_FAMILIES], n, seed)
    table = make_table(columns)
    bit_generator = np.random.PCG64(seed)
    subsample = Subsample(n, "random", bit_generator)
    views = []
    for at in (range(0, 8, 2), range(1, 8, 2)):  # one column of each family in each view
        blocks = [
            FAMILIES[columns[j][0]](table, [j], [hyper_vector(columns[j][0], columns[j][2])])
            for j in at
        ]
        views.append(Mixture(table, blocks, PitmanYor(2.0, 0.2), subsample))
    return columns, table, views, subsample, bit_generator


def test_a_feature_moves_between_two_mixtures():
    n = 120
    columns, table, views, subsample, bit_generator = two_views(n, 35)
    knots = np.array([[0, 0], [2 * n, n], [60 * n, n]])
    at = 0
    owner = np.arange(8) % 2
    state = CrossCat(table, views, owner, PitmanYor(1.0), subsample)
    rng = np.random.default_rng(36)
    for _ in range(30):
        churn(views, subsample, bit_generator, knots, at, at + n // 2)
        at += n // 2
        j = int(rng.choice(np.flatnonzero(np.bincount(owner)[owner] > 1)))  # leaves no view empty
        target = views[1 - owner[j]]
        block = next(b for b in views[owner[j]].blocks if j in b.columns)
        # what the move's choice between the views is made of
        rows = subsample.rows()
        labels = target.get_labels()[rows]
        hyper = block.get_hyper(list(block.columns).index(j))
        slots = labels[np.newaxis].astype(np.int32)
        score = block.column_scores(table, [j], [hyper], rows, slots, [target.n_slots])[0, 0]
        before = target.log_likelihood()
        owner[j] = 1 - owner[j]
        state.reassign(owner)
        assert target.log_likelihood() - before == pytest.approx(score, rel=1e-7, abs=1e-7)
        for v, view in enumerate(views):
            view.validate()
            own = [columns[i] for i in range(8) if owner[i] == v]
            expected = reference_log_likelihood(own, view.get_labels())
            assert view.log_likelihood() == pytest.approx(expected, rel=1e-8)
    assert subsample.size == n


def test_rows_of_every_width_and_many_chunks():
    """A table of 70,000 rows in two chunks, appended unevenly, equals one made at once."""
    rng = np.random.default_rng(37)
    n = 70_000
    columns = [random_column(family, n, rng, missing=0.1) for family in COLUMN_FAMILIES]
    cells = [encode(column) for column in columns]
    whole = make_table(columns)
    pieces = whole.empty_like()
    for start, stop in pairwise([0, 1, 3, 40_000, 65_535, 65_537, n]):
        pieces.append([column[start:stop] for column in cells])
    assert pieces.n_rows == n
    for j in range(4):
        assert pieces.column(j).tobytes() == whole.column(j).tobytes() == cells[j].tobytes()
        assert pieces.has_missing(j)
        assert np.array_equal(pieces.missing(j), whole.missing(j))
    restored = pickle.loads(pickle.dumps(pieces))
    assert restored.column(2).tobytes() == cells[2].tobytes()
    with pytest.raises(ValueError, match=f"expected {len(COLUMN_FAMILIES)}"):
        whole.append(cells[:2])
    with pytest.raises(ValueError, match="one length"):
        whole.append([*cells[:-1], cells[-1][:5]])
