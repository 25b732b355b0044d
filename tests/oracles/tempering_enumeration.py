"""Tempered samplers on three states and four rows: full transition matrices from the formulas.

theta is one of three states, rows are numbered 0 .. 3, `likelihood[theta, n]` is p(x_n | theta) and
`prior[theta]`. Levels hold 4, 2 and 1 rows: `subsets` lists all twelve nested choices. T_m is
Metropolis with a step to either neighbour on the ring of states.

The faults that the tests must see fail are options here: van de Meent, Paige and Wood (2014) print
a sum in place of the product of ratios, and descend with T_{m-1}.
"""

from itertools import permutations, product

import numpy as np

N_STATES, SIZES = 3, (4, 2, 1)
BETAS = (1.0, 0.5, 0.25)


def toy(seed=0):
    """A prior over states and the likelihoods of rows, all positive."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(N_STATES)), rng.uniform(0.05, 1.0, (N_STATES, 4))


def subsets():
    """Nested choices (X_1, X_2), as orders of the rows: the hottest first.

    >>> len(subsets())
    12
    """
    firsts = permutations(range(4), 2)
    return [(a, b, *(n for n in range(4) if n not in (a, b))) for a, b in firsts]


def subsampled(prior, likelihood, order):
    """h_m by rows: shape (levels, states)."""
    return np.array([prior * likelihood[:, list(order[:size])].prod(axis=1) for size in SIZES])


def powered(prior, likelihood):
    """h_m by powers."""
    return np.array([prior * likelihood.prod(axis=1) ** beta for beta in BETAS])


def tilted(prior, likelihood, order, centre, power, slope, curvature):
    """h_m = p L_m^power_m exp(slope_m x + bend_m x^2 / 2), x = state - centre; the target as is."""
    x = np.arange(N_STATES) - centre
    out = subsampled(prior, likelihood, order)
    for m in range(1, len(out)):
        out[m] = (
            prior * (out[m] / prior) ** power[m] * np.exp(slope[m] * x + curvature[m] * x**2 / 2)
        )
    return out


def normalised(weights):
    weights = np.asarray(weights)
    return weights / weights.sum()


def metropolis(h):
    """Reversible with respect to h."""
    out = np.zeros((N_STATES, N_STATES))
    for i in range(N_STATES):
        for j in ((i + 1) % N_STATES, (i - 1) % N_STATES):
            out[i, j] += 0.5 * min(1.0, h[j] / h[i])
        out[i, i] += 1.0 - out[i].sum()
    return out


def staying(h):
    """No move at all."""
    return np.eye(N_STATES)


def walking(h):
    """Metropolis on a line: there is nothing beyond the first state and the last."""
    out = np.zeros((N_STATES, N_STATES))
    for i in range(N_STATES):
        for j in (i + 1, i - 1):
            if 0 <= j < N_STATES:
                out[i, j] += 0.5 * min(1.0, h[j] / h[i])
        out[i, i] += 1.0 - out[i].sum()
    return out


def rotating(h):
    """It leaves h invariant, but more goes round one way than the other."""
    out, law = metropolis(h), normalised(h)
    flow = 0.9 * min(law[i] * out[i, (i - 1) % N_STATES] for i in range(N_STATES))
    for i in range(N_STATES):
        out[i, (i + 1) % N_STATES] += flow / law[i]
        out[i, (i - 1) % N_STATES] -= flow / law[i]
    assert out.min() >= 0
    return out


# ---------------------------------------------------------------- tempered transitions
def transition_matrix(h, kernel=metropolis, down="T_m", rule="product"):
    """One pass at level 0, summed over its paths; `down="T_{m-1}"`, `rule="sum"` are faults."""
    top = len(h) - 1
    kernels = [kernel(level) for level in h]
    out = np.zeros((N_STATES, N_STATES))
    for path in product(range(N_STATES), repeat=2 * top + 1):
        up, below = path[: top + 1], path[top:]  # below[k] is the state on the way down
        weight, ratios = 1.0, []
        for m in range(1, top + 1):
            weight *= kernels[m][up[m - 1], up[m]]
            ratios.append(h[m][up[m - 1]] / h[m - 1][up[m - 1]])
        for step, m in enumerate(range(top, 0, -1)):
            here, there = below[step], below[step + 1]
            weight *= kernels[m if down == "T_m" else m - 1][here, there]
            ratios.append(h[m - 1][there] / h[m][there])
        accept = min(1.0, np.prod(ratios) if rule == "product" else np.sum(ratios))
        out[up[0], below[-1]] += weight * accept
        out[up[0], up[0]] += weight * (1.0 - accept)
    return out


# ---------------------------------------------------------------- parallel tempering
def joint_states(n_levels=3):
    return list(product(range(N_STATES), repeat=n_levels))


def joint_density(h):
    """prod_m h_m(theta_m), normalised, in the order of joint_states."""
    return normalised([np.prod([h[m][s] for m, s in enumerate(state)]) for state in joint_states()])


def moves_matrix(h, kernel=metropolis):
    """T_m at every level, independently."""
    kernels = [kernel(level) for level in h]
    states = joint_states()
    return np.array(
        [
            [np.prod([t[a, b] for t, a, b in zip(kernels, one, two)]) for two in states]
            for one in states
        ]
    )


def swap_matrix(h, m):
    """The exchange of levels m - 1 and m."""
    states = joint_states()
    where = {state: i for i, state in enumerate(states)}
    out = np.zeros((len(states), len(states)))
    for i, state in enumerate(states):
        cold, hot = state[m - 1], state[m]
        ratio = h[m][cold] * h[m - 1][hot] / (h[m][hot] * h[m - 1][cold])
        swapped = list(state)
        swapped[m - 1], swapped[m] = hot, cold
        out[i, where[tuple(swapped)]] += min(1.0, ratio)
        out[i, i] += 1.0 - min(1.0, ratio)
    return out


def parallel_matrix(h, pairs=(2, 1), kernel=metropolis):
    """One iteration: moves, then the pairs in turn."""
    out = moves_matrix(h, kernel)
    for m in pairs:
        out = out @ swap_matrix(h, m)
    return out


# ---------------------------------------------------------------- resampled subsets
def extended_states():
    """(order, theta_0, theta_1, theta_2): 12 * 27."""
    return [(order, state) for order in subsets() for state in joint_states()]


def reference_weight(likelihood, order, reference):
    """w(order) = prod_{m >= 1} 1 / p(X_m | reference)."""
    return np.prod([1.0 / likelihood[reference, list(order[:size])].prod() for size in SIZES[1:]])


def extended_density(prior, likelihood, reference):
    """w(order) prod_m h_m(theta_m), normalised over orders and thetas."""
    out = []
    for order, state in extended_states():
        h = subsampled(prior, likelihood, order)
        joint = np.prod([h[m][s] for m, s in enumerate(state)])
        out.append(joint * reference_weight(likelihood, order, reference))
    return normalised(out)


def rings(order):
    """Rows of X_a that X_{a+1} lacks."""
    return [order[2:], order[1:2], order[:1]]


def exchange_matrix(prior, likelihood, reference):
    """Exchange of a row of ring a with one of ring b > a: half of the time neighbours, half any."""
    states = extended_states()
    where = {state: i for i, state in enumerate(states)}
    laws = [(0.5 * 0.5, (0, 1)), (0.5 * 0.5, (1, 2))]
    laws += [(0.5 / 3, pair) for pair in ((0, 1), (0, 2), (1, 2))]
    out = np.zeros((len(states), len(states)))
    for i, (order, state) in enumerate(states):
        here = subsampled(prior, likelihood, order)
        for law, (a, b) in laws:
            for one, other in product(rings(order)[a], rings(order)[b]):
                chance = law / (len(rings(order)[a]) * len(rings(order)[b]))
                new = [other if n == one else one if n == other else n for n in order]
                new = (new[0], new[1], *sorted(new[2:]))
                there = subsampled(prior, likelihood, new)
                ratio = np.prod([there[m][s] / here[m][s] for m, s in enumerate(state)])
                ratio *= reference_weight(likelihood, new, reference)
                ratio /= reference_weight(likelihood, order, reference)
                out[i, where[new, state]] += chance * min(1.0, ratio)
                out[i, i] += chance * (1.0 - min(1.0, ratio))
    return out


def blocks(matrices):
    """The matrix on extended states that applies each order's own matrix."""
    n = len(joint_states())
    out = np.zeros((len(matrices) * n, len(matrices) * n))
    for k, matrix in enumerate(matrices):
        out[k * n : (k + 1) * n, k * n : (k + 1) * n] = matrix
    return out


def redraw_matrix():
    """The fault: a new order whatever the thetas, which are kept."""
    n, n_orders = len(joint_states()), len(subsets())
    return np.kron(np.full((n_orders, n_orders), 1.0 / n_orders), np.eye(n))


# ---------------------------------------------------------------- laws of chains
def stationary(matrix):
    """The invariant law of a chain that has one."""
    n = len(matrix)
    system = np.vstack([matrix.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(system, np.r_[np.zeros(n), 1.0], rcond=None)[0]


def variation(p, q):
    """Total variation distance."""
    return 0.5 * np.abs(np.asarray(p) - np.asarray(q)).sum()


def first_marginal(law):
    """The law of theta_0 from one of joint_states, or of extended_states."""
    return np.asarray(law).reshape(-1, N_STATES, N_STATES**2).sum(axis=(0, 2))
