"""The oracles of the accelerated sampler checked against each other.

Every matrix must leave the posterior invariant, likelihood on and off, and every fault that the
kernels' tests must reveal is planted in the oracles and seen: pi T = pi to 1e-12, where weights are
integrated by quadrature to 1e-9, against an error above FAULT.
"""

import doctest
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, gammaln

from oracles import accelerated_enumeration
from oracles.accelerated_enumeration import (
    Segment,
    auxiliary_law,
    auxiliary_steps,
    birth_death_steps,
    chi_square,
    data_driven,
    dirichlet_nodes,
    exact_stage_matrix,
    feature_steps,
    importance_steps,
    kernel,
    labels_of,
    posterior,
    reversibility_error,
    stationary_error,
)
from oracles.accelerated_merge_enumeration import (
    conjugate_steps,
    current_launch,
    even_pair,
    general_steps,
    refined_launch,
    seed_launch,
    similar_pair,
    uniform_pair,
)
from oracles.accelerated_slice_enumeration import reallocation_matrix, slice_row_matrix, slice_sweep
from oracles.enumeration import (
    Target,
    clusters,
    log_eppf,
    normalised,
    partitions,
    random_gibbs_matrix,
    scan_matrix,
    total_variation,
)
from oracles.enumeration import stationary_error as collapsed_error
from oracles.reference import log_marginal
from oracles.reversible import FAULT
from oracles.toys import EXACT, toy_of

INTEGRATED = 1e-9
PRIORS = [(1.3, 0.0), (0.7, 0.3), (-0.1, 0.3)]
every_prior = pytest.mark.parametrize("alpha, d", PRIORS)
each_likelihood = pytest.mark.parametrize("likelihood", ["on", "off"])
SHARDS = {2: [(0, 0), (0, 1)], 3: [(0, 0, 0), (0, 1, 1), (0, 1, 2), (0, 2, 2)]}
TAILS = ["collapsed", "drawn", "fresh", "pool"]


def assert_proper(matrix):
    """A stochastic matrix."""
    assert matrix.min() > -EXACT
    assert np.abs(matrix.sum(axis=1) - 1).max() < 1e-10


def assert_exact(law, matrix, tolerance=EXACT):
    """Proper, and pi T = pi."""
    assert_proper(matrix)
    assert stationary_error(law, matrix) < tolerance


def assert_seen(law, matrix, fault=FAULT):
    """Proper, and another stationary law."""
    assert_proper(matrix)
    assert stationary_error(law, matrix) > fault


def test_docstring_examples():
    results = doctest.testmod(accelerated_enumeration)
    assert results.attempted > 0
    assert results.failed == 0


# ------------------------------------------------------------------------------- posteriors
COUNTS = [[3, 0, 1], [2, 1, 0], [0, 4, 1], [1, 3, 2], [0, 0, 2], [5, 1, 0]]
POINTS = [[-1.25, -0.5], [1.0, 1.5], [-0.75, -1.0], [2.0, 1.25], [0.5, 0.25], [-1.0, 0.0]]
NIX = {"mu0": 0.1, "kappa0": 0.5, "nu0": 3.0, "sigma2_0": 0.8}
NIW = {"mu0": [0.1, 0.0], "kappa0": 0.5, "nu0": 4.0, "scale0": [[1.0, 0.2], [0.2, 1.5]]}
CONJUGATE = {
    "multinomial": (COUNTS, {"pseudo_counts": 0.7}),
    "normal": (POINTS, [NIX, {**NIX, "mu0": -0.2}]),
    "multivariate_normal": (POINTS, NIW),
    "poisson": (COUNTS, {"shape": 1.5, "rate": 0.8}),
}


@pytest.mark.parametrize("family", CONJUGATE)
@pytest.mark.parametrize("n", [2, 3, 6])
@every_prior
def test_conjugate_posteriors(family, n, alpha, d):
    X, hyper = CONJUGATE[family]
    states, chances = posterior(X[:n], family, hyper, alpha, d)
    assert states == list(partitions(n))
    assert math.fsum(chances) == pytest.approx(1.0, abs=EXACT)
    cells = [X[:n]] if family.startswith("mu") else list(zip(*X[:n]))
    hypers = hyper if isinstance(hyper, list) else [hyper] * len(cells)
    log_weights = {
        labels: log_eppf([len(rows) for rows in clusters(labels)], alpha, d)
        + math.fsum(
            log_marginal(family, [column[row] for row in rows], h)
            for rows in clusters(labels)
            for column, h in zip(cells, hypers)
        )
        for labels in states[:: 1 if n < 6 else 7]
    }
    law = {labels: chance for labels, chance in zip(states, chances) if labels in log_weights}
    total = sum(law.values())
    for labels, probability in normalised(log_weights).items():
        assert law[labels] / total == pytest.approx(probability, rel=1e-9)


