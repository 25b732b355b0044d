"""The oracles of the permutation-augmented sampler checked against each other.

Every matrix must leave the posterior invariant, and every fault that the kernels' tests must reveal
is planted in the oracles and seen: pi T = pi to 1e-12 against an error above FAULT.
"""

import doctest
import math
from collections import Counter
from itertools import accumulate, combinations, permutations

import numpy as np
import pytest
from scipy.special import digamma, gamma

from oracles import permutation_enumeration
from oracles.enumeration import (
    Target,
    clusters,
    enumerate_joint,
    marginal,
    normalised,
    partitions,
    scan_matrix,
    split_merge_matrix,
    stationary_error,
    total_variation,
)
from oracles.permutation_enumeration import (
    MarginalTarget,
    beam_program,
    block_weight,
    compositions,
    consistent_orders,
    exact_matrix,
    exact_program,
    hill_climb_matrix,
    is_representable,
    kept_sets,
    labels_of,
    law_after,
    lengths_of,
    log_a,
    log_sum,
    log_v,
    markov_order,
    order_chances,
    projected_order,
    projection_matrix,
    quadratic_matrix,
    quadratic_program,
    reference_tau,
    segment_log_weights,
    segmentation_law,
    segmentation_log_weights,
    segments,
    sure_order,
    uniform_order,
)
from oracles.reversible import (
    COLUMNS,
    FAULT,
    NoDiscountJoin,
    NoDiscountOpen,
    OneClusterMore,
    assert_reversible,
    fresh_paths,
    mixed_columns,
)

EXACT = 1e-12
PRIORS = [(1.3, 0.0), (0.7, 0.3), (-0.1, 0.3)]
ORDER_LAWS = [uniform_order, markov_order]
BEAMS = [0.0, 1e-32, 0.1, 0.3, 0.6]
PROJECTIONS = {"distinct": [1.2, -0.7, 0.4, -0.1, 0.9], "tied": [0.5, -1.0, 0.5, 0.5, -1.0]}
every_prior = pytest.mark.parametrize("alpha, d", PRIORS)
each_order_law = pytest.mark.parametrize("order_law", ORDER_LAWS)


def mixed_target(n, alpha=0.7, d=0.3, kind=Target, **options):
    """A target on one column of each of some families, with missing cells."""
    return kind(mixed_columns(n), alpha, d, **options)


def assert_exact(target, matrix):
    """Reversible, and pi T = pi to rounding."""
    assert_reversible(target, matrix)
    assert stationary_error(target, matrix) < EXACT


def test_docstring_examples():
    results = doctest.testmod(permutation_enumeration)
    assert results.attempted > 0
    assert results.failed == 0


# ---------------------------------------------------------------- orders and segmentations
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_orders_and_partitions_are_consistent_in_pairs(n):
    pairs = Counter()
    for labels in partitions(n):
        orders = consistent_orders(labels)
        sizes = [len(rows) for rows in clusters(labels)]
        assert len(orders) == math.factorial(len(sizes)) * math.prod(map(math.factorial, sizes))
        assert all(labels_of(order, lengths_of(order, labels)) == labels for order in orders)
        pairs.update((order, labels) for order in orders)
    segmented = Counter(
        (order, labels_of(order, lengths))
        for order in permutations(range(n))
        for lengths in compositions(n)
    )
    assert pairs == segmented
    assert len(pairs) == math.factorial(n) * 2 ** (n - 1)


@each_order_law
def test_order_laws_are_normalised(order_law):
    target = mixed_target(5)
    for labels in partitions(5):
        chances = [chance for _, chance in order_chances(target, labels, order_law)]
        assert math.fsum(chances) == pytest.approx(1.0, abs=EXACT)


def test_orders_by_hand():
    target = mixed_target(4)
    k = {(a, b): math.exp(target.log_predict(b, (a,))) for a, b in permutations(range(4), 2)}
    expected = 1 / 2 * 1 / 3 * k[3, 0] / (k[3, 0] + k[3, 2])
    chances = dict(order_chances(target, (0, 1, 0, 0), markov_order))
    assert chances[3, 0, 2, 1] == pytest.approx(expected, abs=EXACT)
    chances = dict(order_chances(target, (0, 1, 0, 0), uniform_order))
    assert chances == dict.fromkeys(chances, pytest.approx(1 / 12, abs=EXACT))


