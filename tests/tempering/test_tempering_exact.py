"""Tempered samplers leave their targets invariant: full transition matrices of the compiled code.

Three states, four rows, levels of 4, 2 and 1 of them, all twelve nested choices. Every path of the
compiled code is run (see scripted.py) and gives a row of the transition matrix; it must be that of
the slow formulas (tempering_enumeration.py), which must leave the target invariant. No chance is
involved: total variations below 1e-12.
"""

import numpy as np
import pytest

from oracles import tempering_enumeration as oracle
from oracles.scripted import Scripted
from skanneal.tempering import GaussianMeanTarget, GaussianProcessTarget, Target
from skanneal.tempering._inner import Inner
from skanneal.tempering._levels import Levels
from skanneal.tempering._walks import ParallelWalk, TransitionWalk

PRIOR, LIKELIHOOD = oracle.toy()
POSTERIOR = oracle.normalised(PRIOR * LIKELIHOOD.prod(axis=1))
ORDERS = oracle.subsets()
EXACT = 1e-12
REFERENCE = 1
STEP = {"hamiltonian": False, "n_steps": 1, "least_steps": 1, "target": 0.3, "adapt": False}
METROPOLIS = ("radius", "angle", "accept")


class Toy(Target):
    """States are the integers modulo 3; if `ends`, 0 to 2 alone."""

    n_parameters, n_rows = 1, 4

    def __init__(self, independent=True, ends=False):
        self.independent, self.ends = independent, ends

    def log_prior(self, theta, gradient=False):
        if self.ends and not 0 <= round(float(theta[0])) < oracle.N_STATES:
            return -np.inf, None
        return np.log(PRIOR[as_state(theta)]), None

    def log_likelihood(self, theta, rows, gradient=False):
        return np.log(LIKELIHOOD[as_state(theta), rows]).sum(), None


def as_state(theta):
    return round(float(theta[0])) % oracle.N_STATES


class Witness:
    """A sampler that stays where the chain is, and tells what the chain knows of the place."""

    def __init__(self, tell):
        self.tell = tell

    def move(self, theta, level, generator):
        self.tell(theta, level)
        return theta

    @property
    def update(self):
        return STEP | {"sampler": self}


def iterations(n, n_parameters, n_levels):
    """What `Walk.advance` writes, of so many iterations."""
    work = np.empty((n, n_levels - 1, 2))
    return np.empty((n, n_parameters)), np.empty((n, 2)), work, np.empty((n, 0))


class Machine:
    """The compiled code on the toy."""

    def __init__(
        self,
        order,
        powers=None,
        walk=ParallelWalk,
        independent=True,
        tilts=(),
        update=STEP,
        **options,
    ):
        self.rng = Scripted()
        target = Toy(independent, ends=len(tilts) > 0)
        sizes = oracle.SIZES if powers is None else oracle.SIZES[:1]
        self.bound = target.bind(order, sizes)
        n = len(oracle.SIZES)
        rung, power = (np.arange(n), np.ones(n)) if powers is None else (np.zeros(n, int), powers)
        n_replicas = 2 if walk is TransitionWalk else n
        self.levels = Levels(target, self.bound, rung, power, self.rng, n_replicas, False)
        if tilts:
            orders, power, slope, curvature = (np.array(part) for part in zip(*tilts))
            self.levels.set_tilts(
                orders, [CENTRE], power, slope[:, :, None], curvature[:, :, None, None]
            )
        self.inner = Inner(self.levels, [update], np.ones((1, n)), np.ones(1))
        self.walk = walk(self.levels, self.inner, **options)
        self.arrays = iterations(1, 1, n)
        self.rng.sums = self.sums

    def sums(self):
        """Of the probabilities that a number is drawn for."""
        inner, walk = self.inner.get_sums().sum(), self.walk
        if isinstance(walk, TransitionWalk):
            return inner + walk.sum_pass
        return inner + walk.get_sums().sum() + walk.sum_exchange

    def set(self, *states):
        self.walk.reset_counts()
        for i, state in enumerate(states):
            self.levels.set_theta(i, [state])

    def get(self):
        n = len(oracle.SIZES) if isinstance(self.walk, ParallelWalk) else 1
        return tuple(as_state(self.levels.get_theta(i)) for i in range(n))

    def iterate(self):
        self.walk.advance(*self.arrays)