def test_chi_square_takes_both_forms_of_a_law():
    pair = posterior(COUNTS[:3], "multinomial", {"pseudo_counts": 0.7}, 0.7, 0.3)
    drawn = np.random.default_rng(0).multinomial(2000, pair[1])
    counts = dict(zip(pair[0], drawn.tolist()))
    assert chi_square(counts, pair) == chi_square(counts, dict(zip(*pair))) > 1e-4
    shifted = dict(zip(pair[0], np.roll(drawn, 1).tolist()))
    assert chi_square(shifted, pair) < 1e-9


# ------------------------------------------------------------------------------------ toys
@every_prior
@each_likelihood
@pytest.mark.parametrize("n", [2, 3, 4])
def test_toys_and_their_collapsed_targets(n, alpha, d, likelihood):
    toy = toy_of(n, alpha, d, likelihood)
    by_partition = defaultdict(float)
    for state, probability in toy.law().items():
        by_partition[labels_of(state)] += probability
    target = toy.collapsed()
    assert total_variation(by_partition, target.posterior()) < EXACT
    assert collapsed_error(target, random_gibbs_matrix(target)) < EXACT
    matrix = kernel(toy.law(), lambda state: feature_steps(toy, state))
    assert_exact(toy.law(), matrix)


# -------------------------------------------------------------------- algorithm 8 and its kin
def constant_own(toy, rest, row, own):
    """The data-driven q_i that gives row i a constant weight."""
    return data_driven(toy, rest, row, own, own_weight=1.5)


def own_likelihood(toy, rest, row, own):
    """The data-driven q_i that looks at f(x_i | theta of i): a fault."""
    return data_driven(toy, rest, row, own, own_weight="1/f")


def row_matrices(toy, law, steps, *arguments, **options):
    """The matrix of each row's update."""
    for row in range(toy.n_rows):
        yield kernel(law, lambda state, i=row: steps(toy, state, i, *arguments, **options))


def assert_some_row_seen(toy, law, steps, *arguments, **options):
    """The fault shows with one of the rows."""
    matrices = list(row_matrices(toy, law, steps, *arguments, **options))
    for matrix in matrices:
        assert_proper(matrix)
    assert max(stationary_error(law, matrix) for matrix in matrices) > FAULT


@every_prior
@each_likelihood
@pytest.mark.parametrize(
    "n, n_features, m", [(2, 3, 1), (2, 3, 3), (3, 2, 1), (3, 2, 2), (3, 3, 2)]
)
@pytest.mark.few(12)
def test_auxiliary_and_importance(n, n_features, m, alpha, d, likelihood):
    toy = toy_of(n, alpha, d, likelihood, n_features)
    law, pooled = toy.law(), auxiliary_law(toy, m)
    for matrix in row_matrices(toy, pooled, auxiliary_steps):
        assert_exact(pooled, matrix)
    for q in (data_driven, constant_own):
        moves = [(importance_steps, (m, q)), (birth_death_steps, (q,))]
        for steps, arguments in moves:
            for matrix in row_matrices(toy, law, steps, *arguments):
                assert_exact(law, matrix)
                assert reversibility_error(law, matrix) < EXACT


@every_prior
@pytest.mark.parametrize("n", [2, 3])
def test_faulty_auxiliaries_are_seen(n, alpha, d):
    toy = toy_of(n, alpha, d)
    law = toy.law()
    for m in (1, 2):
        pooled = auxiliary_law(toy, m)
        for fault in ("replaces", "refill"):
            assert_some_row_seen(toy, pooled, auxiliary_steps, **{fault: False})
        assert_some_row_seen(toy, law, importance_steps, m, own_likelihood)
        assert_some_row_seen(toy, law, importance_steps, m, weighted=False)
    if alpha > 0:  # where all births have ratios below 1, q cancels: it shows not
        assert_some_row_seen(toy, law, birth_death_steps, own_likelihood)


