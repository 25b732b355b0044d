"""Lemma 1, Theorems 2 and 4 of the subsample-annealing paper, by exact laws of the chain.

The state of the two urns with all N balls assigned is (r, b), the red and blue balls on the left:
(R + 1)(B + 1) states. The single-ball Gibbs step moves to four neighbours, so a law is propagated
exactly.

*Cold* (all the data from the start, drawn from the prior). The chain is reversible, so
``S = D^(1/2) P D^(-1/2)`` is symmetric, and ``S^t`` is the binomial mixture of Chebyshev
polynomials ``S^t = sum_k P(|walk_t| = k) T_k(S)`` with ``walk_t`` a simple random walk: about
``sqrt(80 t)`` products with S do the work of t steps, with a remainder below 1e-16. Where barriers
make t astronomic (two features), the eigenvectors of S give the law at any t.

*Anneal* (linear: ``rate`` assignments per ball). The law is stepped through the whole schedule in
C. The subsample is stratified by colour, so that two counts are the whole state;
:func:`random_selection_law` keeps the subsample's random composition too, three counts, and shows
on small N how little that matters.

The time of a strategy is the least number of assignments after which the total variation to the
posterior is at most epsilon.

Reference: Obermeyer, Glidden and Jonas, "Scaling nonparametric Bayesian inference via
subsample-annealing", AISTATS 2014, section 3 and appendices A, B.
"""

from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.sparse import diags_array
from scipy.special import expit, gammaln, logsumexp, xlog1py, xlogy
from scipy.stats import binom


class Urns(NamedTuple):
    """R red and B blue balls, left with probability p, Beta(a, a) per urn and feature."""

    n_red: int
    n_blue: int
    p: float = 0.45
    a: float = 0.5
    n_features: int = 1

    @property
    def n_balls(self):
        return self.n_red + self.n_blue

    @property
    def shape(self):
        return self.n_red + 1, self.n_blue + 1


def log_prior(urns, red, blue):
    """Log prior probability of the counts (red, blue) on the left."""

    def log_binomial(k, n):
        choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        return choose + xlogy(k, urns.p) + xlog1py(n - k, -urns.p)

    return log_binomial(red, urns.n_red) + log_binomial(blue, urns.n_blue)


def log_posterior(urns, red, blue):
    """Unnormalised log posterior of the counts (red, blue) on the left; arrays broadcast."""

    def log_evidence(red, blue):
        rising = gammaln(urns.a + red) + gammaln(urns.a + blue) - gammaln(2 * urns.a + red + blue)
        return urns.n_features * rising

    right = log_evidence(urns.n_red - red, urns.n_blue - blue)
    return log_prior(urns, red, blue) + log_evidence(red, blue) + right


def log_target(urns):
    """Exact log posterior of the (R + 1) x (B + 1) states: of many balls, e to it may be zero."""
    red, blue = np.ogrid[: urns.n_red + 1, : urns.n_blue + 1]
    log_p = log_posterior(urns, red, blue)
    return log_p - logsumexp(log_p)


def posterior(urns):
    """Exact posterior over the (R + 1) x (B + 1) states."""
    return np.exp(log_target(urns))


def total_variation(law, target):
    return 0.5 * np.abs(law - target).sum()


def step_probabilities(library, urns):
    """Chance per step that red, blue balls leave and enter the left urn, four (R + 1, B + 1)."""
    tables = [np.empty(urns.shape) for _ in range(4)]
    library.step_probabilities(*urns, *[table.ctypes.data for table in tables])
    return tables


def symmetric_step(library, urns):
    """S = D^(1/2) P D^(-1/2), sparse, states in row-major order."""
    red_out, red_in, blue_out, blue_in = step_probabilities(library, urns)
    stay = 1.0 - (red_out + red_in + blue_out + blue_in)
    red = np.sqrt(red_out[1:] * red_in[:-1]).ravel()
    blue = np.zeros(urns.shape)
    blue[:, :-1] = np.sqrt(blue_out[:, 1:] * blue_in[:, :-1])
    width = urns.n_blue + 1
    blue = blue.ravel()[:-1]
    return diags_array(
        [red, blue, stay.ravel(), blue, red], offsets=[-width, -1, 0, 1, width], format="csr"
    )


def prior_in_symmetric_space(urns):
    """D^(-1/2) times the law of a draw from the prior."""
    red, blue = np.ogrid[: urns.n_red + 1, : urns.n_blue + 1]
    return np.exp(log_prior(urns, red, blue) - 0.5 * log_target(urns)).ravel()