# --------------------------------------------------------------------------- A and B
@every_prior
def test_weights_as_the_page_prints_them(alpha, d):
    target = mixed_target(5, alpha, d)
    for rows in [(3,), (4, 1), (0, 2, 1), (4, 3, 1, 0)]:
        n_c, m = len(rows), math.exp(target.log_cluster(tuple(sorted(rows))))
        rising = gamma(n_c - d) / gamma(1 - d)
        printed = {uniform_order: m * rising / math.factorial(n_c), sure_order: m * rising}
        if d == 0:
            assert printed[uniform_order] == pytest.approx(m / n_c)  # eq. (4)
        for order_law, expected in printed.items():
            log_b = block_weight(order_law, tau=0.6)
            assert math.exp(log_b(target, rows)) == pytest.approx(0.6 * expected, rel=EXACT)
    for k in range(1, 5):
        product = math.prod(alpha + i * d for i in range(k)) / alpha
        assert math.exp(log_v(target, k)) == pytest.approx(product)
        assert math.exp(log_a(target, k)) == pytest.approx(product / math.factorial(k))


@every_prior
@each_order_law
def test_a_prod_b_is_the_joint_law_of_partition_and_order(alpha, d, order_law):
    target = mixed_target(4, alpha, d)
    log_constant = math.fsum(math.log(alpha + 1 + i) for i in range(3))
    for labels in partitions(4):
        for order, chance in order_chances(target, labels, order_law):
            rows = segments(order, lengths_of(order, labels))
            log_b = block_weight(order_law)
            blocks = math.fsum(log_b(target, segment) for segment in rows)
            log_joint = log_a(target, len(rows)) + blocks - log_constant
            expected = target.log_joint(labels) + math.log(chance)
            assert log_joint == pytest.approx(expected, abs=EXACT)


# ---------------------------------------------------------------------------- programs
def backward_law(log_weights, log_g, kept=None):
    """The law of segments drawn from the last to the first with the program's own sums."""
    law, paths = {}, [(len(log_weights) - 1, (), 1.0)]
    while paths:
        r, lengths, probability = paths.pop()
        if r == 0:
            law[lengths] = probability
            continue
        for m in range(1, r + 1) if kept is None else kept[r]:
            chance = math.exp(log_g[r - m] + log_weights[r - m, r] - log_g[r])
            paths.append((r - m, (m, *lengths), probability * chance))
    return law


def orders_and_weights(target, order_law, tau=1.0):
    """A few orders and their segments' weights."""
    for order in list(permutations(range(target.n_rows)))[::17]:
        yield order, segment_log_weights(target, order, block_weight(order_law, tau))


@each_order_law
def test_exact_program_is_the_sum_over_segmentations(order_law):
    target = mixed_target(5)
    for _, log_weights in orders_and_weights(target, order_law):
        log_g = exact_program(log_weights)
        by_count = {k: [] for k in range(1, 6)}
        for lengths, log_product in segmentation_log_weights(log_weights).items():
            by_count[len(lengths)].append(log_product)
        for k, log_products in by_count.items():
            assert log_g[5, k] == pytest.approx(log_sum(log_products), abs=EXACT)
        # Backwards: K prop. to A(K) g(n, K), then the last segment of each (r, K).
        counts = normalised({k: log_a(target, k) + log_g[5, k] for k in by_count})
        law = segmentation_law(log_weights, lambda k: log_a(target, k))
        for lengths, probability in law.items():
            drawn, k = counts[len(lengths)], len(lengths)
            for m, r in zip(reversed(lengths), reversed(list(accumulate(lengths)))):
                drawn *= math.exp(log_g[r - m, k - 1] + log_weights[r - m, r] - log_g[r, k])
                k -= 1
            assert drawn == pytest.approx(probability, abs=EXACT)


