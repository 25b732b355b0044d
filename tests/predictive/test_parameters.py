"""Weights and parameters of components that are drawn, against their exact laws.

Averaged over the parameters, the density of several rows together is the predictive one of the
first times that of the second given the first, and so on: a family that drew them from another law,
or for each row anew, would give another product. All bounds are those of the normal distribution at
a false-alarm rate of 1e-6 for each mean, and of a Kolmogorov-Smirnov test at 1e-4.
"""

import numpy as np
import pytest
from scipy import stats

from oracles import count_rows, mixtures
from oracles.gappy_tables import table_of
from oracles.reference import EXAMPLES, ROW_EXAMPLES, log_marginal
from oracles.t_reference import LOGS, STEP, log_marginal_given, log_weight_density
from skanneal.families import FAMILIES
from skanneal.families._forms import flatten
from skanneal.partition_priors import Finite, PitmanYor
from skanneal.predictive._parameters import MANY, draw_weights, settled, with_parameters
from skanneal.states import Mixture

BOUND, LEVEL = -stats.norm.ppf(0.5e-6), 1e-4
N_DRAWS = 4000
HELD, ROWS = 2, [4, 4, 4, 4]  # rows in a slot, and rows that are asked of
EXACT = {**EXAMPLES, **ROW_EXAMPLES}


def example(family, n_rows=HELD):
    """(block, hyper, rows): as many equal slots as draws, which hold the first rows; and a table of
    the others."""
    values, hyper = EXACT[family]
    make = count_rows.make_blocks if family == "multinomial" else _blocks
    table, (block,) = make([(family, values, hyper)], N_DRAWS)
    labels = np.repeat(np.arange(N_DRAWS), n_rows)
    block.build(np.tile(np.arange(n_rows), N_DRAWS), labels, N_DRAWS)
    return block, table


def _blocks(columns, n_slots):
    table = mixtures.make_table(columns)
    return table, mixtures.make_blocks(table, columns, n_slots)


def drawn(block, seed=0, draw=settled):
    """The block of drawn parameters, a draw in each slot."""
    arrays = block.to_arrays(N_DRAWS)
    arrays |= draw(block, arrays, np.random.default_rng(seed))
    arrays["size"] = np.full(N_DRAWS, MANY)
    return type(block).from_arrays(arrays, block.table)


def z_of(densities, expected):
    """How many standard errors the mean of densities is from what is expected."""
    return (densities.mean() - expected) / (densities.std() / np.sqrt(len(densities)))


def log_ratio(family, rows, n_rows=HELD):
    """Log density of rows given the first ones, all in cell units."""
    values, hyper = EXACT[family]
    logs = []
    for held in (values[:n_rows], values[:n_rows] + [values[i] for i in rows]):
        ((name, cells, own),) = mixtures.in_cells([(family, held, hyper)])
        logs.append(log_marginal(name, cells, own))
    return logs[1] - logs[0]


def scores(block, table, rows):
    """Log density of rows under each draw, (N_DRAWS, n); of logarithms where the family is."""
    out = np.zeros((table.n_rows, N_DRAWS))
    block.score_rows(table, out)
    for f in range(len(block.columns)) if block.log_slope is not None else ():
        if block.logarithms_of:
            out -= block.log_slope(f, table, 0, table.n_rows)[:, None]
    return out[rows].T


def alone(logs):
    """Log density of all rows, each of which has drawn parameters of its own."""
    return sum(np.roll(of_row, i) for i, of_row in enumerate(logs.T))


@pytest.mark.parametrize("family", [name for name in FAMILIES if name in EXACT])
def test_rows_share_what_was_drawn(family):
    block, table = example(family)
    logs = scores(drawn(block), table, ROWS)
    for n in range(1, 1 + len(ROWS)):
        expected = np.exp(log_ratio(family, ROWS[:n]))
        assert abs(z_of(np.exp(logs[:, :n].sum(axis=1)), expected)) < BOUND
    assert z_of(np.exp(alone(logs)), expected) < -BOUND  # the control


def test_every_family_is_among_those():
    assert set(FAMILIES) - set(EXACT) == {"multivariate_t"}


def test_rows_of_weights_share_what_was_drawn():
    """The density of two rows, their weights summed over a lattice of their logarithms."""
    family, rng = FAMILIES["multivariate_t"], np.random.default_rng(0)
    rows, weights = np.float32(rng.normal(size=(6, 2))).astype(float), rng.gamma(1.0, size=HELD)
    hyper = {"mu0": [0.3, -0.1], "kappa0": 0.5, "nu0": 3.5, "scale0": np.eye(2), "degrees": 4.0}
    table = table_of(rows.tolist())
    vector = flatten(family.forms, [hyper[name] for name in family.coordinate_names], 2)
    block = family(table, [0, 1], [vector], N_DRAWS)
    mixture = Mixture(table, [block], PitmanYor(1.0), None)
    fills = mixture.table.fills()
    fills[:HELD] = weights
    mixture.table.set_fills(fills)
    block.build(np.tile(np.arange(HELD), N_DRAWS), np.repeat(np.arange(N_DRAWS), HELD), N_DRAWS)
    logs = scores(drawn(block), table, ROWS[:2])
    pairs = np.stack(np.meshgrid(LOGS, LOGS), axis=-1).reshape(-1, 2)
    held = np.float32(weights).astype(float)
    both = np.column_stack([np.tile(held, (len(pairs), 1)), np.exp(pairs)])
    density = log_marginal_given(rows[[0, 1, *ROWS[:2]]], both, hyper)
    density += log_weight_density(pairs, 4.0).sum(axis=1)
    density -= log_marginal_given(rows[:HELD], held, hyper)
    expected = np.exp(density).sum() * STEP**2
    assert abs(z_of(np.exp(logs.sum(axis=1)), expected)) < BOUND
    assert z_of(np.exp(alone(logs)), expected) < -BOUND  # the control