# ---------------------------------------------------------------- parallel tempering
def parallel_kinds(n_swaps):
    def kinds(drawn):
        yield from METROPOLIS * 3
        yield from ("accept",) * n_swaps

    return kinds


def compiled_parallel(machine, n_swaps=2, before=None, after=None):
    """The transition matrix on (theta_0, theta_1, theta_2)."""
    states = oracle.joint_states()
    out = np.zeros((len(states), len(states)))
    for i, state in enumerate(states):

        def run(state=state):
            if before:
                before()
            machine.set(*state)
            machine.iterate()
            reached = machine.get()
            if after:
                after()
            return reached

        for weight, reached in machine.rng.paths(run, parallel_kinds(n_swaps)):
            out[i, states.index(reached)] += weight
    return out


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.few(2)
def test_subsampled_parallel_tempering(order):
    h = oracle.subsampled(PRIOR, LIKELIHOOD, order)
    compiled = compiled_parallel(Machine(order))
    assert np.abs(compiled - oracle.parallel_matrix(h)).max() < EXACT
    law = oracle.stationary(compiled)
    assert oracle.variation(law, oracle.joint_density(h)) < EXACT
    assert oracle.variation(oracle.first_marginal(law), POSTERIOR) < EXACT


def test_parallel_tempering_by_powers():
    h = oracle.powered(PRIOR, LIKELIHOOD)
    compiled = compiled_parallel(Machine(ORDERS[0], powers=np.array(oracle.BETAS)))
    assert np.abs(compiled - oracle.parallel_matrix(h)).max() < EXACT
    assert oracle.variation(oracle.first_marginal(oracle.stationary(compiled)), POSTERIOR) < EXACT


@pytest.mark.parametrize("parity", (0, 1))
def test_even_and_odd_swaps(parity):
    h = oracle.subsampled(PRIOR, LIKELIHOOD, ORDERS[5])
    machine = Machine(ORDERS[5], even_odd=True)
    expected = oracle.parallel_matrix(h, pairs=(2 - parity,))

    def idle():
        """An iteration of no account: pairs take turns."""
        machine.rng.free = lambda: 0.5
        machine.iterate()
        machine.rng.free = None

    compiled = compiled_parallel(
        machine, 1, before=idle if parity == 1 else None, after=idle if parity == 0 else None
    )
    assert np.abs(compiled - expected).max() < EXACT


# ---------------------------------------------------------------- tempered transitions
SHUFFLE = [("below", 4), ("below", 3)]


def compiled_transitions(machine, drawn_first):
    """The transition matrix on theta_0, after draws of subsets; and the subsets seen."""

    def kinds(drawn):
        yield from drawn_first
        yield from METROPOLIS * 4
        yield "accept"

    out, seen = np.zeros((oracle.N_STATES, oracle.N_STATES)), {}
    for state in range(oracle.N_STATES):

        def run(state=state):
            machine.bound.set_order((0, 1, 2, 3))
            machine.set(state)
            machine.iterate()
            return machine.get()[0]

        for weight, reached in machine.rng.paths(run, kinds):
            out[state, reached] += weight
            order = tuple(machine.bound.get_order()[:2].tolist())
            seen[order] = seen.get(order, 0.0) + weight / oracle.N_STATES
    return out, seen