@each_order_law
def test_quadratic_program_and_beam_are_the_sums_over_what_they_hold(order_law):
    for _, log_weights in orders_and_weights(mixed_target(5), order_law, tau=0.4):
        log_g = quadratic_program(log_weights)
        log_total = log_sum(segmentation_log_weights(log_weights).values())
        assert log_g[5] == pytest.approx(log_total, abs=EXACT)
        law = backward_law(log_weights, log_g)
        assert total_variation(law, segmentation_law(log_weights)) < EXACT
        full = [list(range(1, r + 1)) for r in range(6)]
        assert beam_program(log_weights, 0.0) == (pytest.approx(log_g, abs=EXACT), full)
        n_held = {}
        for eps in BEAMS:
            log_h, kept = beam_program(log_weights, eps)
            held = segmentation_log_weights(log_weights, kept=kept)
            assert log_h[5] == pytest.approx(log_sum(held.values()), abs=EXACT)
            law = backward_law(log_weights, log_h, kept)
            assert total_variation(law, segmentation_law(log_weights, kept=kept)) < EXACT
            n_held[eps] = len(held)
        assert n_held[1e-32] == 16 > n_held[0.6]


@pytest.mark.parametrize("eps", BEAMS[2:])
def test_beam_keeps_the_smallest_sets(eps):
    for _, log_weights in orders_and_weights(mixed_target(5), uniform_order, tau=0.4):
        log_g, kept = beam_program(log_weights, eps)
        assert kept[:2] == [[], [1]]
        for r in range(2, 6):
            candidates = {1} | {m + 1 for m in kept[r - 1]}
            terms = {m: math.exp(log_g[r - m] + log_weights[r - m, r]) for m in candidates}
            enough = (1 - eps) * sum(terms.values())
            sums = {
                (1, *others): terms[1] + sum(terms[m] for m in others)
                for size in range(len(terms))
                for others in combinations(sorted(candidates - {1}), size)
            }
            assert sums[tuple(kept[r])] >= enough
            assert math.exp(log_g[r]) == pytest.approx(sums[tuple(kept[r])])
            assert all(sums[held] < enough for held in sums if len(held) < len(kept[r]))


# ------------------------------------------------------------------ transition matrices
@pytest.mark.parametrize(
    "columns, beta", [*((columns, 1.0) for columns in COLUMNS), ("mixed", 0.5)]
)
@every_prior
@pytest.mark.few(6)
def test_moves_leave_the_posterior_invariant(columns, alpha, d, beta):
    for n in (3, 4):
        target = Target(COLUMNS[columns](n), alpha, d, beta=beta, n_rows=n)
        for order_law in ORDER_LAWS:
            assert_exact(target, exact_matrix(target, order_law))
            assert_exact(target, quadratic_matrix(target, 0.4, order_law=order_law))
        assert_exact(target, quadratic_matrix(target, 0.4, eps=0.3))
        for projections in PROJECTIONS.values():
            assert_exact(target, projection_matrix(target, projections[:n], 0.9))
            assert_exact(target, projection_matrix(target, projections[:n], 0.9, eps=0.3))


@every_prior
@pytest.mark.parametrize("eps", BEAMS)
@pytest.mark.parametrize("tau", [0.05, 3.0])
@pytest.mark.few(12)
def test_any_beam_and_any_fixed_tau_are_exact(alpha, d, eps, tau):
    target = mixed_target(4, alpha, d)
    for order_law in ORDER_LAWS:
        assert_exact(target, quadratic_matrix(target, tau, eps=eps, order_law=order_law))
    for projections in PROJECTIONS.values():
        assert_exact(target, projection_matrix(target, projections[:4], tau, eps=eps))


def one_put_back(log_terms, eps):
    """The smallest set with 1 - eps of the sum, m = 1 among the rest; then m = 1 as well."""
    ranked = sorted(log_terms, key=log_terms.get, reverse=True)
    shares = list(accumulate(normalised(log_terms)[m] for m in ranked))
    n_kept = 1 + sum(share < 1 - eps for share in shares)
    return sorted({1, *ranked[:n_kept]})


def largest_alone(log_terms, eps):
    """Not even m = 1 is always kept."""
    return [max(log_terms, key=log_terms.get)]


@pytest.mark.parametrize("choose", [one_put_back, largest_alone])
@every_prior
def test_any_choice_that_does_not_look_at_the_partition_is_exact(choose, alpha, d):
    def chosen(log_weights, eps, lengths):
        return beam_program(log_weights, eps, choose)[1]

    target = mixed_target(4, alpha, d)
    matrix = quadratic_matrix(target, 0.1, eps=0.4, kept=chosen)
    assert_exact(target, matrix)
    assert np.abs(matrix - quadratic_matrix(target, 0.1, eps=0.4)).max() > FAULT
    projections = PROJECTIONS["tied"][:4]
    assert_exact(target, projection_matrix(target, projections, 0.1, eps=0.4, kept=chosen))


