"""Re-centred levels: what makes a level of few rows like the target, by least squares.

Level m becomes h_m(theta) ~ p(theta) p(X_m | theta)^c_m exp(g_m . x + x' B_m x / 2), where x is
theta about a centre in units of a scale. Rows, power, slope and curvature are chosen so that, where
the chain has been, log h_m differs from the log posterior by as near to a constant as they allow:
that difference between two points is all a crossing sees.

A point counts by the square of its residual up to `TOLERATED` nats and by its size beyond (Huber),
since a crossing is refused at ten nats as at a hundred; and hardly where both densities are lower
than the draws' by more than `MARGIN` nats. How much is fitted, and with how much ridge, is decided
by cross-validation on blocks of successive points, since neighbours in a chain are alike. B_m has
no positive curvature, so that no level escapes where the quadratic does not hold.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

TOLERATED = 2.0
MARGIN = 10.0
N_FOLDS = 4
RIDGES = (1e-6, 0.1)  # of the regressors' variances
POINTS_PER_REGRESSOR = 2
LEAST_POWER = 1e-3  # a level of power 0 would be the prior


class Points(NamedTuple):
    """Where the chain has been, in the order in which it came there."""

    x: np.ndarray  # (n, n_parameters)
    target: np.ndarray  # (n,): log likelihood of all rows
    depth: np.ndarray  # (n,): log posterior, less that of a typical draw


class Exponents(NamedTuple):
    """A level's power, slope and curvature, in the points' units."""

    power: float
    slope: np.ndarray
    curvature: np.ndarray

    @classmethod
    def plain(cls, power, d):
        """No tilt but a power."""
        return cls(power, np.zeros(d), np.zeros((d, d)))

    def residual(self, points, level):
        """How much higher the target's log density is at each point."""
        x = points.x
        tilt = x @ self.slope + 0.5 * ((x @ self.curvature) * x).sum(axis=1)
        return points.target - self.power * level - tilt


class Shape(NamedTuple):
    """What is fitted: corrections to a power, a slope, a quadratic of some kind."""

    power: float
    quadratic: str  # "none", "diagonal" or "full"
    ridge: float


def misfit(points, level, power):
    """How far a level is from the target, with a slope but no quadratic.

    Parameters
    ----------
    points : Points
    level : ndarray of shape (n,)
        The level's log likelihoods.
    power : float
        All rows for each of the level's.

    Returns
    -------
    misfit : float
        log E[pi / h] + log E[h / pi] over the points, draws from pi: 0 if h is pi.
    """
    fitted, _ = _first_fit(points, level, power)
    residual = fitted.residual(points, level)
    sums = np.logaddexp.reduce(residual), np.logaddexp.reduce(-residual)
    return sum(sums) - 2.0 * np.log(len(residual))


def fit_level(points, level, power):
    """Fit the exponents of a level.

    Parameters
    ----------
    points, level, power
        As of `misfit`.

    Returns
    -------
    exponents : Exponents
    """
    n, d = points.x.shape
    _, weights = _first_fit(points, level, power)
    shapes = [
        Shape(base, quadratic, ridge)
        for base in dict.fromkeys((power, 1.0))
        for quadratic, size in (("none", 0), ("diagonal", d), ("full", d * (d + 1) // 2))
        for ridge in RIDGES
        if POINTS_PER_REGRESSOR * (1 + d + size) <= n
    ]
    plain = Exponents.plain(power, d)
    best, best_loss = None, np.inf
    folds = np.array_split(np.arange(n), N_FOLDS)
    for shape in (None, *shapes):
        loss = 0.0
        for held_out in folds:
            rest = weights.copy()
            rest[held_out] = 0.0
            fitted = plain if shape is None else _fit(shape, points, level, rest)
            residual = fitted.residual(points, level)
            residual -= np.average(residual, weights=rest)
            loss += weights[held_out] @ residual[held_out] ** 2
        if loss < best_loss:
            best, best_loss = shape, loss
    return plain if best is None else _fit(best, points, level, weights)


def _first_fit(points, level, power):
    """Fit power and slope, and weigh the points by their residuals: twice."""
    fitted = Exponents.plain(power, points.x.shape[1])
    for _ in range(2):
        weights = _weights(points, fitted.residual(points, level))
        fitted = _fit(Shape(power, "none", 1e-2), points, level, weights)
    return fitted, _weights(points, fitted.residual(points, level))


def _weights(points, residual):
    near = points.depth > -MARGIN
    residual = residual - np.median(residual[near] if near.any() else residual)
    robust = np.minimum(1.0, TOLERATED / np.maximum(np.abs(residual), TOLERATED))
    return robust * _relevance(points, residual)


def _relevance(points, residual):
    """1 where one of the two densities is not far below a draw's; never quite 0."""
    higher = points.depth + np.maximum(0.0, -residual)
    return np.exp(np.clip(higher + MARGIN, -50.0, 0.0))


def _fit(shape, points, level, weights):
    """Exponents of a shape by weighted ridge regression."""
    x, d = points.x, points.x.shape[1]
    y = points.target - shape.power * level
    flat = np.c_[level, x]
    curvature = np.zeros((d, d))
    if shape.quadratic == "diagonal":
        found = _ridge(np.c_[flat, x**2], y, weights, shape.ridge)[1 + d :]
        curvature = np.diag(2.0 * np.minimum(found, 0.0))
    elif shape.quadratic == "full":
        pairs = np.triu_indices(d)
        products = x[:, pairs[0]] * x[:, pairs[1]]
        curvature[pairs] = _ridge(np.c_[flat, products], y, weights, shape.ridge)[1 + d :]
        values, vectors = np.linalg.eigh(curvature + curvature.T)
        curvature = (vectors * np.minimum(values, 0.0)) @ vectors.T
    # The rest with what is left of the quadratic.
    found = _ridge(flat, y - 0.5 * ((x @ curvature) * x).sum(axis=1), weights, shape.ridge)
    return Exponents(max(shape.power + found[0], LEAST_POWER), found[1:], curvature)


def _ridge(regressors, y, weights, ridge):
    """Coefficients, an intercept left out; the penalty is in units of the regressors' variances."""
    total = weights.sum()
    regressors = regressors - weights @ regressors / total
    unit = np.sqrt(weights @ regressors**2 / total)
    unit[unit == 0.0] = 1.0
    regressors /= unit
    weighted = (regressors * weights[:, None]).T
    gram = weighted @ regressors
    gram[np.diag_indices_from(gram)] += ridge * total
    return np.linalg.solve(gram, weighted @ (y - weights @ y / total)) / unit