def cold_laws(step, start, times):
    """``S^t start`` for each even t of ``times``: array (n_times, n_states)."""
    degree = int(np.sqrt(80.0 * max(times))) + 2
    times = np.asarray(times)[:, np.newaxis]
    out = np.zeros((len(times), len(start)))
    block = np.empty((32, len(start)))
    before, now = None, start
    for k in range(min(degree, int(times.max())) + 1):
        block[k % 32] = now
        if k % 32 == 31 or k == min(degree, int(times.max())):
            ks = np.arange(k - k % 32, k + 1)
            weights = np.where(ks == 0, 1.0, 2.0) * binom.pmf((times + ks) / 2, times, 0.5)
            out += weights @ block[: len(ks)]
        before, now = now, step @ now if before is None else 2.0 * (step @ now) - before
    return out


def crossing(times, distances, epsilon):
    """First time at which the distance is epsilon, log-linear between the times given."""
    below = np.flatnonzero(np.asarray(distances) <= epsilon)
    if not len(below) or below[0] == 0:
        raise ValueError("the times do not bracket the distance sought")
    i = below[0]
    at = np.log([distances[i - 1] / epsilon, distances[i - 1] / distances[i]])
    return float(times[i - 1] * (times[i] / times[i - 1]) ** (at[0] / at[1]))


def cold_times(library, urns, epsilons, last=4):
    """Gibbs steps from the prior to each total variation in ``epsilons``, up to ``last`` N^2."""
    target = posterior(urns)
    root = np.exp(0.5 * log_target(urns)).ravel()
    grid = urns.n_balls**2 * np.geomspace(1 / 8, last, 31)
    times = np.unique(2 * np.round(grid / 2).astype(np.int64))
    laws = cold_laws(symmetric_step(library, urns), prior_in_symmetric_space(urns), times)
    distances = [total_variation(law * root, target.ravel()) for law in laws]
    return [crossing(times, distances, epsilon) for epsilon in epsilons]


def anneal_law(library, urns, rate):
    """Exact end law of linear annealing, ``rate`` assignments per ball, stratified by colour."""
    law = np.empty(urns.shape)
    library.anneal_law(*urns, rate, law.ctypes.data)
    return law


def random_selection_law(library, urns, rate):
    """The same with balls entering and leaving uniformly at random, as in the paper."""
    law = np.empty(urns.shape)
    library.random_selection_law(*urns, rate, law.ctypes.data)
    return law


SELECTIONS = {"stratified": anneal_law, "random": random_selection_law}


def anneal_times(library, urns, epsilons, tolerance=0.01):
    """Assignments of the shortest linear anneal that ends within each epsilon."""
    target = posterior(urns)

    def excess(log_rate, epsilon):
        law = anneal_law(library, urns, np.exp(log_rate))
        return np.log(total_variation(law, target) / epsilon)

    times = []
    for epsilon in epsilons:
        high = 1.0
        while excess(high, epsilon) > 0:
            high += 1.0
        low = 0.0 if high == 1.0 else high - 1.0
        log_rate = brentq(excess, low, high, args=(epsilon,), xtol=tolerance)
        times.append(float(np.exp(log_rate)) * urns.n_balls)
    return times


def local_slopes(x, y):
    """Slopes between neighbours: of log time on log N, say, the local exponents."""
    return np.diff(y) / np.diff(x)


# -- lemma 1 --------------------------------------------------------------------------------------


def limit_moments(share, p, concentration, x, y):
    """Drift ``N E[dx]`` and diffusion ``N^2 Var[dx]`` of the red balls as N grows.

    Parameters
    ----------
    share : float
        Of red balls.
    p : float
    concentration : float
        ``alpha / N``, held fixed.
    x, y : float
        Shares of the red and of the blue balls that lie on the left.
    """
    red = np.array([share * x, share * (1 - x)])
    all_ = red + (1 - share) * np.array([y, 1 - y])
    weights = np.array([p, 1 - p]) * (concentration + red) / (2 * concentration + all_)
    left = weights[0] / weights.sum()
    drift = left - x
    return drift, ((1 - x) * left + x * (1 - left)) / share - drift**2


def step_moments(library, urns, red, blue):
    """The same of one exact step from a state: at this N."""
    leaves, enters, _, _ = (float(t[red, blue]) for t in step_probabilities(library, urns))
    share = urns.n_red / urns.n_balls
    drift = (enters - leaves) / share
    return drift, (enters + leaves) / share**2 - drift**2


