"""The permutation moves against the enumerated oracles of permutation_enumeration.py.

A kernel is judged twice: its law of transition from every partition of 4 rows against the oracle's
matrix, and whether it leaves the posterior of 5 rows. Chi-square tests of independent runs, fixed
seeds, one try: a right kernel alarms once in 10,000. Beside them stand faults that the same tests
must see.
"""

import math
from collections import Counter
from functools import cache
from itertools import permutations

import numpy as np
import pytest
from scipy.sparse import csr_array

import skanneal.moves._permutation as permutation
from oracles.count_rows import make_mixture as multinomial_mixture
from oracles.enumeration import (
    Target,
    canonical,
    check_counts,
    clusters,
    count_p_value,
    enumerate_joint,
    marginal,
    normalised,
    partitions,
)
from oracles.mixtures import hyper_vector, make_mixture, make_table, set_partition
from oracles.permutation_enumeration import (
    MarginalTarget,
    beam_program,
    compositions,
    exact_matrix,
    hill_climb_matrix,
    markov_order,
    projection_matrix,
    quadratic_matrix,
    segmentation_law,
    segmentation_log_weights,
    uniform_order,
)
from oracles.reference import EXAMPLES, ROW_EXAMPLES
from skanneal.chains import ChainPlan, run_chain
from skanneal.chains._budget import Budget
from skanneal.families import MISSING_COUNT, Table
from skanneal.moves import CALL, Gibbs, Permutation, SplitMerge
from skanneal.moves._order_programs import OrderProgram
from skanneal.partition_priors import PitmanYor
from skanneal.schedules import LinearAnneal, PriorGibbs, SequentialGibbs

REJECT = 1e-6  # what a fault's p-value must be below
FAMILIES = ("normal", "categorical", "bernoulli", "poisson")
PRIORS = {"DP": (1.3, 0.0), "PY": (0.7, 0.3), "negative": (-0.1, 0.3)}
every_prior = pytest.mark.parametrize("prior", PRIORS)
REFERENCE = 2  # number of clusters that tau is taken at
AT = np.array([1.2, -0.7, 0.4, -0.1, 0.9])  # projections of the rows
ALPHAS = [0.2, 1.0, 6.0]


@cache
def data(n, families=FAMILIES[:3]):
    """One column per family, each with a missing cell."""
    columns = []
    for i, family in enumerate(families):
        values, hyper = EXAMPLES[family]
        values = [None if row == i else v for row, v in enumerate([*values, *values][:n])]
        columns.append((family, values, hyper))
    return columns


@cache
def target(n, prior, grid=False):
    """The oracle's target; with `grid` the concentration is summed out over ALPHAS."""
    alpha, d = PRIORS[prior]
    return MarginalTarget(data(n), ALPHAS, d) if grid else Target(data(n), alpha, d)


def tau(prior, law, of=None):
    """The secant of log A(K) / K! at REFERENCE, from its definition."""
    alpha, d = PRIORS[prior]
    ratio = alpha + REFERENCE * d
    if of is not None:  # W(K + 1) / W(K)
        ratio = math.exp(of.log_w(REFERENCE + 1) - of.log_w(REFERENCE))
    return ratio if law == "projection" else ratio / (REFERENCE + 1)


def move(law, program, tolerance=0.0, climb=False, grid=None):
    made = Permutation(law, program, tolerance, grid)
    made.tuning, made.burn_in = REFERENCE, climb
    return made


def alpha_grid(prior):
    return np.array([(alpha, PRIORS[prior][1]) for alpha in ALPHAS])


# ------------------------------------------------------------------------ transitions
def transitions(prior, apply, n_runs, seed=1, n=4):
    """Counts of (partition before, after), as many runs from each."""
    mixture, bit_generator = make_mixture(data(n), *PRIORS[prior], seed=seed)
    counts = Counter()
    for before in partitions(n):
        for _ in range(n_runs):
            set_partition(mixture, before)
            apply(mixture, bit_generator)
            counts[before, canonical(mixture.get_labels().tolist())] += 1
    mixture.validate()
    return counts


def law_of(matrix, n=4):
    """The law of (partition before, after) by a transition matrix, from a uniform partition."""
    states = list(partitions(n))
    return {
        (before, after): float(matrix[i, j]) / len(states)
        for i, before in enumerate(states)
        for j, after in enumerate(states)
    }


