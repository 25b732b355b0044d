"""Rows with heavy tails, from the formulas: given the rows' weights, and with these integrated out.

x ~ N(mu, V / w), w ~ Gamma(degrees / 2, degrees / 2), mu ~ N(mu0, V / kappa0), V ~ inverse Wishart.
Given weights w_1..w_n, with W their sum, mean = sum w x / W and kappa_n = kappa0 + W,

    Psi_n = scale0 + sum w (x - mean)(x - mean)' + kappa0 W (mean - mu0)(mean - mu0)' / kappa_n
    m(x | w) = pi^(-n d/2) (kappa0 / kappa_n)^(d/2) G_d(nu_n/2) / G_d(nu0/2)
               |scale0|^(nu0/2) / |Psi_n|^(nu_n/2) prod w^(d/2),  nu_n = nu0 + n.

All weights are integrated out over a product of lattices in log w; of missing cells (None) as in
gaps_reference.py, at most one row of a cluster with a gap, the last.
"""

import math

import numpy as np
from scipy.special import gammaln, logsumexp, multigammaln

from oracles.gaps_reference import observed_columns, of_columns

STEP = 0.65
LOGS = np.arange(-9.5, 3.0, STEP)  # of weights


def log_weight_density(logs, degrees):
    """Of log w."""
    h = degrees / 2
    return h * math.log(h) - gammaln(h) + h * logs - h * np.exp(logs)


def log_marginal_given(rows, weights, hyper):
    """log m(x | w) of complete rows; `weights` of shape (..., n)."""
    mu0, kappa0 = np.asarray(hyper["mu0"], float), float(hyper["kappa0"])
    nu0, scale0 = float(hyper["nu0"]), np.asarray(hyper["scale0"], float)
    weights, d = np.asarray(weights, float), len(mu0)
    n = weights.shape[-1]
    if n == 0:
        return np.zeros(weights.shape[:-1])
    rows = np.array(rows, dtype=float).reshape(n, d)
    total = weights.sum(axis=-1)
    mean = weights @ rows / total[..., None]
    shifts = rows - mean[..., None, :]
    psi = scale0 + np.einsum("...n,...ni,...nj->...ij", weights, shifts, shifts)
    off = mean - mu0
    share = kappa0 * total / (kappa0 + total)
    psi = psi + share[..., None, None] * off[..., :, None] * off[..., None, :]
    return (
        -0.5 * n * d * math.log(math.pi)
        + 0.5 * d * np.log(kappa0 / (kappa0 + total))
        + multigammaln((nu0 + n) / 2, d)
        - multigammaln(nu0 / 2, d)
        + 0.5 * nu0 * np.linalg.slogdet(scale0)[1]
        - 0.5 * (nu0 + n) * np.linalg.slogdet(psi)[1]
        + 0.5 * d * np.log(weights).sum(axis=-1)
    )


def log_predictive_given(row, weight, rows, weights, hyper):
    """Log density of a row's observed cells, given its weight and the rows of its cluster."""
    keep = observed_columns(row)
    if not keep:
        return np.zeros(np.broadcast_shapes(np.shape(weight), np.shape(weights)[:-1]))
    hyper = of_columns(hyper, keep)
    rows = [[other[j] for j in keep] for other in rows]
    weight, weights = np.asarray(weight, float), np.asarray(weights, float)
    shape = np.broadcast_shapes(weight.shape, weights.shape[:-1])
    weights = np.broadcast_to(weights, (*shape, weights.shape[-1]))
    joint = np.concatenate([weights, np.broadcast_to(weight, shape)[..., None]], axis=-1)
    with_row = log_marginal_given([*rows, [row[j] for j in keep]], joint, hyper)
    return with_row - log_marginal_given(rows, weights, hyper)


def log_predictive(row, rows, weights, hyper, n_nodes=1500):
    """The same, its weight integrated out."""
    logs = np.linspace(-90.0, 7.0, n_nodes)
    given = log_predictive_given(row, np.exp(logs), rows, np.asarray(weights, float), hyper)
    terms = given + log_weight_density(logs, hyper["degrees"])
    return float(logsumexp(terms) + math.log(logs[1] - logs[0]))


def log_marginal(rows, hyper):
    """Log marginal likelihood of the observed cells of a cluster's rows, weights integrated out."""
    rows = [row for row in rows if observed_columns(row)]
    whole = [row for row in rows if None not in row]
    gappy = [row for row in rows if None in row]
    n = len(rows)
    assert len(gappy) <= 1
    if n == 0:
        return 0.0
    logs = np.stack(np.meshgrid(*[LOGS] * n, indexing="ij"), axis=-1)
    weights = np.exp(logs)
    terms = log_weight_density(logs, hyper["degrees"]).sum(axis=-1)
    terms = terms + log_marginal_given(whole, weights[..., : len(whole)], hyper)
    for row in gappy:
        terms = terms + log_predictive_given(
            row, weights[..., -1], whole, weights[..., : len(whole)], hyper
        )
    return float(logsumexp(terms) + n * math.log(STEP))