# -------------------------------------------------------------------------- the exact stage
def closure(segment, n_rows, w):
    """Every state within reach of the segment's start."""
    found = {state for _, state in segment.start()}
    queue = list(found)
    while queue:
        state = queue.pop()
        for row in range(n_rows):
            for other, _ in segment.steps(state, row, w):
                if other not in found:
                    found.add(other)
                    queue.append(other)
    return found


def segments(toy, shards, **options):
    """The segment from every state and p*; each set of off-p* rows frozen once."""
    frozen = [()]
    if options.get("off") == "frozen":
        frozen = [(row,) for row in range(toy.n_rows)] + [tuple(range(toy.n_rows - 1))]
    for state in toy.law():
        for star in range(max(shards) + 1):
            for rows in frozen:
                yield Segment(toy, state, shards, star, frozen=rows, **options)


@every_prior
@pytest.mark.parametrize("tail, off", [*((t, "last") for t in TAILS), ("collapsed", "frozen")])
def test_updates_of_a_segment_are_reversible_given_the_weights(tail, off, alpha, d):
    rng = np.random.default_rng(5)
    n = 2 if tail == "pool" else 3
    toy = toy_of(n, alpha, d)
    for shards in SHARDS[n]:
        seen = set()
        for segment in segments(toy, shards, tail=tail, off=off):
            of_all = segment.star, segment.frozen, tuple(segment.thetas)
            if (of_all, segment.clusters) in seen:
                continue
            w = rng.dirichlet(np.ones(len(segment.parameters)), size=4).T
            states = closure(segment, n, w)
            seen.update((of_all, state[0]) for state in states)
            density = {state: segment.density(state, w) for state in states}
            scale = sum(density.values())
            for row in range(n):
                flows, net = defaultdict(float), defaultdict(float)
                for state in states:
                    for other, chance in segment.steps(state, row, w):
                        flow = density[state] * chance / scale
                        flows[state, other] = flows[state, other] + flow
                        flows[other, state] = flows[other, state] - flow
                        net[state] = net[state] - flow
                        net[other] = net[other] + flow
                # With the pool as an ordered list only pi T = pi holds.
                for flow in (net if tail == "pool" else flows).values():
                    assert np.abs(flow).max() < EXACT


@every_prior
def test_density_is_the_posterior_with_weights_summed_out(alpha, d):
    toy = toy_of(3, alpha, d)
    for shards in SHARDS[3]:
        for segment in segments(toy, shards, tail="drawn"):
            w = np.full((len(segment.parameters), 1), 1 / len(segment.parameters))
            ratios = []
            for state in closure(segment, 3, w):
                sizes, tail = segment.sizes(state[0])
                a = np.array([size - d for size in sizes] + [segment.a0 + sum(tail)])
                # density = dirichlet density of (a) times its constant times what is left
                rest = segment.density(state, w)[0] / math.prod(w[:, 0] ** (a - 1))
                integral = rest * np.exp(gammaln(a).sum() - gammaln(a.sum()))
                ((after, _),) = segment.finished(state)
                ratios.append(integral / toy.weight(after))
            assert max(ratios) == pytest.approx(min(ratios), rel=1e-10)


@every_prior
def test_density_by_numeric_integration(alpha, d):
    toy = toy_of(3, alpha, d)
    segment = Segment(toy, (((0, 1), 0), ((2,), 1)), (0, 1, 0), 0, tail="drawn")
    states = closure(segment, 3, np.array([[0.4], [0.6]]))
    ratios = []
    for state in states:

        def density(t, state=state):
            w = expit([t, -t])
            return segment.density(state, w) * w[0] * w[1]

        ((after, _),) = segment.finished(state)
        integral = quad(density, -200, 200, points=[-5, 0, 5], limit=400)[0]
        ratios.append(integral / toy.weight(after))
    assert len(ratios) > 5
    assert max(ratios) == pytest.approx(min(ratios), rel=1e-6)


