"""The compiled two-urn samplers and laws of benchmarks/papers against enumeration.

The reference here knows single labelled balls and the definition of the model only: 2 red and 3
blue balls, every assignment of them to the urns.
"""

import itertools
from collections import defaultdict
from math import lgamma

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit
from scipy.stats import chisquare

from papers import two_urns
from papers import two_urns_theorems as theorems

RED, BLUE, P, A = 2, 3, 0.45, 0.5
N = RED + BLUE
COLOURS = (0,) * RED + (1,) * BLUE  # 0 red, 1 blue
STATES = list(itertools.product(range(RED + 1), range(BLUE + 1)))
SWEEPS = 3


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return two_urns.build(tmp_path_factory.mktemp("two_urns"))


# -- the reference ---------------------------------------------------------------------------------


def left_probability(colour, left, right, *, a=A, n_features=1, beta=1.0):
    """Chance that a ball goes left; left and right: the (red, blue) counts without it."""
    weights = [
        prior * ((a + urn[colour]) / (2 * a + sum(urn))) ** (n_features * beta)
        for prior, urn in ((P, left), (1 - P, right))
    ]
    return weights[0] / sum(weights)


def labelled_joint(labels, n_features):
    """Joint probability of the balls' urns (0 left, 1 right) and their colours."""
    log_p = sum(np.log(1 - P if label else P) for label in labels)
    for urn in (0, 1):
        colours = [c for c, label in zip(COLOURS, labels) if label == urn]
        red, blue = colours.count(0), colours.count(1)
        log_p += n_features * (lgamma(A + red) + lgamma(A + blue) - lgamma(2 * A + red + blue))
    return np.exp(log_p)


def counts(labels):
    left = [c for c, label in zip(COLOURS, labels) if label == 0]
    return left.count(0), left.count(1)


def labelled_step(labels, n_features, *, forgets=True):
    """Law after a Gibbs step. ``forgets=False``, wrong: the ball is scored with itself present."""
    law = defaultdict(float)
    for ball, colour in enumerate(COLOURS):
        urns = [[0, 0], [0, 0]]
        for other, (c, label) in enumerate(zip(COLOURS, labels)):
            if other != ball or not forgets:
                urns[label][c] += 1
        left = left_probability(colour, *urns, n_features=n_features)
        for label, chance in ((0, left), (1, 1 - left)):
            law[labels[:ball] + (label,) + labels[ball + 1 :]] += chance / N
    return law


def count_matrix(n_features, **options):
    """Transition matrix on (red left, blue left), lumped from that of the labelled balls."""
    matrix = np.zeros((len(STATES), len(STATES)))
    for labels in itertools.product((0, 1), repeat=N):
        row = np.zeros(len(STATES))
        for after, chance in labelled_step(labels, n_features, **options).items():
            row[STATES.index(counts(after))] += chance
        matrix[STATES.index(counts(labels))] = row  # the same for all balls of equal counts
    return matrix


def count_posterior(n_features):
    mass = np.zeros(len(STATES))
    for labels in itertools.product((0, 1), repeat=N):
        mass[STATES.index(counts(labels))] += labelled_joint(labels, n_features)
    return mass / mass.sum()


def spread(law, moves):
    """Law after a random move; moves(state) yields (chance, next state)."""
    out = defaultdict(float)
    for state, mass in law.items():
        for chance, after in moves(state):
            if chance > 0:
                out[after] += mass * chance
    return out


def changed(urns, urn, colour, change):
    """The counts ((red, blue) left, (red, blue) right) with one of them changed."""
    out = [list(u) for u in urns]
    out[urn][colour] += change
    return tuple(map(tuple, out))


def assignment(state, colour, **model):
    left = left_probability(colour, *state, **model)
    return [
        (left, changed(state, 0, colour, 1)),
        (1 - left, changed(state, 1, colour, 1)),
    ]


def random_assignment(state, **model):
    """A ball drawn from those outside is assigned."""
    outside = [RED - state[0][0] - state[1][0], BLUE - state[0][1] - state[1][1]]
    for colour in (0, 1):
        for chance, after in assignment(state, colour, **model) if outside[colour] else ():
            yield chance * outside[colour] / sum(outside), after