def test_five_rows():
    target = mixed_target(5)
    for order_law in ORDER_LAWS:
        assert_exact(target, exact_matrix(target, order_law))
        assert_exact(target, quadratic_matrix(target, 0.4, eps=0.2, order_law=order_law))
    for projections in PROJECTIONS.values():
        assert_exact(target, projection_matrix(target, projections, 0.9, eps=0.2))


@every_prior
@each_order_law
def test_exact_matrix_by_bayes_without_a_and_b(alpha, d, order_law):
    target = mixed_target(4, alpha, d)
    posterior, states = target.posterior(), list(partitions(4))
    joint = np.zeros((len(states), 24))
    columns = {order: j for j, order in enumerate(permutations(range(4)))}
    for i, labels in enumerate(states):
        for order, chance in order_chances(target, labels, order_law):
            joint[i, columns[order]] = posterior[labels] * chance
    expected = (joint / joint.sum(axis=1, keepdims=True)) @ (joint / joint.sum(axis=0)).T
    assert np.abs(exact_matrix(target, order_law) - expected).max() < EXACT


def test_special_cases():
    silent = Target([], 0.7, 0.3, n_rows=4)
    assert np.allclose(exact_matrix(silent, markov_order), exact_matrix(silent), atol=EXACT)
    target = mixed_target(4)
    without = quadratic_matrix(target, 0.4)
    assert np.allclose(quadratic_matrix(target, 0.4, eps=1e-32), without, atol=EXACT)
    assert np.abs(quadratic_matrix(target, 0.4, eps=0.3) - without).max() > FAULT
    assert np.abs(exact_matrix(target, markov_order) - exact_matrix(target)).max() > FAULT
    # With w(1) = w(2) and no third cluster in reach every proposal is accepted.
    two = Target(mixed_columns(2), 0.7, 0.3)
    tau = reference_tau(two, 1)
    assert np.allclose(quadratic_matrix(two, tau), exact_matrix(two), atol=EXACT)


def test_moves_reach_every_state_except_by_a_coarse_beam():
    target = mixed_target(4)
    posterior = target.posterior()
    start = {(0, 0, 0, 0): 1.0}
    for matrix in (exact_matrix(target), exact_matrix(target, markov_order)):
        assert total_variation(law_after(matrix, start, 200), posterior) < 1e-9
    coarse = quadratic_matrix(target, 0.4, eps=1 - 1e-9)
    assert np.allclose(coarse, np.eye(15), atol=EXACT)  # only singletons are representable
    mixed = coarse @ scan_matrix(target)
    assert total_variation(law_after(mixed, start, 500), posterior) < 1e-9


def test_law_after_a_step_is_a_row():
    target = mixed_target(4)
    matrix, states = quadratic_matrix(target, 0.4, eps=0.3), list(partitions(4))
    law = law_after(matrix, {states[5]: 0.25, states[9]: 0.75})
    assert np.allclose(list(law.values()), 0.25 * matrix[5] + 0.75 * matrix[9], atol=EXACT)
    assert list(law) == states


def test_ties_are_broken_by_the_row():
    assert projected_order((0, 1, 0, 1, 2), [0.0] * 5) == (0, 2, 1, 3, 4)
    assert projected_order((0, 1, 1, 0), [2.0, 1.0, 1.0, 0.0]) == (3, 0, 1, 2)


# ---------------------------------------------------------------- alpha integrated out
GRIDS = {
    "DP": ([0.2, 1.0, 6.0], 0.0, [0.5, 0.2, 0.3]),
    "PY": ([0.2, 1.0, 6.0], 0.3, [0.5, 0.2, 0.3]),
    "negative": ([-0.25, 0.0, 2.0], 0.3, [0.2, 0.3, 0.5]),
}
every_grid = pytest.mark.parametrize("grid", GRIDS)


def marginal_target(grid, n, kind=MarginalTarget):
    """The mixed columns with the concentration summed out."""
    concentrations, discount, weights = GRIDS[grid]
    return kind(mixed_columns(n), concentrations, discount, weights=weights)


