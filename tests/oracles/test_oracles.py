"""The oracles checked against each other, against numerical integrals and by simulation.

Every later sampler test leans on `reference` and `enumeration`, so each of their laws is obtained
here in a second way, and every fault they must reveal is planted and seen.
"""

import doctest
import math
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest
from scipy import integrate, stats

from oracles import enumeration, reference
from oracles.enumeration import (
    Target,
    annealed_sizes,
    canonical,
    check_counts,
    clusters,
    count_p_value,
    enumerate_joint,
    enumerate_posterior,
    gibbs_matrix,
    hyper_grid,
    log_eppf,
    marginal,
    near_partners,
    partitions,
    random_gibbs_matrix,
    relabelled,
    scan_matrix,
    schedule_law,
    split_merge_matrix,
    stationary_error,
    total_variation,
    uniform_partners,
)
from oracles.reference import (
    EXAMPLES,
    ROW_EXAMPLES,
    integrated_log_marginal,
    log_marginal,
    log_predictive,
)
from oracles.reversible import (
    COLUMNS,
    EXACT,
    FAMILIES,
    FAULT,
    NoDiscountJoin,
    NoDiscountOpen,
    OneClusterMore,
    assert_reversible,
    column,
    fresh_paths,
    mixed_columns,
)

ROW_FAMILIES = sorted(ROW_EXAMPLES)
PRIORS = [(1.3, 0.0), (0.7, 0.3), (-0.1, 0.4)]


@pytest.mark.parametrize("module", [reference, enumeration], ids=lambda module: module.__name__)
def test_docstring_examples(module):
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


# ------------------------------------------------------------------- likelihood families
@pytest.mark.parametrize("family", FAMILIES)
def test_chain_rule_in_every_order(family):
    _, values, hyper = column(family, 5, missing={2})
    expected = log_marginal(family, values, hyper)
    for order in permutations(values):
        chained = sum(log_predictive(family, order[i], order[:i], hyper) for i in range(5))
        assert chained == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.few(12)
def test_marginal_equals_the_integral_over_the_parameters(family, n):
    values, hyper = EXAMPLES[family]
    expected = integrated_log_marginal(family, values[:n], hyper)
    assert log_marginal(family, values[:n], hyper) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [0, 4])
def test_predictive_sums_to_one(family, n):
    values, hyper = EXAMPLES[family]

    def density(value):
        return math.exp(log_predictive(family, value, values[:n], hyper))

    if family.endswith("log_normal"):  # over the logarithm, where the tails are short enough

        def of_log(y):
            return density(math.exp(y)) * math.exp(y)

        ends = [(-600, -60), (-60, 0), (0, 60), (60, 600)]
        total = sum(integrate.quad(of_log, *each)[0] for each in ends)
        if family == "semi_continuous_log_normal":
            total += sum(map(density, reference.AMOUNT_ATOMS))
    elif family in ("normal", "gamma_exponential", "semi_continuous"):
        halves = [(0, 5)] if family == "gamma_exponential" else [(-np.inf, 0), (0, 5)]
        total = sum(integrate.quad(density, *ends)[0] for ends in [*halves, (5, np.inf)])
        if family == "semi_continuous":
            total += sum(map(density, reference.ATOMS))
    else:
        support = {"categorical": range(3), "bernoulli": (False, True)}
        total = math.fsum(map(density, support.get(family, range(400))))
    assert total == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("family", ROW_FAMILIES)
def test_rows_in_every_order(family):
    values, hyper = ROW_EXAMPLES[family]
    expected = log_marginal(family, values[:5], hyper)
    for order in permutations(values[:5]):
        chained = sum(log_predictive(family, order[i], order[:i], hyper) for i in range(5))
        assert chained == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("family", ROW_FAMILIES)
@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.few(2)
def test_marginal_of_rows_equals_the_integral_over_the_parameters(family, n):
    values, hyper = ROW_EXAMPLES[family]
    expected = integrated_log_marginal(family, values[:n], hyper)
    assert log_marginal(family, values[:n], hyper) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("n", [0, 4])