@every_prior
@each_likelihood
@pytest.mark.parametrize("off", ["last", "frozen"])
@pytest.mark.parametrize("n, n_features", [(2, 3), pytest.param(3, 2, marks=pytest.mark.slow)])
def test_exact_stage_leaves_the_posterior_invariant(n, n_features, off, alpha, d, likelihood):
    toy = toy_of(n, alpha, d, likelihood, n_features)
    law = toy.law()
    tails = TAILS if (n, off) == (2, "last") else TAILS[:2]
    # All rows off p*, one of them frozen: the integrand has a corner (checked given w, above).
    for shards in SHARDS[n][: 3 if off == "frozen" else None]:
        for tail in tails:
            matrix = exact_stage_matrix(toy, shards, off=off, tail=tail, m=1)
            assert_exact(law, matrix, INTEGRATED)


@pytest.mark.parametrize("off", ["last", "frozen"])
def test_exact_stage_of_several_sub_iterations(off):
    toy = toy_of(3)
    for shards in SHARDS[3][1:3]:
        matrix = exact_stage_matrix(toy, shards, off=off, n_sweeps=3)
        assert_exact(toy.law(), matrix, INTEGRATED)
    toy = toy_of(4)
    matrix = exact_stage_matrix(toy, (0, 0, 1, 1), off=off)
    assert_exact(toy.law(), matrix, INTEGRATED)


def test_one_shard_is_collapsed_gibbs():
    toy = toy_of(3)
    target = toy.collapsed()
    states, law = list(partitions(3)), toy.law()
    matrix = exact_stage_matrix(toy, (0, 0, 0))
    summed = np.zeros((5, 5))
    for i, state in enumerate(law):
        at = states.index(labels_of(state))
        for j, other in enumerate(law):
            # every state of one partition has the same row: features are integrated out
            summed[at, states.index(labels_of(other))] += matrix[i, j] / 2 ** len(state)
    assert np.allclose(summed, scan_matrix(target), atol=EXACT)


def test_exact_stage_reaches_every_state():
    toy = toy_of(3)
    law = toy.law()
    features = kernel(law, lambda state: feature_steps(toy, state))
    for shards in SHARDS[3][:3]:
        for off in ("last", "frozen"):
            matrix = features @ exact_stage_matrix(toy, shards, off=off)
            limit = np.linalg.matrix_power(matrix, 1000)
            assert np.abs(limit - np.array(list(law.values()))).max() < INTEGRATED


@every_prior
@pytest.mark.few(1)
def test_faulty_exact_stages_are_seen(alpha, d):
    toy, silent = toy_of(3, alpha, d), toy_of(3, alpha, d, "off")
    law, silent_law = toy.law(), silent.law()
    for shards in SHARDS[3][1:3]:
        # As published: all features have weights, rows off p* may empty them.
        published = {"off": "free", "instantiated": "all"}
        assert_seen(law, exact_stage_matrix(toy, shards, **published))
        assert_seen(silent_law, exact_stage_matrix(silent, shards, **published))
        assert_seen(law, exact_stage_matrix(toy, shards, off="free"))
        assert_seen(law, exact_stage_matrix(toy, shards, off="unheld"))
        # Only the last local member kept, all features having weights: the likelihood shows it.
        for off in ("last", "frozen"):
            all_of_them = {"off": off, "instantiated": "all"}
            assert_seen(law, exact_stage_matrix(toy, shards, **all_of_them))
            silenced = exact_stage_matrix(silent, shards, **all_of_them)
            assert_exact(silent_law, silenced, INTEGRATED)
        # Discounts taken from the tail's total as well: d > 0 shows it.
        twice = exact_stage_matrix(toy, shards, twice=True)
        if d > 0:
            assert_seen(law, twice)
        else:
            assert_exact(law, twice, INTEGRATED)
    # Frozen rows on p* do not hold a feature.
    assert_seen(law, exact_stage_matrix(toy, (0, 1, 1), off="anywhere"), 3e-4)


def test_dirichlet_nodes_integrate_moments():
    a, c = np.array([0.7, 1.4, 0.3, 2.0]), np.array([2, 0, 3, 1])
    nodes, weights = dirichlet_nodes(list(a), 6)
    expected = np.exp(
        (gammaln(a + c) - gammaln(a)).sum() + gammaln(a.sum()) - gammaln(a.sum() + c.sum())
    )
    assert weights @ np.prod(nodes ** c[:, None], axis=0) == pytest.approx(expected, rel=1e-10)