def p_value(sample, law):
    return stats.kstest(sample, law.cdf).pvalue


def test_parameters_have_their_laws():
    """Of conjugate models: the normal-inverse-gamma, the Dirichlet and the gamma law."""
    values, hyper = EXACT["normal"]
    x = np.array(values[:HELD])
    kappa, nu = hyper["kappa0"] + HELD, hyper["nu0"] + HELD
    squares = hyper["nu0"] * hyper["sigma2_0"] + ((x - x.mean()) ** 2).sum()
    squares += hyper["kappa0"] * HELD / kappa * (x.mean() - hyper["mu0"]) ** 2
    centre = hyper["mu0"] + HELD / kappa * (x.mean() - hyper["mu0"])
    block = drawn(example("normal")[0])
    mean, variance = block.predictive_mean(0)[:N_DRAWS], block.predictive_variance(0)[:N_DRAWS]
    student = stats.t(nu, centre, np.sqrt(squares / nu / kappa))
    assert p_value(mean, student) > LEVEL
    assert p_value(variance, stats.invgamma(0.5 * nu, scale=0.5 * squares)) > LEVEL
    standardised = (mean - centre) / np.sqrt(variance / kappa)
    assert p_value(standardised, stats.norm()) > LEVEL
    assert p_value(mean, stats.norm(centre, student.std())) < LEVEL  # the control

    block = drawn(example("categorical")[0])
    shares = block.predictive_probabilities(0)[:, :N_DRAWS]
    pseudo = np.array(EXACT["categorical"][1]["pseudo_counts"])
    shapes = pseudo + np.bincount(EXACT["categorical"][0][:HELD], minlength=3)
    for share, shape in zip(shares, shapes, strict=True):
        assert p_value(share, stats.beta(shape, shapes.sum() - shape)) > LEVEL

    values, hyper = EXACT["poisson"]
    rate = drawn(example("poisson")[0]).predictive_mean(0)[:N_DRAWS]
    law = stats.gamma(hyper["shape"] + sum(values[:HELD]), scale=1 / (hyper["rate"] + HELD))
    assert p_value(rate, law) > LEVEL


def test_covariances_are_inverse_wishart():
    """Sigma by both orders of its columns, so that neither end of the factor is special; mu given
    Sigma."""
    values, hyper = EXACT["multivariate_normal"]
    x, kappa, nu = np.array(values[:HELD]), hyper["kappa0"] + HELD, hyper["nu0"] + HELD
    off = x.mean(axis=0) - hyper["mu0"]
    psi = np.array(hyper["scale0"]) + (x - x.mean(axis=0)).T @ (x - x.mean(axis=0))
    psi += hyper["kappa0"] * HELD / kappa * np.multiply.outer(off, off)
    block, _ = example("multivariate_normal")
    arrays = block.to_arrays(N_DRAWS)
    arrays |= settled(block, arrays, np.random.default_rng(1))
    a, b, c = arrays["factor"]
    roots = np.sqrt(MANY) * np.array([[a, 0 * a], [b, c]]).transpose(2, 0, 1)
    sigma = np.linalg.inv(roots.transpose(0, 2, 1) @ roots)
    for i in (0, 1):
        law = stats.invgamma(0.5 * (nu - 1), scale=0.5 * psi[i, i])
        assert p_value(sigma[:, i, i], law) > LEVEL
        slope = sigma[:, 0, 1] / sigma[:, i, i]
        rest = (psi[1 - i, 1 - i] - psi[0, 1] ** 2 / psi[i, i]) / psi[i, i]
        law = stats.t(nu, psi[0, 1] / psi[i, i], np.sqrt(rest / nu))
        assert p_value(slope, law) > LEVEL
    centre = np.array(hyper["mu0"]) + HELD / kappa * off
    z = np.einsum("kij,jk->ik", roots, arrays["mean"] - centre[:, None]) * np.sqrt(kappa)
    assert min(p_value(of, stats.norm()) for of in z) > LEVEL


@pytest.mark.parametrize("prior", [PitmanYor(0.7, 0.3), Finite(4.0, -1.0)])
@pytest.mark.few(1)
def test_weights_are_dirichlet(prior):
    sizes, generator = np.array([5, 1, 2]), np.random.default_rng(0)
    weights = np.exp([draw_weights(sizes, prior, generator) for _ in range(N_DRAWS)])
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    shapes = np.r_[sizes - prior.discount, prior.concentration + 3 * prior.discount]
    for of, shape in zip(weights.T, shapes, strict=True):
        assert p_value(of, stats.beta(shape, shapes.sum() - shape)) > LEVEL


def test_a_mixture_keeps_its_components_in_order():
    """Slots without rows vanish; those with rows stay near their own parameters."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 3, 5], 200)
    centres = np.select([group == 0, group == 3], [-10.0, 0.0], 10.0)
    values = (centres + rng.normal(size=600)).tolist()
    hyper = {"mu0": 0.0, "kappa0": 0.1, "nu0": 2.0, "sigma2_0": 1.0}
    mixture, _ = mixtures.make_mixture([("normal", values, hyper)])
    mixtures.set_partition(mixture, group)
    queries = Mixture.from_arrays(mixture.to_arrays(), type(mixture.table)(["f4"], [0]))
    settled_mixture, log_weights = with_parameters(queries, np.random.default_rng(0))
    (block,) = settled_mixture.blocks
    np.testing.assert_allclose(block.predictive_mean(0)[:3], [-10.0, 0.0, 10.0], atol=0.5)
    assert settled_mixture.open_slot == 3 and len(log_weights) == 4
    assert np.exp(log_weights[3]) < 0.1