def test_predictive_of_rows_equals_the_textbook_distribution(n):
    values, hyper = ROW_EXAMPLES["multivariate_normal"]
    rows, mu0, d = np.array(values[:n]).reshape(n, 2), np.array(hyper["mu0"]), 2
    kappa, nu = hyper["kappa0"] + n, hyper["nu0"] + n
    mean = rows.mean(axis=0) if n else mu0
    psi = hyper["scale0"] + (rows - mean).T @ (rows - mean)
    psi = psi + hyper["kappa0"] * n / kappa * np.outer(mean - mu0, mean - mu0)
    centre = (hyper["kappa0"] * mu0 + n * mean) / kappa
    shape = psi * (kappa + 1) / (kappa * (nu - d + 1))
    expected = stats.multivariate_t(centre, shape, nu - d + 1).logpdf([0.7, -1.1])
    shown = log_predictive("multivariate_normal", (0.7, -1.1), values[:n], hyper)
    assert shown == pytest.approx(expected, abs=1e-10)

    values, hyper = ROW_EXAMPLES["known_normal"]
    covariance, prior = np.array(hyper["covariance"]), np.array(hyper["prior_covariance"])
    precision = np.linalg.inv(prior) + n * np.linalg.inv(covariance)
    total = np.reshape(values[:n], (n, 2)).sum(axis=0)
    weighted = np.linalg.solve(prior, hyper["prior_mean"]) + np.linalg.solve(covariance, total)
    centre = np.linalg.solve(precision, weighted)
    law = stats.multivariate_normal(centre, covariance + np.linalg.inv(precision))
    shown = log_predictive("known_normal", (0.7, -1.1), values[:n], hyper)
    assert shown == pytest.approx(law.logpdf([0.7, -1.1]), abs=1e-10)


def test_predictive_equals_the_textbook_distribution():
    values, hyper = EXAMPLES["normal"]
    kappa, nu = hyper["kappa0"] + len(values), hyper["nu0"] + len(values)
    mean = (hyper["kappa0"] * hyper["mu0"] + sum(values)) / kappa
    squares = (len(values) - 1) * np.var(values, ddof=1)
    shift = hyper["kappa0"] * len(values) / kappa * (np.mean(values) - hyper["mu0"]) ** 2
    variance = (hyper["nu0"] * hyper["sigma2_0"] + squares + shift) / nu
    student = stats.t(nu, mean, math.sqrt(variance * (1 + 1 / kappa)))
    assert log_predictive("normal", 2.2, values, hyper) == pytest.approx(student.logpdf(2.2))

    values, hyper = EXAMPLES["poisson"]
    shape, rate = hyper["shape"] + sum(values), hyper["rate"] + len(values)
    negative_binomial = stats.nbinom(shape, rate / (rate + 1))
    assert log_predictive("poisson", 3, values, hyper) == pytest.approx(negative_binomial.logpmf(3))


