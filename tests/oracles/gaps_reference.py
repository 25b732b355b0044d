"""Rows with missing cells (None) under the families of whole rows, from the formulas.

Of a normal-inverse-Wishart prior some columns have a law of the same family by themselves:
sub-vectors and sub-matrices of the hyperparameters, and as many degrees of freedom fewer as there
are columns fewer. Of known covariances all cells of a cluster are jointly normal.
"""

import math
from functools import cache

import numpy as np
from scipy.special import logsumexp

from oracles.enumeration import clusters, log_eppf, partitions
from oracles.reference import log_marginal, log_predictive

ANGLES = (np.arange(81) + 0.5) / 81 * np.pi - np.pi / 2
FILLS, LOG_STEPS = 1.5 * np.tan(ANGLES), np.log(1.5 / np.cos(ANGLES) ** 2 * np.pi / 81)


def of_columns(hyper, keep):
    """The hyperparameters of some columns of the multivariate normal."""
    keep, hyper = list(keep), {name: np.asarray(value) for name, value in hyper.items()}
    hyper["nu0"] = hyper["nu0"] - (len(hyper["mu0"]) - len(keep))
    return {name: v[np.ix_(*[keep] * v.ndim)] if v.ndim else v for name, v in hyper.items()}


def observed_columns(row):
    return [j for j, cell in enumerate(row) if cell is not None]


def observed_log_predictive(family, row, values, hyper):
    """Log density of a row's observed cells, given complete rows of its cluster."""
    keep = observed_columns(row)
    if not keep:
        return 0.0
    if family == "known_normal":
        return _known([*values, row], hyper) - _known(values, hyper)
    members = [[value[j] for j in keep] for value in values]
    return log_predictive(family, [row[j] for j in keep], members, of_columns(hyper, keep))


def observed_log_marginal(family, rows, hyper):
    """Log marginal likelihood of the observed cells of a cluster's rows.

    Where they are not jointly normal, the last row with a gap has the density above, and a single
    missing cell of each earlier one is integrated out numerically.
    """
    rows = [tuple(row) for row in rows if observed_columns(row)]
    if family == "known_normal":
        return _known(rows, hyper)
    whole = [row for row in rows if None not in row]
    gappy = [row for row in rows if None in row]
    return _filled(family, whole, gappy, hyper)


def _filled(family, whole, gappy, hyper):
    if not gappy:
        return log_marginal(family, whole, hyper)
    row, *rest = gappy
    if not rest:
        return log_marginal(family, whole, hyper) + observed_log_predictive(
            family, row, whole, hyper
        )
    (j,) = (j for j, cell in enumerate(row) if cell is None)
    terms = []
    for fill, log_step in zip(FILLS, LOG_STEPS, strict=True):
        complete = (*row[:j], fill, *row[j + 1 :])
        terms.append(log_step + _filled(family, [*whole, complete], rest, hyper))
    return logsumexp(terms)


def _known(rows, hyper):
    cells = [(i, j) for i, row in enumerate(rows) for j in observed_columns(row)]
    covariance, spread = np.asarray(hyper["covariance"]), np.asarray(hyper["prior_covariance"])
    joint = [[spread[a, b] + (i == k) * covariance[a, b] for k, b in cells] for i, a in cells]
    shift = np.array([rows[i][j] - hyper["prior_mean"][j] for i, j in cells])
    if not len(cells):
        return 0.0
    squared = shift @ np.linalg.solve(joint, shift)
    return -0.5 * (len(cells) * math.log(2 * math.pi) + np.linalg.slogdet(joint)[1] + squared)


def log_weights_of(family, rows, hypers, discount=0.0, concentration=1.0):
    """Log of prior times likelihood of each (partition, index of the hyperparameters)."""

    @cache
    def score(index, members):
        return observed_log_marginal(family, [rows[i] for i in members], hypers[index])

    out = {}
    for partition in partitions(len(rows)):
        members = clusters(partition)
        log_prior = log_eppf([len(own) for own in members], concentration, discount)
        for index in range(len(hypers)):
            out[partition, index] = log_prior + math.fsum(score(index, own) for own in members)
    return out