def random_removal(state):
    total = sum(map(sum, state))
    for urn, colour in itertools.product((0, 1), repeat=2):
        if state[urn][colour]:
            yield state[urn][colour] / total, changed(state, urn, colour, -1)


def handful_step(state, size, *, a=A, beta=1.0):
    """Up to ``size`` like balls of one urn are reassigned as one ball of a smaller model."""
    for urn, colour in itertools.product((0, 1), repeat=2):
        moved = min(size, state[urn][colour])
        if moved:
            rest = changed(state, urn, colour, -moved)
            left = left_probability(colour, *rest, a=a * size, beta=beta)
            for to, chance in ((0, left), (1, 1 - left)):
                yield chance * state[urn][colour] / N, changed(rest, to, colour, moved)


def prior_law():
    law = {((0, 0), (0, 0)): 1.0}
    for colour in COLOURS:
        law = spread(
            law, lambda s, c=colour: [(P, changed(s, 0, c, 1)), (1 - P, changed(s, 1, c, 1))]
        )
    return law


def growing_law(pairs, last_pairs, a):
    """Grow from nothing; ``pairs`` remove/assign pairs per ball, ``last_pairs`` on full data."""
    law = {((0, 0), (0, 0)): 1.0}
    for n in range(1, N + 1):
        law = spread(law, lambda s: random_assignment(s, a=a))
        for _ in range(pairs if n < N else last_pairs):
            law = spread(spread(law, random_removal), lambda s: random_assignment(s, a=a))
    return law