def test_normal_keeps_the_noise_on_a_large_offset():
    values, hyper = EXAMPLES["normal"]
    offset = 2.0**31
    scaled = [round(value * 1024) / 1024 for value in values]
    near = {**hyper, "mu0": 0.25}
    far = {**hyper, "mu0": 0.25 + offset}
    moved = [value + offset for value in scaled]
    assert log_marginal("normal", moved, far) == log_marginal("normal", scaled, near)
    assert log_predictive("normal", 1 + offset, moved, far) == log_predictive(
        "normal", 1.0, scaled, near
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_missing_cells_add_nothing(family):
    values, hyper = EXAMPLES[family]
    gappy = [None, *values, math.nan]
    assert log_marginal(family, gappy, hyper) == log_marginal(family, values, hyper)
    assert log_marginal(family, [math.nan, None], hyper) == 0.0
    assert log_predictive(family, None, values, hyper) == 0.0
    expected = log_predictive(family, values[0], values, hyper)
    assert log_predictive(family, values[0], gappy, hyper) == expected


def test_unseen_level():
    values, hyper = EXAMPLES["categorical"]
    n, pseudo_counts = len(values), hyper["pseudo_counts"]
    expected = math.log(min(pseudo_counts) / (n + sum(pseudo_counts) + min(pseudo_counts)))
    for unseen in (3, -1, 0.5):
        assert log_predictive("categorical", unseen, values, hyper) == pytest.approx(expected)
    with pytest.raises(ValueError, match="levels"):
        log_marginal("categorical", [0, 3], hyper)


# --------------------------------------------------------------------------- partitions
def test_partitions_are_canonical_and_counted_by_bell_numbers():
    for n, bell in enumerate([1, 1, 2, 5, 15, 52, 203, 877]):
        states = list(partitions(n))
        assert len(set(states)) == len(states) == bell
        assert all(canonical(state) == state for state in states)


@pytest.mark.parametrize("alpha, d", PRIORS)
@pytest.mark.parametrize("n", range(1, 8))
def test_eppf_sums_to_one_and_is_the_product_of_the_assignment_weights(n, alpha, d):
    total = 0.0
    for state in partitions(n):
        sizes = [len(rows) for rows in clusters(state)]
        total += math.exp(log_eppf(sizes, alpha, d))
        sequential, seen = 1.0, []
        for label in state:
            n_clusters = len(set(seen))
            if seen:
                weight = seen.count(label) - d if label in seen else alpha + n_clusters * d
                sequential *= weight / (len(seen) + alpha)
            seen.append(label)
        assert math.exp(log_eppf(sizes, alpha, d)) == pytest.approx(sequential, rel=1e-12)
    assert total == pytest.approx(1.0, abs=1e-12)


def test_posterior_of_two_rows_by_hand():
    values, hyper = [0.3, 1.8], EXAMPLES["normal"][1]
    posterior = enumerate_posterior([("normal", values, hyper)], concentration=1.3, discount=0.3)
    together = (1 - 0.3) * math.exp(integrated_log_marginal("normal", values, hyper))
    alone = [math.exp(integrated_log_marginal("normal", [value], hyper)) for value in values]
    apart = (1.3 + 0.3) * math.prod(alone)
    assert posterior[0, 0] == pytest.approx(together / (together + apart), abs=1e-6)


def test_posterior_equals_the_target_and_beta_powers_the_likelihood_only():
    columns = mixed_columns(5)
    posterior = enumerate_posterior(columns, concentration=1.3, discount=0.3)
    assert total_variation(posterior, Target(columns, 1.3, 0.3).posterior()) < 1e-12
    prior = enumerate_posterior([], 1.3, 0.3, n_rows=5)
    assert total_variation(enumerate_posterior(columns, 1.3, 0.3, beta=0.0), prior) < 1e-12
    tempered = enumerate_posterior(columns, 1.3, 0.3, beta=0.5)
    squared = {state: tempered[state] ** 2 / prior[state] for state in tempered}
    normaliser = sum(squared.values())
    assert all(
        squared[state] / normaliser == pytest.approx(posterior[state]) for state in posterior
    )


def test_joint_posterior_over_grids_is_the_mixture_of_its_slices():
    alphas, discounts = [0.5, 2.0], [0.0, 0.3, 0.6]
    hypers = hyper_grid(a=[0.5, 2.0], b=[1.0, 3.0])
    _, values, _ = column("bernoulli", 4, missing={1})
    fixed = column("normal", 4)
    columns = [("bernoulli", values, hypers, [0.1, 0.2, 0.3, 0.4]), fixed]
    prior_weights = np.array([[1.0, 2.0, 3.0], [4.0, 0.0, 5.0]])
    joint = enumerate_joint(columns, alphas, discounts, prior_weights=prior_weights)
    assert sum(joint.values()) == pytest.approx(1.0)
    assert not any(key[1:3] == (2.0, 0.3) for key in joint)
    evidence = marginal(joint, 1, 2, 3)
    mixture = Counter()
    for (alpha, d, indices), weight in evidence.items():
        one = [("bernoulli", values, hypers[indices[0]]), fixed]
        for state, probability in enumerate_posterior(one, alpha, d).items():
            mixture[state] += weight * probability
    posterior = enumerate_posterior(columns, alphas, discounts, prior_weights=prior_weights)
    assert total_variation(mixture, posterior) < 1e-12
    # The ratio of two evidences is that of the brute-force sums of prior times likelihood.
    first, second = (0.5, 0.0, (1, 0)), (2.0, 0.6, (2, 0))
    sums = []
    for (alpha, d, indices), weight in ((first, 1.0 * 0.2), (second, 5.0 * 0.3)):
        target = Target([("bernoulli", values, hypers[indices[0]]), fixed], alpha, d)
        sums.append(weight * sum(math.exp(target.log_joint(state)) for state in partitions(4)))
    assert evidence[first] / evidence[second] == pytest.approx(sums[0] / sums[1])


# ------------------------------------------------------------------------------- counts
def test_p_value_of_counts_is_uniform_and_small_for_another_law():
    rng = np.random.default_rng(20)
    posterior = enumerate_posterior(mixed_columns(4), 1.3, 0.3)
    states, probabilities = list(posterior), list(posterior.values())
    p_values = []
    for _ in range(300):
        drawn = rng.multinomial(2000, probabilities)
        p_values.append(count_p_value(dict(zip(states, drawn)), posterior))
    # False-alarm rate 1e-4: 300 p-values against the uniform law.
    assert stats.kstest(p_values, "uniform").pvalue > 1e-4
    counts = dict(zip(states, rng.multinomial(20_000, probabilities)))
    check_counts(counts, posterior)
    other = enumerate_posterior(mixed_columns(4), 1.3, 0.2)
    with pytest.raises(AssertionError, match="p ="):
        check_counts(counts, other)


def test_counts_pool_rare_states_and_refuse_impossible_ones():
    assert count_p_value({"a": 3}, {"a": 0.5, "b": 0.5}) == 1.0
    pooled = count_p_value({"a": 90, "b": 4, "c": 6}, {"a": 0.9, "b": 0.06, "c": 0.04})
    assert pooled == pytest.approx(1.0)
    counts = {"a": 20, "b": 25, "c": 55}
    expected = stats.chisquare([20, 25, 55], [25.0, 25.0, 50.0]).pvalue
    assert count_p_value(counts, {"a": 0.25, "b": 0.25, "c": 0.5}) == pytest.approx(expected)
    assert count_p_value({"a": 99, "z": 1}, {"a": 1.0}) == 0.0
    with pytest.raises(ValueError, match="sum"):
        count_p_value({"a": 1}, {"a": 0.9})


# ------------------------------------------------------------------------ schedule laws
def simulate(target, sizes, selection, rng):
    """One run of a schedule, by marginal ratios instead of predictives."""
    labels, order = {}, list(rng.permutation(target.n_rows))
    head, tail, n_opened = 0, 0, 0
    for before, after in zip(sizes, sizes[1:]):
        for _ in range(before + 1 - after):
            if selection == "window":
                row, tail = order[tail % len(order)], tail + 1
            else:
                row = sorted(labels)[rng.integers(len(labels))]
            del labels[row]
        if selection == "window":
            row, head = order[head % len(order)], head + 1
        else:
            outside = [r for r in range(target.n_rows) if r not in labels]
            row = outside[rng.integers(len(outside))]
        members = [[r for r in labels if labels[r] == label] for label in set(labels.values())]
        log_weights = [
            math.log(len(rows) - target.discount)
            + target.log_cluster(tuple(sorted([*rows, row])))
            - target.log_cluster(tuple(sorted(rows)))
            for rows in members
        ]
        opening = math.log(target.concentration + len(members) * target.discount)
        log_weights.append(opening + target.log_cluster((row,)))
        cumulative = np.cumsum(np.exp(log_weights))
        choice = int(np.searchsorted(cumulative, rng.random() * cumulative[-1]))
        n_opened += 1
        labels[row] = labels[members[choice][0]] if choice < len(members) else n_opened
    return canonical([labels.get(row, -1) for row in range(target.n_rows)])


def law_by_runs(target, sizes, selection):
    """The law of a schedule from every run one by one: every row drawn, every label drawn."""
    law, n = Counter(), target.n_rows
    events = "".join("L" * (before + 1 - after) + "E" for before, after in zip(sizes, sizes[1:]))

    def run(step, members, order, head, tail, probability):
        if step == len(events):
            labels = {row: label for label, rows in enumerate(members) for row in rows}
            law[canonical([labels.get(row, -1) for row in range(n)])] += probability
            return
        inside = frozenset().union(*members)
        if events[step] == "L":
            leaving = [order[tail % n]] if order else inside
            for row in leaving:
                kept = [rows - {row} for rows in members if rows != {row}]
                run(step + 1, kept, order, head, tail + 1, probability / len(leaving))
            return
        entering = [order[head % n]] if order else frozenset(range(n)) - inside
        for row in entering:
            weights = [target.concentration + len(members) * target.discount]
            weights += [len(rows) - target.discount for rows in members]
            joined = [rows | {row} for rows in [frozenset(), *members]]
            for i, rows in enumerate([frozenset(), *members]):
                before, after = tuple(sorted(rows)), tuple(sorted(joined[i]))
                weights[i] *= math.exp(target.log_cluster(after) - target.log_cluster(before))
            for i, weight in enumerate(weights):
                others = [rows for k, rows in enumerate(members) if k + 1 != i]
                chance = probability * weight / sum(weights) / len(entering)
                run(step + 1, [*others, joined[i]], order, head + 1, tail, chance)

    orders = list(permutations(range(n))) if selection == "window" else [None]
    for order in orders:
        run(0, [], order, 0, 0, 1.0 / len(orders))
    return law


def by_rows_of_both(labels, i, j):
    return 1.0 / sum(label in (labels[i], labels[j]) for label in labels)


def by_rows_of_the_first(labels, i, j):
    return 1.0 / labels.count(labels[i])


@pytest.mark.parametrize("n", [3, 4])
def test_split_merge_may_skip_pairs_by_the_rows_of_both_clusters_alone(n):
    target = Target(mixed_columns(n), 1.3, 0.3)
    given = {"partners": near_partners}
    assert_reversible(target, split_merge_matrix(target, made=by_rows_of_both, **given))
    skipped = split_merge_matrix(target, made=by_rows_of_the_first, **given)
    assert stationary_error(target, skipped) > FAULT


@pytest.mark.parametrize("looks", [(3,), (3, 4)])
def test_a_split_may_end_early_if_its_merge_has_the_same_looks(looks):
    target = Target(mixed_columns(5), 1.3, 0.3)
    given = {"partners": near_partners}
    assert_reversible(target, split_merge_matrix(target, looks=(looks, looks), **given))
    forgotten = split_merge_matrix(target, looks=(looks, ()), **given)
    assert stationary_error(target, forgotten) > FAULT
    whole = split_merge_matrix(target, **given)
    assert not np.allclose(whole, split_merge_matrix(target, looks=(looks, looks), **given))


@pytest.mark.parametrize("selection", ["random", "window"])
@pytest.mark.parametrize("sizes", [[0, 1, 2, 2, 3, 3], [0, 1, 2, 3, 3, 3], [0, 1, 2, 3, 2, 2, 3]])
def test_schedule_law_is_the_sum_over_all_runs(sizes, selection):
    columns = mixed_columns(3)
    law = schedule_law(columns, sizes, selection, 1.3, 0.3)
    expected = law_by_runs(Target(columns, 1.3, 0.3), sizes, selection)
    assert total_variation(law, expected) < 1e-12


def test_selections_give_different_laws():
    columns = mixed_columns(4)
    for n_swaps in (1, 2):
        random, window = (
            schedule_law(columns, annealed_sizes(4, n_swaps), selection, 1.3, 0.3)
            for selection in ("random", "window")
        )
        assert total_variation(random, window) > 1e-3


@pytest.mark.parametrize("n_swaps", [0, 1, 2])
@pytest.mark.parametrize("selection", ["random", "window"])
@pytest.mark.few(3)
def test_schedule_law_against_simulation(n_swaps, selection):
    columns, sizes = mixed_columns(4), annealed_sizes(4, n_swaps)
    law = schedule_law(columns, sizes, selection, 1.3, 0.3)
    assert sum(law.values()) == pytest.approx(1.0)
    rng = np.random.default_rng(n_swaps)
    target = Target(columns, 1.3, 0.3)
    counts = Counter(simulate(target, sizes, selection, rng) for _ in range(2000))
    check_counts(counts, law)
    # Negative control: 2000 runs do tell the schedule's law from one without the discount.
    without = schedule_law(columns, sizes, selection, 1.3, 0.0)
    assert count_p_value(counts, without) < 1e-4


def test_schedule_law_below_full_data_and_shrinking():
    columns, sizes = mixed_columns(4), [0, 1, 2, 3, 3, 2, 2]
    rng = np.random.default_rng(7)
    target = Target(columns, 1.3, 0.3)
    for selection in ("random", "window"):
        law = schedule_law(columns, sizes, selection, 1.3, 0.3)
        assert all(sum(label >= 0 for label in state) == 2 for state in law)
        counts = Counter(simulate(target, sizes, selection, rng) for _ in range(2000))
        check_counts(counts, law)


def test_sequential_law_by_hand_and_the_same_for_both_selections():
    columns, target = mixed_columns(4), Target(mixed_columns(4), 1.3, 0.3)
    expected = Counter()
    for order, state in product(permutations(range(4)), partitions(4)):
        probability = 1 / 24
        for i, row in enumerate(order):
            members = {
                label: tuple(sorted(other for other in order[:i] if state[other] == label))
                for label in {state[other] for other in order[:i]}
            }
            weights = {
                label: (len(rows) - 0.3) * math.exp(target.log_predict(row, rows))
                for label, rows in members.items()
            }
            weights[None] = (1.3 + 0.3 * len(members)) * math.exp(target.log_predict(row, ()))
            taken = state[row] if state[row] in members else None
            probability *= weights[taken] / sum(weights.values())
        expected[state] += probability
    for selection in ("random", "window"):
        law = schedule_law(columns, annealed_sizes(4, 0), selection, 1.3, 0.3)
        assert total_variation(law, expected) < 1e-12


@pytest.mark.parametrize("selection", ["random", "window"])
@pytest.mark.parametrize("n_swaps", [0, 1, 2])
def test_silent_likelihood_gives_the_prior_back_through_any_churn(selection, n_swaps):
    silent = [("normal", [math.nan] * 4, EXAMPLES["normal"][1])]
    law = schedule_law(silent, annealed_sizes(4, n_swaps), selection, 0.7, 0.3)
    assert total_variation(law, enumerate_posterior([], 0.7, 0.3, n_rows=4)) < 1e-12


def test_full_sweeps_converge_to_the_posterior_geometrically():
    columns = mixed_columns(4)
    posterior = enumerate_posterior(columns, 1.3, 0.3)
    distances = [
        total_variation(
            schedule_law(columns, annealed_sizes(4, 1, s), "window", 1.3, 0.3), posterior
        )
        for s in range(5)
    ]
    assert distances[0] > 1e-3
    assert all(after < 0.6 * before for before, after in zip(distances, distances[1:]))


def test_full_data_steps_are_the_gibbs_matrices():
    columns = mixed_columns(3)
    prior = enumerate_posterior([], 1.3, 0.3, n_rows=3)
    start = np.array(list(prior.values()))
    target = Target(columns, 1.3, 0.3, beta=0.5)
    law = schedule_law(columns, [3, 3, 3], "random", 1.3, 0.3, betas=[0.5, 0.5], start="prior")
    expected = start @ np.linalg.matrix_power(random_gibbs_matrix(target), 2)
    assert np.allclose([law[state] for state in prior], expected, atol=1e-12)
    law = schedule_law(columns, [3, 3, 3, 3], "window", 1.3, 0.3, betas=[0.5] * 3, start="prior")
    scans = [scan_matrix(target, order) for order in permutations(range(3))]
    assert np.allclose([law[state] for state in prior], start @ (sum(scans) / 6), atol=1e-12)


def test_a_selection_of_two_functions():
    columns, sizes = mixed_columns(4), annealed_sizes(4, 1)
    uniform = enumeration.uniform
    law = schedule_law(columns, sizes, (uniform, uniform), 1.3, 0.3)
    assert total_variation(law, schedule_law(columns, sizes, "random", 1.3, 0.3)) == 0.0

    def first(rows):
        return {min(rows): 1.0}

    stuck = schedule_law(columns, sizes[:-1], (first, first), 1.3, 0.3)
    assert {tuple(label >= 0 for label in state) for state in stuck} == {(True,) * 4}


def test_a_start_must_have_its_rows():
    with pytest.raises(ValueError, match="start"):
        schedule_law([], [0, 1], start="prior", n_rows=2)


# ------------------------------------------------------------------ transition matrices


class OneClusterLess(Target):
    """Counts one cluster too few."""

    def log_open(self, n_clusters):
        return super().log_open(n_clusters - 1) if n_clusters > 1 else math.log(self.concentration)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("alpha, d", PRIORS)
@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_moves_leave_the_posterior_invariant(columns, alpha, d, beta):
    for n in (3, 4):
        target = Target(COLUMNS[columns](n), alpha, d, beta=beta, n_rows=n)
        assert_reversible(target, random_gibbs_matrix(target))
        assert_reversible(target, gibbs_matrix(target, 1))
        assert stationary_error(target, scan_matrix(target)) < EXACT
        for partners in (uniform_partners, near_partners):
            assert_reversible(target, split_merge_matrix(target, partners=partners))


def test_five_rows():
    target = Target(mixed_columns(5), 1.3, 0.3)
    assert_reversible(target, split_merge_matrix(target, partners=near_partners))
    assert stationary_error(target, scan_matrix(target, [3, 1, 4, 0, 2])) < EXACT


def test_moves_reach_every_state():
    target = Target(mixed_columns(4), 1.3, 0.3)
    posterior = list(target.posterior().values())
    for matrix in (scan_matrix(target), split_merge_matrix(target)):
        powered = np.linalg.matrix_power(matrix, 4096)
        assert np.allclose(powered, posterior, atol=1e-9)


def test_split_merge_alone_is_periodic_on_two_silent_rows():
    matrix = split_merge_matrix(Target([], 1.0, 0.0, n_rows=2))
    assert np.allclose(matrix, [[0, 1], [1, 0]])


@pytest.mark.parametrize("fault", [NoDiscountJoin, NoDiscountOpen, OneClusterMore])
@pytest.mark.parametrize("n", [3, 4])
def test_faulty_gibbs_is_seen(fault, n):
    columns = mixed_columns(n)
    target, faulty = Target(columns, 1.3, 0.3), fault(columns, 1.3, 0.3)
    assert stationary_error(target, random_gibbs_matrix(faulty)) > FAULT
    assert stationary_error(target, scan_matrix(faulty)) > FAULT
    assert stationary_error(target, random_gibbs_matrix(Target(columns, 1.3, 0.0))) > FAULT


@pytest.mark.parametrize("fault", [NoDiscountJoin, OneClusterMore, OneClusterLess])
@pytest.mark.parametrize("n", [3, 4])
def test_faulty_split_merge_is_seen(fault, n):
    columns = mixed_columns(n)
    target, faulty = Target(columns, 1.3, 0.3), fault(columns, 1.3, 0.3)
    assert stationary_error(target, split_merge_matrix(faulty)) > FAULT
    # Without a discount these faults cannot be seen, which is why the tests use one.
    target, faulty = Target(columns, 1.3, 0.0), fault(columns, 1.3, 0.0)
    assert stationary_error(target, split_merge_matrix(faulty)) < EXACT


@pytest.mark.parametrize("d", [0.0, 0.3])
def test_merge_with_a_fresh_allocation_is_seen(d):
    # With one other row the normaliser is the same whatever its side: four rows are needed.
    target = Target(mixed_columns(4), 1.3, d)
    assert stationary_error(target, split_merge_matrix(target, fresh_paths)) > FAULT
    three = Target(mixed_columns(3), 1.3, d)
    assert stationary_error(three, split_merge_matrix(three, fresh_paths)) < EXACT


@pytest.mark.parametrize("selection", ["random", "window"])
def test_faulty_schedule_weights_are_seen(selection):
    columns, sizes = mixed_columns(4), annealed_sizes(4, 1)
    law = schedule_law(columns, sizes, selection, 1.3, 0.3)
    for fault in (NoDiscountJoin, NoDiscountOpen, OneClusterMore):
        faulty = schedule_law(columns, sizes, selection, 1.3, 0.3, target=fault)
        assert total_variation(law, faulty) > 1e-3


def test_rows_outside_the_subsample_are_in_no_cluster():
    assert relabelled((0, 1, 0), [0], -1) == (-1, 0, 1)
    assert sorted(len(rows) for rows in clusters((-1, 0, 1))) == [1, 1]