# ------------------------------------------------------------------------------------ slice
def test_a_row_under_its_slice_is_reversible():
    rng = np.random.default_rng(3)
    for _ in range(20):
        weights, f = rng.dirichlet(np.full(6, 0.5)), rng.uniform(0.01, 1, size=6)
        matrix = slice_row_matrix(weights, f)
        flow = (weights * f)[:, None] * matrix
        assert np.abs(matrix.sum(axis=1) - 1).max() < EXACT
        assert np.abs(flow - flow.T).max() < EXACT


@every_prior
@pytest.mark.parametrize("n", [2, 3, 4])
def test_weights_and_sticks_given_the_partition(n, alpha, d):
    prior = Target([], alpha, d, n_rows=n).posterior()
    matrix = reallocation_matrix(alpha, d, n)
    assert_exact(prior, matrix)
    assert reversibility_error(prior, matrix) < EXACT
    if d > 0:
        without = max(alpha, 0.05)
        assert_seen(prior, reallocation_matrix(alpha, d, n, remainder=lambda k: without))
        assert_seen(prior, reallocation_matrix(alpha, d, n, tail=lambda k: without))


def slice_counts(toy, n_draws, seed, n_sweeps=1, start=None, **faults):
    """End states of independent runs, each from a draw of the posterior unless given a start."""
    rng, law = np.random.default_rng(seed), toy.law()
    states, counts = list(law), Counter()
    for at in rng.choice(len(states), size=n_draws, p=list(law.values())):
        state = states[at] if start is None else start
        for _ in range(n_sweeps):
            state = slice_sweep(toy, state, rng, **faults)
        counts[state] += 1
    return counts


@every_prior
@pytest.mark.few(1)
def test_slice_sweep_keeps_the_posterior(alpha, d):
    toy = toy_of(3, alpha, d)
    assert chi_square(slice_counts(toy, 3000, 11), toy.law()) > 1e-4


def test_slice_faults_are_seen():
    toy = toy_of(3)
    faulty = slice_counts(toy, 2000, 11, remainder=lambda k: 0.7)
    assert chi_square(faulty, toy.law()) < 1e-6
    faulty = slice_counts(toy, 6000, 11, stick=lambda j: (1.0, 0.7))
    assert chi_square(faulty, toy.law()) < 1e-4


@pytest.mark.slow
def test_slice_sampler_gets_to_the_posterior():
    toy = toy_of(3, 1.3, 0.0)
    counts = slice_counts(toy, 2000, 7, n_sweeps=15, start=(((0, 1, 2), 0),))
    assert chi_square(counts, toy.law()) > 1e-4


# -------------------------------------------------------------------------- split and merge
def state_matrix(toy, steps, **options):
    return kernel(toy.law(), lambda state: steps(toy, state, **options))


PAIRS = [uniform_pair, even_pair, similar_pair]
MOVES = [conjugate_steps, general_steps]


@every_prior
@each_likelihood
@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("n, n_features", [(2, 3), pytest.param(3, 2, marks=pytest.mark.slow)])
def test_split_merge_of_features(n, n_features, pair, alpha, d, likelihood):
    toy = toy_of(n, alpha, d, likelihood, n_features)
    law = toy.law()
    options = [(conjugate_steps, {"launch": seed_launch}), (general_steps, {})]
    if n == 3:
        options.append((conjugate_steps, {"launch": refined_launch}))
    for steps, chosen in options:
        matrix = state_matrix(toy, steps, pair=pair, **chosen)
        assert_exact(law, matrix)
        assert reversibility_error(law, matrix) < EXACT


@pytest.mark.parametrize("steps", MOVES)
def test_split_merge_of_four_rows(steps):
    law, matrix = toy_of(4).law(), state_matrix(toy_of(4), steps, pair=similar_pair)
    assert_exact(law, matrix)
    assert reversibility_error(law, matrix) < EXACT


@pytest.mark.parametrize("steps", MOVES)
@every_prior
@pytest.mark.few(3)
def test_faulty_split_merges_are_seen(steps, alpha, d):
    toy = toy_of(3, alpha, d)
    law = toy.law()
    faults = [{"allocated": False}, {"paired": False, "pair": similar_pair}]
    if steps is conjugate_steps:
        faults += [{"redrawn": False}, {"launch": current_launch}]
    else:
        faults += [{"weighted": False}]
    if d > 0:
        faults += [{"more": 1}]
    for fault in faults:
        assert_seen(law, state_matrix(toy, steps, **fault), 5e-4)