def strategy_law(name, a=A):
    total = SWEEPS * N
    if name == "sequential":
        law = growing_law(0, 0, a)
    elif name == "sequential + gibbs":
        law = growing_law(0, total - N, a)
    elif name == "anneal subsample":
        law = growing_law(SWEEPS - 1, SWEEPS - 1, a)
    elif name == "anneal stepsize, by balls":
        law = prior_law()
        for t in range(1, total // 2 + 1):
            size = int(np.sqrt(total / 2 / t) + 0.5)
            law = spread(law, lambda s, m=size: handful_step(s, m, a=a))
    else:
        law = prior_law()
        for t in range(1, total + 1):
            beta = t / total
            size, power = (1, beta) if name == "anneal energy" else (int(1 / beta + 0.5), 1.0)
            law = spread(law, lambda s, m=size, b=power: handful_step(s, m, a=a, beta=b))
    out = np.zeros(len(STATES))
    for state, mass in law.items():
        out[STATES.index(state[0])] += mass
    return out


# -- kernels and laws ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_features", [1, 2])
def test_the_step_is_the_lumped_labelled_step(library, n_features):
    urns = theorems.Urns(RED, BLUE, P, A, n_features)
    expected = count_matrix(n_features)
    found = np.zeros_like(expected)
    moves = zip(theorems.step_probabilities(library, urns), [(-1, 0), (1, 0), (0, -1), (0, 1)])
    for table, (red, blue) in moves:
        for i, (r, b) in enumerate(STATES):
            if table[r, b] > 0:
                found[i, STATES.index((r + red, b + blue))] = table[r, b]
    np.fill_diagonal(found, 1.0 - found.sum(axis=1))
    np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize("n_features", [1, 2])
def test_the_posterior_is_invariant_and_that_of_the_definition(n_features):
    target = count_posterior(n_features)
    found = theorems.posterior(theorems.Urns(RED, BLUE, P, A, n_features))
    np.testing.assert_allclose(found.ravel(), target, rtol=1e-12)
    np.testing.assert_allclose(target @ count_matrix(n_features), target, atol=1e-14)
    biased = count_matrix(n_features, forgets=False)
    assert np.abs(target @ biased - target).sum() > 1e-3


@pytest.mark.parametrize("name", ["stratified", "random"])
def test_annealed_laws(library, name):
    urns = theorems.Urns(RED, BLUE, P, A)
    found = theorems.SELECTIONS[name](library, urns, float(SWEEPS)).ravel()
    if name == "random":
        expected = strategy_law("anneal subsample")
    else:
        law = {((0, 0), (0, 0)): 1.0}
        # round(2 n / 5) of n balls are red; a pair reassigns a ball of the subsample itself.
        for n, colour in enumerate((1, 0, 1, 0, 1), start=1):
            law = spread(law, lambda s, c=colour: assignment(s, c))
            for _ in range(SWEEPS - 1):
                law = spread(law, lambda s, n=n: reassignments(s, n))
        expected = np.zeros(len(STATES))
        for state, mass in law.items():
            expected[STATES.index(state[0])] += mass
    np.testing.assert_allclose(found, expected, atol=1e-14)
    other = theorems.SELECTIONS[{"random": "stratified", "stratified": "random"}[name]]
    assert np.abs(other(library, urns, float(SWEEPS)).ravel() - expected).sum() > 1e-3


def reassignments(state, n):
    for urn, colour in itertools.product((0, 1), repeat=2):
        if state[urn][colour]:
            for chance, after in assignment(changed(state, urn, colour, -1), colour):
                yield chance * state[urn][colour] / n, after


def test_cold_laws_by_chebyshev_equal_steps_one_by_one(library):
    urns = theorems.Urns(8, 12)
    target = theorems.posterior(urns)
    red, blue = np.ogrid[:9, :13]
    law = np.exp(theorems.log_prior(urns, red, blue))
    work = np.empty(5 * law.size)
    library.gibbs_law(law.ctypes.data, *urns, 300, work.ctypes.data)
    start = theorems.prior_in_symmetric_space(urns)
    found = theorems.cold_laws(theorems.symmetric_step(library, urns), start, [300, 310])
    found *= np.sqrt(target).ravel()
    np.testing.assert_allclose(found[0], law.ravel(), atol=1e-14)
    assert np.abs(found[1] - law.ravel()).sum() > 1e-3


def test_the_symmetric_space_is_finite_where_the_posterior_underflows():
    urns = theorems.Urns(640, 960)
    assert (theorems.posterior(urns) == 0.0).any()
    start = theorems.prior_in_symmetric_space(urns)
    assert np.isfinite(start).all()
    law = start * np.exp(0.5 * theorems.log_target(urns)).ravel()
    assert law.sum() == pytest.approx(1.0)


def test_eigenvectors_give_the_same_cold_time_as_steps(library):
    urns = theorems.barrier_urns(10)
    gap, time = theorems.barrier_cold(library, urns, 0.1)
    target = theorems.posterior(urns)
    start = theorems.prior_in_symmetric_space(urns)
    times = 2 * np.round(time * np.geomspace(0.25, 2, 25) / 2).astype(np.int64)
    laws = theorems.cold_laws(theorems.symmetric_step(library, urns), start, times)
    root = np.sqrt(target).ravel()
    distances = [theorems.total_variation(law * root, target.ravel()) for law in laws]
    assert theorems.crossing(times, distances, 0.1) == pytest.approx(time, rel=0.01)
    assert 0.0 < gap < 1.0


# -- samplers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    list(two_urns.SAMPLERS),
)
def test_samples_follow_the_law_of_their_strategy(library, monkeypatch, name):
    """Chi-square, false-alarm rate 1e-4 per strategy; the law with a = 0.7 must be refused."""
    number, sweeps, from_prior = two_urns.SAMPLERS[name]
    monkeypatch.setitem(two_urns.SAMPLERS, name, (number, min(sweeps, SWEEPS), from_prior))
    n_samples = 100_000
    urns = two_urns.Urns(RED, BLUE, P, A)
    states = two_urns.draw(library, name, n_samples, seed=7, urns=urns)
    observed = np.bincount(states[:, 0] * (BLUE + 1) + states[:, 1], minlength=len(STATES))
    assert chisquare(observed, n_samples * strategy_law(name)).pvalue > 1e-4
    assert chisquare(observed, n_samples * strategy_law(name, a=0.7)).pvalue < 1e-8