@pytest.mark.slow
def test_subsampled_tempered_transitions():
    machine = Machine(ORDERS[0], walk=TransitionWalk, n_base_moves=0)
    compiled, seen = compiled_transitions(machine, SHUFFLE)
    expected = np.mean(
        [oracle.transition_matrix(oracle.subsampled(PRIOR, LIKELIHOOD, o)) for o in ORDERS], axis=0
    )
    assert np.abs(compiled - expected).max() < EXACT
    assert oracle.variation(oracle.stationary(compiled), POSTERIOR) < EXACT
    flow = POSTERIOR[:, None] * compiled
    assert np.abs(flow - flow.T).max() < EXACT  # reversible
    assert len(seen) == 12 and np.allclose(list(seen.values()), 1 / 12, rtol=0, atol=EXACT)


def test_tempered_transitions_by_powers():
    machine = Machine(ORDERS[0], powers=np.array(oracle.BETAS), walk=TransitionWalk, n_base_moves=0)
    compiled, _ = compiled_transitions(machine, [])
    expected = oracle.transition_matrix(oracle.powered(PRIOR, LIKELIHOOD))
    assert np.abs(compiled - expected).max() < EXACT
    assert oracle.variation(oracle.stationary(compiled), POSTERIOR) < EXACT


# ---------------------------------------------------------------- re-centred levels
CENTRE = 0.7
TILTS = (  # order, and power, slope, curvature by level; the target's are not read
    (ORDERS[3], [9.0, 1.6, 0.3], [9.0, -0.8, 1.3], [9.0, -0.5, 0.4]),
    (ORDERS[8], [9.0, 0.7, 2.0], [9.0, 0.4, -0.6], [9.0, 0.3, -0.2]),
)


def tilted(order, *exponents):
    return oracle.tilted(PRIOR, LIKELIHOOD, order, CENTRE, *exponents)


def test_recentred_tempered_transitions():
    """Each pass takes one of the tilts, and its rows, at random."""
    machine = Machine(ORDERS[0], walk=TransitionWalk, tilts=TILTS, n_base_moves=0)
    compiled, seen = compiled_transitions(machine, drawn_first=[("below", 2)])
    passes = [oracle.transition_matrix(tilted(*tilt), oracle.walking) for tilt in TILTS]
    assert np.abs(compiled - np.mean(passes, axis=0)).max() < EXACT
    assert oracle.variation(oracle.stationary(compiled), POSTERIOR) < EXACT
    for law in passes:
        assert np.abs(compiled - law).max() > 0.01  # both count
    assert seen == {tuple(tilt[0][:2]): pytest.approx(0.5) for tilt in TILTS}


@pytest.mark.parametrize("tilt", TILTS)
def test_recentred_parallel_tempering(tilt):
    machine = Machine(ORDERS[0], tilts=[tilt])
    h = tilted(*tilt)
    compiled = compiled_parallel(machine)
    assert np.abs(compiled - oracle.parallel_matrix(h, kernel=oracle.walking)).max() < EXACT
    law = oracle.stationary(compiled)
    assert oracle.variation(law, oracle.joint_density(h)) < EXACT
    assert oracle.variation(oracle.first_marginal(law), POSTERIOR) < EXACT


def test_a_tilt_left_out_of_the_ratio_is_seen():
    """Levels that move by the tilted densities and are weighed by the plain ones."""
    moves = iter(tilted(*TILTS[0]))
    plain = oracle.subsampled(PRIOR, LIKELIHOOD, TILTS[0][0])
    broken = oracle.transition_matrix(plain, lambda level: oracle.walking(next(moves)))
    assert oracle.variation(oracle.stationary(broken), POSTERIOR) > 0.01