@every_grid
def test_marginal_target_is_the_joint_summed_over_the_grid(grid):
    alphas, d, weights = GRIDS[grid]
    prior_weights = np.array(weights)[:, None]
    joint = enumerate_joint(mixed_columns(4), alphas, d, prior_weights=prior_weights)
    target = marginal_target(grid, 4)
    assert total_variation(target.posterior(), marginal(joint, 0)) < EXACT
    pairs = marginal(joint, 0, 1)
    for labels, probability in target.posterior().items():
        for alpha, given in target.concentration_given(max(labels) + 1).items():
            assert pairs[labels, alpha] == pytest.approx(probability * given, abs=EXACT)


@every_grid
def test_w_as_the_page_prints_it(grid):
    alphas, d, weights = GRIDS[grid]
    target = marginal_target(grid, 4)
    for k in range(1, 5):
        terms = [
            weight * math.prod(a + i * d for i in range(1, k)) * gamma(a + 1) / gamma(a + 4)
            for a, weight in zip(alphas, weights)
        ]
        assert math.exp(target.log_w(k)) == pytest.approx(sum(terms))
        if grid == "DP":
            printed = [w * a**k * gamma(a) / gamma(a + 4) for a, w in zip(alphas, weights)]
            assert terms == pytest.approx(printed)
            mean_log = np.average(np.log(alphas), weights=printed)
            tau = math.exp(mean_log - digamma(k + 1))
            assert target.mean_log_tau(k) == pytest.approx(tau)
        w = [log_a(target, j) - j * math.log(reference_tau(target, k)) for j in (k, k + 1)]
        assert w[0] == pytest.approx(w[1])


@every_grid
@pytest.mark.parametrize("n", [3, 4])
def test_moves_with_alpha_integrated_out(grid, n):
    target = marginal_target(grid, n)
    taus = [reference_tau(target, 2), target.mean_log_tau(2)]
    for order_law in ORDER_LAWS:
        assert_exact(target, exact_matrix(target, order_law))
        for tau in taus:
            for eps in (0.0, 0.3):
                matrix = quadratic_matrix(target, tau, eps=eps, order_law=order_law)
                assert_exact(target, matrix)
    for projections in PROJECTIONS.values():
        assert_exact(target, projection_matrix(target, projections[:n], 0.9, eps=0.1))
    assert_exact(target, split_merge_matrix(target))
    assert stationary_error(target, scan_matrix(target)) < EXACT


def test_one_alpha_is_a_fixed_alpha():
    target = mixed_target(4)
    single = mixed_target(4, [0.7], kind=MarginalTarget)
    assert total_variation(target.posterior(), single.posterior()) < EXACT
    assert np.allclose(exact_matrix(single), exact_matrix(target), atol=EXACT)
    for labels in partitions(4):
        assert single.log_joint(labels) == pytest.approx(target.log_joint(labels), abs=EXACT)


# -------------------------------------------------------------------- negative controls
def enlarged(log_weights, eps, lengths):
    """The beam's sets with the segments of the current partition put in."""
    kept = [set(row) for row in kept_sets(log_weights, eps, lengths)]
    for m, r in zip(lengths, accumulate(lengths)):
        kept[r].add(m)
    return kept


def always(*_):
    """No rejection."""
    return True


class NoFactorial(Target):
    """Forgets the 1 / K! of the clusters' order."""

    def log_open(self, n_clusters):
        return super().log_open(n_clusters) + math.log(n_clusters + 1)


class MeanConcentration(MarginalTarget):
    """Uses the prior mean of alpha in place of W(K)."""

    def log_open(self, n_clusters):
        alpha = np.average(self.concentration, weights=self.weights)
        return math.log(alpha + n_clusters * self.discount) if n_clusters else 0.0


def assert_seen(target, matrix):
    """A proper matrix whose stationary law is not the posterior."""
    assert np.abs(matrix.sum(axis=1) - 1).max() < EXACT
    assert stationary_error(target, matrix) > FAULT


def adapted(target, move):
    """Each state's row from the move tuned to its own number of clusters."""
    matrices = [move(k) for k in range(1, target.n_rows + 1)]
    return np.array(
        [matrices[max(labels)][i] for i, labels in enumerate(partitions(target.n_rows))]
    )