UNIFORM_FORMS = {
    "exact": ("exact", 0.0),
    "quadratic": ("quadratic", 0.0),
    "fine beam": ("beam", 1e-32),
    "beam": ("beam", 0.1),
    "coarse beam": ("beam", 0.4),
}


@cache
def uniform_matrix(prior, form, law=uniform_order, grid=False):
    program, eps = UNIFORM_FORMS[form]
    of = target(4, prior, grid)
    if program == "exact":
        return exact_matrix(of, law)
    name = "uniform" if law is uniform_order else "markov"
    return quadratic_matrix(of, tau(prior, name, of if grid else None), eps=eps, order_law=law)


@every_prior
@pytest.mark.parametrize("form", UNIFORM_FORMS)
@pytest.mark.few(6)
def test_uniform_orders(prior, form):
    apply = move("uniform", *UNIFORM_FORMS[form])
    counts = transitions(prior, lambda m, rng: apply.sweep(m, rng), 40)
    check_counts(counts, law_of(uniform_matrix(prior, form)))


@every_prior
@pytest.mark.parametrize("form", ["exact", "quadratic", "beam"])
@pytest.mark.few(4)
def test_markov_scans(prior, form):
    apply = move("markov", *UNIFORM_FORMS[form])
    counts = transitions(prior, lambda m, rng: apply.sweep(m, rng), 30)
    check_counts(counts, law_of(uniform_matrix(prior, form, markov_order)))