def test_a_tilt_chosen_by_the_state_is_seen():
    passes = [oracle.transition_matrix(tilted(*tilt), oracle.walking) for tilt in TILTS]
    broken = np.array([passes[state // 2][state] for state in range(oracle.N_STATES)])
    assert oracle.variation(oracle.stationary(broken), POSTERIOR) > 1e-5  # tilts are much alike


def test_the_gradient_of_a_tilt():
    rng = np.random.default_rng(0)
    target = GaussianMeanTarget(rng.normal(size=(8, 3)))
    bound = target.bind(np.arange(8), [8, 4])
    levels = Levels(target, bound, [0, 1], np.ones(2), np.random.PCG64(0), 2, False)
    curvature = rng.normal(size=(2, 3, 3))
    curvature += np.swapaxes(curvature, 1, 2)
    slope = rng.normal(size=(1, 2, 3))
    levels.set_tilts([rng.permutation(8)], rng.normal(size=3), [[9.0, 1.7]], slope, [curvature])
    theta, step = rng.normal(size=3), 1e-5
    slopes = [
        (levels.set_theta(0, theta + e) - levels.set_theta(0, theta - e)) / (2 * step)
        for e in step * np.eye(3)
    ]
    found = {}
    witness = Witness(lambda at, level: found.update({level.number: level.gradient(at)}))
    for replica in range(2):
        levels.set_theta(replica, theta)
    walk = ParallelWalk(levels, Inner(levels, [witness.update], np.ones((1, 2)), np.ones(3)))
    walk.advance(*iterations(1, 3, 2))
    assert np.allclose([found[0], found[1]], np.transpose(slopes), atol=1e-6)


# ---------------------------------------------------------------- resampled subsets
def exchange_kinds(drawn):
    """As drawn: two swaps; neighbours or any pair of rings, the rings, a row in each, the
    decision."""
    ring_sizes = (2, 1, 1)
    yield from ("accept",) * 2
    yield ("below", 2)
    if drawn[-1] == 0:  # below one half: neighbours
        yield ("below", 2)
        a = drawn[-1]
        b = a + 1
    else:
        yield ("below", 3)
        a = drawn[-1]
        yield ("below", 2)
        b = drawn[-1] if drawn[-1] < a else drawn[-1] + 1
        a, b = min(a, b), max(a, b)
    yield ("below", ring_sizes[a])
    yield ("below", ring_sizes[b])
    yield "accept"


@pytest.mark.parametrize("independent", (True, False))
@pytest.mark.few(1)
def test_exchange_of_rows(independent):
    """After the swaps of an iteration whose moves stay where they are."""
    machine = Machine(
        ORDERS[0], independent=independent, update=STEP | {"n_steps": 0}, n_exchanges=1
    )
    states = oracle.extended_states()
    where = {state: i for i, state in enumerate(states)}
    exchanges = oracle.exchange_matrix(PRIOR, LIKELIHOOD, REFERENCE)
    swaps = oracle.blocks(
        [
            oracle.parallel_matrix(oracle.subsampled(PRIOR, LIKELIHOOD, o), kernel=oracle.staying)
            for o in ORDERS
        ]
    )
    law = oracle.extended_density(PRIOR, LIKELIHOOD, REFERENCE)
    compiled = np.zeros_like(exchanges)
    for i, (order, thetas) in enumerate(states):

        def run(order=order, thetas=thetas):
            machine.bound.set_order(order)
            machine.walk.set_reference([REFERENCE])
            machine.set(*thetas)
            machine.iterate()
            reached = machine.bound.get_order().tolist()
            return (reached[0], reached[1], *sorted(reached[2:])), machine.get()

        for weight, reached in machine.rng.paths(run, exchange_kinds):
            compiled[i, where[reached]] += weight
    assert np.abs(compiled - swaps @ exchanges).max() < EXACT
    assert oracle.variation(law @ compiled, law) < EXACT
    flow = law[:, None] * exchanges
    assert np.abs(flow - flow.T).max() < EXACT


def resampled_law(refresh, every=1.0):
    """The invariant law of parallel tempering with one way to change subsets, now and then."""
    swept = oracle.blocks(
        [oracle.parallel_matrix(oracle.subsampled(PRIOR, LIKELIHOOD, o)) for o in ORDERS]
    )
    return oracle.stationary(swept @ (every * refresh + (1 - every) * np.eye(len(swept))))


def test_resampled_parallel_tempering():
    law = resampled_law(oracle.exchange_matrix(PRIOR, LIKELIHOOD, REFERENCE))
    assert oracle.variation(law, oracle.extended_density(PRIOR, LIKELIHOOD, REFERENCE)) < EXACT
    assert oracle.variation(oracle.first_marginal(law), POSTERIOR) < EXACT


RNG = np.random.default_rng(0)
TARGETS = {  # and three starts
    "rows": (Toy(independent=True), [[0.0], [1.0], [2.0]]),
    "whole": (Toy(independent=False), [[0.0], [1.0], [2.0]]),
    "mean": (GaussianMeanTarget(RNG.normal(size=(6, 2))), RNG.normal(size=(3, 2))),
    "process": (
        GaussianProcessTarget(RNG.normal(size=(6, 1)), RNG.normal(size=6)),
        RNG.normal(size=(3, 3)),
    ),
}


@pytest.mark.parametrize("walk", (ParallelWalk, TransitionWalk))
@pytest.mark.parametrize("name", TARGETS)
def test_what_a_chain_remembers_stays_right_while_subsets_change(name, walk):
    """Log densities and gradients, as samplers get them, are those of the rows that a level has."""
    target, starts = TARGETS[name]
    n, sizes, seen = target.n_rows, [target.n_rows, target.n_rows // 2, 1], []
    bound = target.bind(np.arange(n), sizes)
    levels = Levels(target, bound, [0, 1, 2], np.ones(3), np.random.PCG64(0), 3, False)

    def tell(theta, level):
        fresh = target.bind(bound.get_order(), sizes)
        prior, slope = fresh.prior(theta, target.has_gradient)
        values, steep = fresh.evaluate(theta, level.number, target.has_gradient)
        assert np.isclose(level.log_density(theta), prior + values[0], rtol=1e-9)
        if target.has_gradient:
            assert np.allclose(level.gradient(theta), slope + steep, rtol=1e-9)
        seen.append((level.number, *bound.get_order()))

    inner = Inner(levels, [Witness(tell).update], np.ones((1, 3)), np.ones(len(starts[0])))
    way = {"n_exchanges": 1} if walk is ParallelWalk else {"n_base_moves": 0}
    chain = walk(levels, inner, **way)
    for i, start in enumerate(starts):
        levels.set_theta(i, start)
    if walk is ParallelWalk:
        chain.set_reference(starts[1])
    chain.advance(*iterations(60, len(starts[0]), 3))
    assert {level for level, *_ in seen} == ({0, 1, 2} if walk is ParallelWalk else {1, 2})
    assert len(set(seen)) > 12
    if walk is ParallelWalk:
        assert 0 < chain.get_exchange_acceptance() < 1
    else:
        assert chain.round_trips == 60  # each pass leaves what it knows of the hotter levels


# ---------------------------------------------------------------- negative controls
def mean_transition(**faults):
    return np.mean(
        [
            oracle.transition_matrix(oracle.subsampled(PRIOR, LIKELIHOOD, o), **faults)
            for o in ORDERS
        ],
        axis=0,
    )


@pytest.mark.parametrize(
    "faults, least",
    [
        ({"rule": "sum"}, 0.1),
        ({"down": "T_{m-1}"}, 1e-3),
        ({"kernel": oracle.rotating}, 1e-5),
    ],
    ids=["printed sum", "printed way down", "irreversible kernel"],
)
def test_faults_of_tempered_transitions_are_seen(faults, least):
    assert oracle.variation(oracle.stationary(mean_transition(**faults)), POSTERIOR) > least


def test_redrawn_subsets_are_seen():
    """The printed kernels with new subsets and old hot states bias theta_0, less if done less."""
    often, seldom = (
        oracle.variation(
            oracle.first_marginal(resampled_law(oracle.redraw_matrix(), every)), POSTERIOR
        )
        for every in (1.0, 0.1)
    )
    assert often > seldom > 1e-5


def test_rotating_kernel_is_invariant():
    """The control above fails for want of reversibility alone."""
    for order in ORDERS:
        for h in oracle.subsampled(PRIOR, LIKELIHOOD, order):
            law = oracle.normalised(h)
            assert oracle.variation(law @ oracle.rotating(h), law) < EXACT