def test_a_sample_depends_on_seed_and_index_alone(library):
    urns = two_urns.Urns(8, 12)
    for name in two_urns.SAMPLERS:
        whole = two_urns.draw(library, name, 100, seed=1, urns=urns)
        few = two_urns.draw(library, name, 37, seed=1, urns=urns)
        np.testing.assert_array_equal(whole[:37], few)
        assert (two_urns.draw(library, name, 100, seed=2, urns=urns) != whole).any()


def test_exponential(library):
    x = np.linspace(-700.0, 700.0, 100_001)
    out = np.empty_like(x)
    library.exp_array(len(x), x.ctypes.data, out.ctypes.data)
    np.testing.assert_allclose(out, np.exp(x), rtol=4e-15)


# -- the comparison and the equation ---------------------------------------------------------------


def test_noise_floor_is_the_mean_of_exact_samples():
    """20,000 replicates: the mean is known to four standard errors (false-alarm rate 1e-4)."""
    target = np.random.default_rng(0).dirichlet(np.full(30, 0.3))
    draws = np.random.default_rng(1).multinomial(50, target, size=20_000) / 50
    found = 0.5 * np.abs(draws - target).sum(axis=1)
    error = found.std() / np.sqrt(len(found))
    assert abs(two_urns.noise_floor(target, 50) - found.mean()) < 4 * error
    assert abs(two_urns.noise_floor(target, 51) - found.mean()) > 4 * error


def test_binned_posterior_sums_the_states_of_each_bin():
    urns = two_urns.Urns(19, 29)
    states = theorems.posterior(urns)
    expected = states.reshape(10, 2, 10, 3).sum(axis=(1, 3))
    np.testing.assert_allclose(two_urns.binned_posterior(urns, 10), expected, rtol=1e-12)
    assert two_urns.bin_of(np.array([[19, 0], [0, 29]]), urns, 10).tolist() == [90, 9]
    law = np.exp(theorems.log_prior(urns, *np.ogrid[:20, :30]))
    expected = law.reshape(10, 2, 10, 3).sum(axis=(1, 3))
    np.testing.assert_allclose(two_urns.binned_prior(urns, 10), expected, rtol=1e-12)


def test_moments_of_a_step(library):
    """Exact ones are those of the step's table; simulated ones agree; the limit is approached."""
    apart = []
    for n in (200, 2000):
        urns = theorems.Urns(2 * n // 5, n - 2 * n // 5, a=0.001 * n)
        at = urns.n_red // 2, urns.n_blue // 5
        exact = theorems.step_moments(library, urns, *at)
        *found, drift_error, diffusion_error = theorems.simulated_moments(
            *(urns, *at, 100_000, np.random.default_rng(0))
        )
        assert abs(found[0] - exact[0]) < 5 * drift_error
        assert abs(found[1] - exact[1]) < 5 * diffusion_error
        assert abs(found[0] - exact[0] - 0.1) > 5 * drift_error
        limit = theorems.limit_moments(0.4, urns.p, 0.001, 0.5, 0.2)
        apart.append(np.abs(np.subtract(limit, exact)))
    assert (apart[1] < 0.15 * apart[0]).all()


def test_two_mode_equation_against_a_numerical_solution():
    n_balls, duration, delta, gamma = 50, 3000.0, 0.1, 0.1

    def slope(t, x):
        beta = t / duration
        return np.exp(-beta * delta * n_balls) * (expit(beta * gamma * n_balls) - x)

    path = solve_ivp(slope, (0.0, duration), [0.0], rtol=1e-9, atol=1e-12, method="LSODA")
    found = theorems.two_mode_distance(n_balls, duration, delta, gamma)
    assert found == pytest.approx(expit(gamma * n_balls) - path.y[0, -1], rel=1e-5)
    cold, anneal = theorems.two_mode_times(n_balls, delta, gamma, 0.01)
    rate = np.exp(-delta * n_balls)
    assert expit(gamma * n_balls) * np.exp(-rate * cold) == pytest.approx(0.01)
    assert theorems.two_mode_distance(n_balls, anneal, delta, gamma) == pytest.approx(0.01)