def simulated_moments(urns, red, blue, n_steps, rng):
    """The same of simulated single steps, each of labelled balls, with standard errors."""
    is_red = rng.random(n_steps) < urns.n_red / urns.n_balls
    was_left = rng.random(n_steps) < np.where(is_red, red / urns.n_red, blue / urns.n_blue)
    same = np.where(is_red, red, blue) - was_left
    total = np.where(is_red, urns.n_red, urns.n_blue) - 1
    n_left = red + blue - was_left
    left = urns.p * (urns.a + same) / (2 * urns.a + n_left)
    right = (1 - urns.p) * (urns.a + total - same)
    right /= 2 * urns.a + urns.n_balls - 1 - n_left
    goes_left = rng.random(n_steps) < left / (left + right)
    moved = (goes_left.astype(float) - was_left) * is_red * urns.n_balls / urns.n_red
    centred = (moved - moved.mean()) ** 2
    errors = moved.std() / np.sqrt(n_steps), centred.std() / np.sqrt(n_steps)
    return float(moved.mean()), float(centred.mean()), *map(float, errors)


# -- theorem 4 ------------------------------------------------------------------------------------


def two_mode_distance(n_balls, duration, delta, gamma):
    """Distance to the truth after annealing the two-mode equation, beta = t / duration, x(0) = 0.

    ``dx/dt = exp(-beta delta N) (sigmoid(beta gamma N) - x)``. In the clock
    ``v = int_t^T exp(-beta delta N) ds`` the solution is an integral of a smooth function,
    ``sigmoid(gamma N) - x(T) = int_0^v0 exp(-v) (sigmoid(gamma N) - sigmoid(beta(v) gamma N)) dv
    + exp(-v0) sigmoid(gamma N)``.
    """
    height, gap = delta * n_balls, gamma * n_balls
    last = duration / height * -np.expm1(-height)

    def integrand(v):
        beta = -np.log(np.exp(-height) + v * height / duration) / height
        return np.exp(-v) * (expit(-beta * gap) - expit(-gap))

    missed = quad(integrand, 0.0, min(last, 60.0), epsabs=1e-13, epsrel=1e-10, limit=500)[0]
    return missed + np.exp(-last) * expit(gap)


def two_mode_times(n_balls, delta, gamma, epsilon):
    """Time of cold inference, in closed form, and of annealing, to a distance ``epsilon``."""
    cold = np.exp(delta * n_balls) * np.log(expit(gamma * n_balls) / epsilon)

    def excess(log_time):
        return two_mode_distance(n_balls, np.exp(log_time), delta, gamma) - epsilon

    return float(cold), float(np.exp(brentq(excess, -2.0, 60.0, xtol=1e-9)))


def barrier_urns(n_balls):
    """Balls with two boolean features that agree: 30 % have both, 70 % neither; p = 0.25.

    Now the likelihood outweighs the prior's entropy: the two segregated states are modes whose
    log odds (``gamma N``, gamma = 0.4 log 3) and barrier grow with N.
    """
    n_red = round(0.3 * n_balls)
    return Urns(n_red, n_balls - n_red, p=0.25, n_features=2)


def barrier_cold(library, urns, epsilon):
    """Spectral gap of the step and the time from the prior, from all eigenvectors.

    The prior lies where the posterior is tiny: in the symmetric space its norm is astronomic and
    would drown the slow part in rounding errors. So the first 20 N steps, after which the law lies
    in the two modes, are taken one by one.
    """
    target = posterior(urns)
    root = np.sqrt(target).ravel()
    red, blue = np.ogrid[: urns.n_red + 1, : urns.n_blue + 1]
    law = np.exp(log_prior(urns, red, blue))
    n_first, work = 20 * urns.n_balls, np.empty(5 * law.size)
    library.gibbs_law(law.ctypes.data, *urns, n_first, work.ctypes.data)
    values, vectors = eigh(symmetric_step(library, urns).toarray())
    weights = vectors.T @ (law.ravel() / root)
    log_values = np.log(np.clip(values, 1e-300, None))
    log_values[-1] = 0.0  # the eigenvalue is 1; its rounding error would grow with t

    def excess(log_time):
        law = vectors @ (np.exp(np.exp(log_time) * log_values) * weights)
        return total_variation(law * root, target.ravel()) - epsilon

    log_time = brentq(excess, 0.0, 40.0, xtol=1e-6)
    return float(1.0 - values[-2]), n_first + float(np.exp(log_time))