@every_prior
@pytest.mark.parametrize("eps", [0.1, 0.3])
@pytest.mark.parametrize("fault", [{"kept": enlarged}, {"holds": always}], ids=lambda f: min(f))
def test_faulty_beams_are_seen(alpha, d, eps, fault):
    target = mixed_target(4, alpha, d)
    for order_law in ORDER_LAWS:
        assert_seen(target, quadratic_matrix(target, 0.4, eps=eps, order_law=order_law, **fault))
    assert_seen(
        target, projection_matrix(target, PROJECTIONS["distinct"][:4], 0.9, eps=eps, **fault)
    )


@every_prior
@pytest.mark.parametrize("projections", PROJECTIONS)
def test_projection_hill_climb_and_a_forgotten_order_are_seen(alpha, d, projections):
    target = mixed_target(4, alpha, d)
    numbers, tau = PROJECTIONS[projections][:4], reference_tau(target, 2) * 3
    for eps in (0.0, 0.1):
        assert_seen(target, hill_climb_matrix(target, numbers, tau, eps=eps))
        assert_seen(target, projection_matrix(target, numbers, tau, eps=eps, returns=always))


@every_prior
def test_tau_adapted_to_the_current_number_of_clusters_is_seen(alpha, d):
    target = mixed_target(4, alpha, d)
    assert_seen(
        target, adapted(target, lambda k: quadratic_matrix(target, reference_tau(target, k)))
    )

    def project(k):
        tau = alpha + k * d
        return projection_matrix(target, PROJECTIONS["distinct"][:4], tau)

    if d > 0:
        assert_seen(target, adapted(target, project))
    else:  # alpha + 0 K is one tau for all K: this fault is seen with a discount only
        assert_exact(target, adapted(target, project))


@pytest.mark.parametrize("fault", [NoDiscountJoin, NoDiscountOpen, OneClusterMore, NoFactorial])
@pytest.mark.parametrize("n", [3, 4])
def test_faulty_weights_are_seen(fault, n):
    target, faulty = mixed_target(n), mixed_target(n, kind=fault)
    for order_law in ORDER_LAWS:
        assert_seen(target, exact_matrix(faulty, order_law))
        assert_seen(target, quadratic_matrix(faulty, 0.4, eps=0.1, order_law=order_law))
    assert_seen(target, projection_matrix(faulty, PROJECTIONS["distinct"][:n], 0.9))
    if fault in (NoDiscountJoin, OneClusterMore):
        # Without a discount these faults cannot be seen.
        target, faulty = mixed_target(n, d=0.0), mixed_target(n, d=0.0, kind=fault)
        assert_exact(target, exact_matrix(faulty))
        assert_exact(target, quadratic_matrix(faulty, 0.4))


@every_prior
@pytest.mark.parametrize("n", [3, 4])
def test_an_order_law_without_its_weights_is_seen(alpha, d, n):
    """Orders from one law, the program's B from the other."""
    target = mixed_target(n, alpha, d)
    states = list(partitions(n))
    for drawn, weighed in (ORDER_LAWS, ORDER_LAWS[::-1]):
        matrix = np.zeros((len(states), len(states)))
        for i, labels in enumerate(states):
            for order, chance in order_chances(target, labels, drawn):
                log_weights = segment_log_weights(target, order, block_weight(weighed))
                law = segmentation_law(log_weights, lambda k: log_a(target, k))
                for lengths, probability in law.items():
                    matrix[i, states.index(labels_of(order, lengths))] += chance * probability
        assert_seen(target, matrix)


@every_grid
def test_faults_with_alpha_integrated_out_are_seen(grid):
    target, faulty = marginal_target(grid, 4), marginal_target(grid, 4, MeanConcentration)
    assert_seen(target, exact_matrix(faulty))
    assert_seen(target, quadratic_matrix(faulty, 0.4))
    assert_seen(target, adapted(target, lambda k: quadratic_matrix(target, target.mean_log_tau(k))))
    assert_seen(target, split_merge_matrix(target, fresh_paths))


def test_representable_means_every_segment():
    kept = [[], [1], [1, 2], [1]]
    assert is_representable((2, 1), kept)
    assert not is_representable((1, 2), kept)
    assert not is_representable((3,), kept)