@every_prior
@pytest.mark.parametrize("form", ["exact", "quadratic", "beam"])
@pytest.mark.parametrize("n_runs", [30, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.few(4)
def test_concentration_integrated_out(prior, form, n_runs):
    apply = move("uniform", *UNIFORM_FORMS[form], grid=alpha_grid(prior))
    counts = transitions(prior, lambda m, rng: apply.sweep(m, rng), n_runs)
    check_counts(counts, law_of(uniform_matrix(prior, form, grid=True)))


def project(made, monkeypatch, prior, n_runs, at=AT):
    """Transitions of the projection itself, on projections that are given."""
    monkeypatch.setattr(permutation, "_projections", lambda state, rows, _: at[rows])

    def apply(mixture, bit_generator):
        rows = mixture.subsample.rows()
        made._move(mixture, rows, "projection", made.burn_in, 1.0, bit_generator)

    return transitions(prior, apply, n_runs)


@every_prior
@pytest.mark.parametrize("eps", [0.0, 0.1])
@pytest.mark.parametrize("at", [AT, np.array([0.5, -1.0, 0.5, 0.5])], ids=["distinct", "tied"])
@pytest.mark.parametrize("n_runs", [40, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.few(5)
def test_projections(monkeypatch, prior, eps, at, n_runs):
    made = move("projection", "beam" if eps else "quadratic", eps)
    counts = project(made, monkeypatch, prior, n_runs, at)
    matrix = projection_matrix(target(4, prior), at[:4].tolist(), tau(prior, "projection"), eps=eps)
    check_counts(counts, law_of(matrix))


@every_prior
def test_hill_climb(monkeypatch, prior):
    made = move("projection", "beam", 0.1, climb=True)
    counts = project(made, monkeypatch, prior, 60)
    matrix = hill_climb_matrix(target(4, prior), AT[:4].tolist(), tau(prior, "projection"), eps=0.1)
    check_counts(counts, law_of(matrix))


@pytest.mark.slow
@every_prior
@pytest.mark.parametrize("form", UNIFORM_FORMS)
@pytest.mark.parametrize("law", ["uniform", "markov"])
def test_transitions_of_long_runs(prior, form, law):
    apply = move(law, *UNIFORM_FORMS[form])
    counts = transitions(prior, lambda m, rng: apply.sweep(m, rng), 3000, seed=2)
    order_law = uniform_order if law == "uniform" else markov_order
    check_counts(counts, law_of(uniform_matrix(prior, form, order_law)))


# ------------------------------------------------------------------------ the posterior is left
def after(moves, prior, n_runs, seed, law=None, grid=False, n=5):
    """End partitions of runs that start in the posterior (or another law)."""
    mixture, bit_generator = make_mixture(data(n), *PRIORS[prior], seed=seed)
    states = target(n, prior, grid).posterior() if law is None else law
    rng = np.random.default_rng([seed, 1])
    counts = Counter()
    for i in rng.choice(len(states), n_runs, p=list(states.values())):
        set_partition(mixture, list(states)[i])
        for each in moves:
            each.sweep(mixture, bit_generator)
        counts[canonical(mixture.get_labels().tolist())] += 1
    mixture.validate()
    return counts


HYBRIDS = {
    "projection": [move("projection", "beam", 1e-32)] * 6,
    "coarse projection": [move("projection", "beam", 0.2)] * 6,
    "exact projection": [move("projection", "exact")] * 6,
    "markov": [move("markov", "beam", 1e-3)] * 3,
    "with gibbs": [move("projection", "beam", 1e-32), Gibbs()] * 2,
    "with split_merge": [move("uniform", "beam", 0.1), SplitMerge(n_proposals=5)] * 2,
    "all": [move("projection", "beam", 0.1), Gibbs(), SplitMerge(n_proposals=5)] * 2,
}


@every_prior
@pytest.mark.parametrize("hybrid", HYBRIDS)
@pytest.mark.few(4)
def test_posterior_is_left(prior, hybrid):
    counts = after(HYBRIDS[hybrid], prior, 250, 3)
    check_counts(counts, target(5, prior).posterior())


@pytest.mark.slow
@every_prior
@pytest.mark.parametrize("hybrid", HYBRIDS)
def test_posterior_is_left_in_long_runs(prior, hybrid):
    counts = after(HYBRIDS[hybrid], prior, 20_000, 4)
    check_counts(counts, target(5, prior).posterior())


@every_prior
@pytest.mark.parametrize("hybrid", ["projection", "exact projection", "markov", "all"])
@pytest.mark.parametrize("n_runs", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.few(3)
def test_posterior_of_seven_rows_is_left(prior, hybrid, n_runs):
    """877 partitions: segments of up to seven rows, and up to seven of them."""
    counts = after(HYBRIDS[hybrid], prior, n_runs, 13, n=7)
    check_counts(counts, target(7, prior).posterior())


@pytest.mark.parametrize("hybrid", [pytest.param("projection", marks=pytest.mark.slow), "markov"])
def test_moves_move(hybrid):
    """From another law they go to the posterior."""
    law = normalised(dict.fromkeys(partitions(5), 0.0))
    posterior = target(5, "PY").posterior()
    assert count_p_value(after([], "PY", 4000, 5, law), posterior) < REJECT
    check_counts(after(HYBRIDS[hybrid] * 12, "PY", 120, 5, law), posterior)


def test_tempered_posterior_is_left():
    of = Target(data(5), *PRIORS["PY"], beta=0.5)
    mixture, bit_generator = make_mixture(data(5), *PRIORS["PY"], seed=6)
    posterior = of.posterior()
    counts = Counter()
    for i in np.random.default_rng(6).choice(len(posterior), 600, p=list(posterior.values())):
        set_partition(mixture, list(posterior)[i])
        for each in HYBRIDS["projection"]:
            each.sweep(mixture, bit_generator, beta=0.5)
        counts[canonical(mixture.get_labels().tolist())] += 1
    check_counts(counts, posterior)


@pytest.mark.parametrize("family", ["multivariate_normal", "known_normal", "multinomial"])
@pytest.mark.parametrize("law", permutation.PERMUTATIONS)
@pytest.mark.few(4)
def test_row_families(family, law):
    """Alone and beside a gappy column."""
    rows, hyper = ROW_EXAMPLES[family]
    columns = [(family, [*rows, *rows][:4], hyper), *data(4, FAMILIES[:1])]
    make = multinomial_mixture if family == "multinomial" else make_mixture
    mixture, bit_generator = make(columns, *PRIORS["PY"], seed=17)
    posterior = Target(columns, *PRIORS["PY"]).posterior()
    counts = Counter()
    for i in np.random.default_rng(17).choice(len(posterior), 250, p=list(posterior.values())):
        set_partition(mixture, list(posterior)[i])
        for each in [move(law, "beam", 0.05)] * 4:
            each.sweep(mixture, bit_generator)
        counts[canonical(mixture.get_labels().tolist())] += 1
    mixture.validate()
    check_counts(counts, posterior)


def test_rows_are_projected():
    """Every storage type on its random direction, against the definition."""
    rng = np.random.default_rng(18)
    counts = csr_array(rng.poisson(1.0, (50, 3)) + [1, 0, 0])
    numbers = rng.normal(size=50).astype(np.float32)
    numbers[4] = np.nan
    levels, wide, events = rng.integers(5, size=50), rng.integers(402, size=50), rng.poisson(3, 50)
    table = Table(["f4", "u1", "u2", "u4", "entries", "none", "none"], [0, 3, 400, 0, 0, 0, 0])
    missing = np.where(np.arange(50) == 7, MISSING_COUNT, events)
    table.append([numbers, levels, wide, missing, counts, None, None])
    order = rng.permutation(50)[:40]
    found = table.project(order, range(7), np.random.PCG64(19))
    # one number per coordinate, in this order: 1, 3, 400, 1 and 3 of them
    u = first_normals(19, 408)
    expected = np.nan_to_num(numbers) * u[0]
    expected += np.r_[u[1:4], 0, 0][levels] + np.r_[u[4:404], 0, 0][wide]
    expected += np.where(missing == MISSING_COUNT, 0, np.sqrt(events)) * u[404]
    dense = counts.toarray()
    expected += np.sqrt(dense / dense.sum(axis=1, keepdims=True)) @ u[405:]
    np.testing.assert_allclose(found, expected[order], rtol=1e-12, atol=1e-12)


def first_normals(seed, n):
    """The package's normal numbers: Box and Muller's, one of each pair of uniforms."""
    u = np.random.Generator(np.random.PCG64(seed)).random((n, 2))
    return np.sqrt(-2 * np.log(1 - u[:, 0])) * np.cos(2 * np.pi * u[:, 1])


def test_only_the_subsample_is_touched():
    mixture, bit_generator = make_mixture(data(5), 1.0, 0.3, seed=7)
    for k in (0, 1, 1):
        mixture.insert_row(mixture.subsample.enter_row(bit_generator), k)
    outside = mixture.get_labels() < 0
    for law in permutation.PERMUTATIONS:
        for _ in range(10):
            Permutation(law).sweep(mixture, bit_generator)
            mixture.validate()
            assert np.array_equal(mixture.get_labels() < 0, outside)


def test_fewer_than_two_rows_are_left_alone():
    mixture, bit_generator = make_mixture(data(5), 1.0, 0.3, seed=8)
    assert Permutation().sweep(mixture, bit_generator) == (0, 0, 0)
    mixture.insert_row(mixture.subsample.enter_row(bit_generator), 0)
    assert Permutation().sweep(mixture, bit_generator) == (0, 0, 0)


# ------------------------------------------------------------------------ faults
class AdaptsAfterBurnIn(Permutation):
    """tau follows the number of clusters for ever."""

    def sweep(self, state, bit_generator, *, beta=1.0):
        self.tuning = state.n_clusters
        return super().sweep(state, bit_generator, beta=beta)


class NoDiscount(Permutation):
    """Sizes weigh as in a Dirichlet process."""

    def _log_size(self, state, n, law):
        state.set_prior(PitmanYor(state.prior.concentration + 0.3))
        out = super()._log_size(state, n, law)
        state.set_prior(PitmanYor(state.prior.concentration - 0.3, 0.3))
        return out


class NoFactorial(Permutation):
    """The order of the clusters is forgotten."""

    def _log_number(self, state, n, law):
        return super()._log_number(state, n, "projection")


class Climbs(Permutation):
    """Burn-in without an end."""

    def sweep(self, state, bit_generator, *, beta=1.0):
        self.burn_in = True
        return super().sweep(state, bit_generator, beta=beta)


FAULTS = {
    "tau adapts": AdaptsAfterBurnIn("uniform", "quadratic"),
    "no discount": NoDiscount("uniform", "exact"),
    "no factorial": NoFactorial("uniform", "exact"),
    "climbs": Climbs("projection", "beam"),
}


SMALL = pytest.param("tau adapts", marks=pytest.mark.slow)  # a bias that takes many runs


@pytest.mark.parametrize("fault", [SMALL, *list(FAULTS)[1:]])
@pytest.mark.few(1)
def test_faulty_moves_are_seen(fault):
    n_runs = 40_000 if fault == "tau adapts" else 1500
    FAULTS[fault].tuning = REFERENCE
    counts = after([FAULTS[fault]] * 2, "PY", n_runs, 9, n=4)
    assert count_p_value(counts, target(4, "PY").posterior()) < REJECT


def test_a_beam_that_holds_whatever_is_there_is_seen(monkeypatch):
    """Without the rejection of what the beam does not hold."""

    class Holds(OrderProgram):
        def holds(self, labels):
            return True

    monkeypatch.setattr(permutation, "OrderProgram", Holds)
    counts = after([move("uniform", "beam", 0.3)] * 2, "PY", 1500, 10, n=4)
    assert count_p_value(counts, target(4, "PY").posterior()) < REJECT


@pytest.mark.slow
def test_a_projection_that_is_not_given_back_is_seen(monkeypatch):
    monkeypatch.setattr(permutation, "_gives_back", lambda *_: True)
    counts = after([move("projection", "quadratic")] * 2, "PY", 3000, 11, n=4)
    assert count_p_value(counts, target(4, "PY").posterior()) < REJECT


# ------------------------------------------------------------------------ programs
def forward(prior, order, tolerance=0.0, seed=12):
    """(OrderProgram, its log B as the oracle's array, bit generator)."""
    mixture, bit_generator = make_mixture(data(7), *PRIORS[prior], seed=seed)
    set_partition(mixture, [0] * 7)
    segments = mixture.spare("segments", OrderProgram)
    log_size = Permutation()._log_size(mixture, len(order), "uniform") + 0.7
    segments.forward(mixture, np.array(order), log_size, 1.0, tolerance)
    log_weights = np.full((len(order) + 1,) * 2, -np.inf)
    for r, (first, log_b) in enumerate(zip(*segments.kept()), start=1):
        log_weights[first, r] = log_b
    return segments, log_weights, bit_generator


@every_prior
def test_segment_weights(prior):
    """Of the rows of each segment as a cluster, from the formula; scores are float32."""
    alpha, d = PRIORS[prior]
    order = (3, 0, 6, 1, 5, 2, 4)
    _, log_weights, _ = forward(prior, order)
    of = Target(data(7), alpha, d)
    for s in range(7):
        for r in range(s + 1, 8):
            expected = of.log_cluster(tuple(sorted(order[s:r]))) + 0.7
            expected += math.lgamma(r - s - d) - math.lgamma(1 - d) - math.lgamma(r - s + 1)
            assert log_weights[s, r] == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("tolerance", [0.0, 1e-32, 1e-3, 0.1, 0.5])
def test_sums_and_kept_segments_are_those_of_brute_force(tolerance):
    order = (3, 0, 6, 1, 5, 2, 4)
    _, whole, _ = forward("PY", order)
    segments, _, _ = forward("PY", order, tolerance)
    log_g, kept = beam_program(whole, tolerance)
    lengths = [sorted((r - first).tolist()) for r, first in enumerate(segments.kept()[0], start=1)]
    assert lengths == kept[1:]
    assert np.allclose(segments.log_sums(), log_g, rtol=0, atol=1e-12)
    terms = segmentation_log_weights(whole, kept=kept if tolerance else None)
    total = np.logaddexp.reduce(list(terms.values()))
    assert segments.log_sums()[-1] == pytest.approx(total, abs=1e-12)


def lengths_of(labels):
    return tuple(len(rows) for rows in clusters(canonical(labels)))


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_draws_of_a_program(tolerance):
    order = (3, 0, 6, 1, 5, 2, 4)
    _, whole, _ = forward("PY", order)
    segments, _, bit_generator = forward("PY", order, tolerance)
    kept = beam_program(whole, tolerance)[1] if tolerance else None
    counts = Counter(lengths_of(segments.draw(bit_generator).tolist()) for _ in range(5000))
    check_counts(counts, segmentation_law(whole, kept=kept))


def test_draws_of_the_exact_program():
    order = (3, 0, 6, 1, 5, 2, 4)
    segments, whole, bit_generator = forward("PY", order)
    log_number = np.r_[-np.inf, -0.9 * np.arange(7.0) ** 1.5, 0.0]
    draws = [segments.draw_exact(log_number, bit_generator).tolist() for _ in range(5000)]
    law = segmentation_law(whole, log_count=lambda k: log_number[k])
    check_counts(Counter(map(lengths_of, draws)), law)
    assert all(labels == sorted(labels) for labels in draws)


def test_holds_knows_every_segmentation():
    order = (3, 0, 6, 1, 5, 2, 4)
    segments, _, _ = forward("PY", order, 0.3)
    kept = [set((r - f).tolist()) for r, f in enumerate(segments.kept()[0], start=1)]
    held = 0
    for lengths in compositions(7):
        labels = np.repeat(np.arange(len(lengths)), lengths)
        ends = np.cumsum(lengths)
        expected = all(m in kept[end - 1] for m, end in zip(lengths, ends))
        assert segments.holds(labels) == expected
        held += expected
    assert 0 < held < 64


def test_programs_of_many_rows():
    """More segments at once than fit in the first slots, and reuse from one order to the next."""
    rng = np.random.default_rng(13)
    columns = [("normal", rng.normal(size=700).tolist(), EXAMPLES["normal"][1])]
    mixture, bit_generator = make_mixture(columns, 1.0, 0.0, seed=13)
    set_partition(mixture, [0] * 700)
    segments = mixture.spare("segments", OrderProgram)
    sums = []
    # updates, and scores by tiles, with one slot that stays empty
    whole = sum(2 * r + math.ceil((r + (r > 15)) / 16) for r in range(1, 701))
    for _ in range(2):
        log_size = Permutation()._log_size(mixture, 700, "uniform")
        segments.forward(mixture, np.arange(700), log_size)
        sums.append(segments.log_sums()[-1])
        assert segments.work == whole
    assert sums[0] == sums[1]
    segments.forward(mixture, np.arange(700), log_size, 1.0, 1e-32)
    assert segments.work < whole
    assert segments.log_sums()[-1] == pytest.approx(sums[0], abs=1e-9)


# ------------------------------------------------------------------------ whole chains
CHAINS = {
    "prior": PriorGibbs(n_sweeps=24),
    "sequential": SequentialGibbs(n_sweeps=24),
    "anneal": LinearAnneal(n_sweeps=30, final_sweeps=20),
}
OPTIONS = {"permutation": {"tolerance": 0.05}, "split_merge": {"n_proposals": 1}}
PRIOR_GRID = np.array([(a, d) for d in (0.0, 0.4) for a in (0.3, 2.0)])


def end_of_chains(grid, schedule, moves, n_chains, *, options=OPTIONS, init=None, seed=14):
    """Counts of (partition, concentration, discount) of independent chains of 5 rows."""
    columns = data(5, ("normal", "categorical"))
    table = make_table(columns)
    hyper = {j: hyper_vector(family, h) for j, (family, _, h) in enumerate(columns)}
    families = {family: np.array([j]) for j, (family, _, _) in enumerate(columns)}
    run = {"options": options, "init": init}
    model = ChainPlan(table, families, hyper, {}, grid, moves, **run)
    counts = Counter()
    for child in np.random.SeedSequence(seed).spawn(n_chains):
        (draw,) = run_chain(model, schedule, child)["draws"]
        pair = float(draw["concentration"]), float(draw["discount"])
        counts[canonical(draw["labels"].tolist()), *pair] += 1
    return counts


def law_of_chains(grid):
    columns = data(5, ("normal", "categorical"))
    alphas, discounts = (np.unique(grid[:, h]).tolist() for h in (0, 1))
    return marginal(enumerate_joint(columns, alphas, discounts), 0, 1, 2)


MOVES = {
    "gibbs": ("gibbs",),
    "split_merge": ("gibbs", "split_merge"),
    "permutation": ("gibbs", "permutation"),
    "all": ("gibbs", "permutation", "split_merge"),
}


@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.parametrize(
    "grid",
    [
        pytest.param(PRIOR_GRID[:1], marks=pytest.mark.slow, id="fixed"),
        pytest.param(PRIOR_GRID, id="inferred"),
    ],
)
def test_hybrids(moves, grid):
    counts = end_of_chains(grid, CHAINS["prior"], MOVES[moves], 80)
    check_counts(counts, law_of_chains(grid))


@pytest.mark.slow
def test_work_that_follows_the_state_is_seen(monkeypatch):
    """Had every sweep as many proposals as cost what its Gibbs pass has cost, states would count
    by what they cost."""

    def make(self, state, bit_generator, segment, burn_in, stop):
        for name, move in self.moves.items():
            self.credit[name] += 4 * (segment.stop - segment.start) * state.n_clusters
            while self.credit[name] > 0:
                info = move.sweep(state, bit_generator, beta=segment.beta)
                self.credit[name] -= max(1, info.work - CALL)

    monkeypatch.setattr(Budget, "make", make)
    counts = end_of_chains(PRIOR_GRID, CHAINS["prior"], MOVES["split_merge"], 700, seed=18)
    assert count_p_value(counts, law_of_chains(PRIOR_GRID)) < REJECT


@pytest.mark.parametrize(
    "schedule, init",
    [
        ("sequential", None),
        ("anneal", 3),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("sequential", 1), ("sequential", 3), ("anneal", None), ("anneal", 1))
        ),
    ],
)
def test_starts(schedule, init):
    counts = end_of_chains(PRIOR_GRID, CHAINS[schedule], MOVES["all"], 80, init=init)
    check_counts(counts, law_of_chains(PRIOR_GRID))


@pytest.mark.parametrize("moves", ["permutation", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", [pytest.param("exact", marks=pytest.mark.slow), "beam"])
def test_concentration_integrated_out_in_chains(program, moves):
    options = {"permutation": {"program": program, "grid": PRIOR_GRID, "tolerance": 0.05}}
    options["split_merge"] = OPTIONS["split_merge"]
    counts = end_of_chains(PRIOR_GRID, CHAINS["prior"], MOVES[moves], 100, options=options)
    check_counts(counts, law_of_chains(PRIOR_GRID))


@pytest.mark.slow
@pytest.mark.parametrize("moves", MOVES)
@pytest.mark.parametrize("schedule", CHAINS)
@pytest.mark.parametrize("law", permutation.PERMUTATIONS)
def test_hybrids_in_many_chains(moves, schedule, law):
    options = OPTIONS | {"permutation": {"permutation": law, "tolerance": 0.05}}
    counts = end_of_chains(PRIOR_GRID, CHAINS[schedule], MOVES[moves], 3000, options=options)
    check_counts(counts, law_of_chains(PRIOR_GRID))


WIDE = [0.05, 20.0]
GRIDS = {
    "fixed discount": np.array([(a, 0.3) for a in WIDE]),
    "inferred discount": np.array([(a, d) for d in (0.0, 0.4) for a in WIDE]),
}
ORDERS = {"-".join(order): order for order in permutations(MOVES["all"])}
OTHERS = {"gibbs": Gibbs, "split_merge": lambda: SplitMerge(n_proposals=1)}


def from_joint_to_joint(order, grid, law, n_runs, seed, *, beta=1.0, kind=Permutation):
    """p-value of (partition, concentration, discount) after moves in an order, from their joint
    law; no other move draws the pair."""
    columns, discounts = data(4, ("normal",)), np.unique(grid[:, 1]).tolist()
    joint = marginal(enumerate_joint(columns, WIDE, discounts, beta=beta), 0, 1, 2)
    moves = [kind(law, "beam", 0.1, grid) if m == "permutation" else OTHERS[m]() for m in order]
    for each in moves:
        each.tuning = REFERENCE
    mixture, bit_generator = make_mixture(columns, seed=seed)
    counts, states = Counter(), list(joint)
    for i in np.random.default_rng(seed).choice(len(states), n_runs, p=list(joint.values())):
        labels, *pair = states[i]
        set_partition(mixture, labels)
        mixture.set_prior(PitmanYor(*pair))
        for each in moves:
            each.sweep(mixture, bit_generator, beta=beta)
        pair = mixture.prior.concentration, mixture.prior.discount
        counts[canonical(mixture.get_labels().tolist()), *pair] += 1
    return count_p_value(counts, joint)


slow_but = {law: () if law == "uniform" else pytest.mark.slow for law in permutation.PERMUTATIONS}


@pytest.mark.parametrize("law", [pytest.param(law, marks=slow_but[law]) for law in slow_but])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("n_runs", [250, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.few(4)
def test_integrated_out_concentration_in_every_order_of_moves(grid, order, law, n_runs):
    beta = 0.5 if law == "markov" else 1.0
    assert from_joint_to_joint(ORDERS[order], GRIDS[grid], law, n_runs, 19, beta=beta) > 1e-4


class StaleConcentration(Permutation):
    """The concentration that was integrated out is left as it was before the move."""

    def sweep(self, state, bit_generator, *, beta=1.0):
        before = state.prior
        info = super().sweep(state, bit_generator, beta=beta)
        state.set_prior(before)
        return info


# in the other orders a Gibbs pass follows, which with so few rows forgets nearly all
@pytest.mark.parametrize("order", [name for name in ORDERS if "gibbs-" in name.split("perm")[0]])
def test_a_stale_concentration_is_seen(order):
    grid = GRIDS["fixed discount"]
    p = from_joint_to_joint(ORDERS[order], grid, "uniform", 1000, 20, kind=StaleConcentration)
    assert p < REJECT
