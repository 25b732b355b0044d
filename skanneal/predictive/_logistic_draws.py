r"""A logistic regression with offsets: the mode of its posterior, and draws from it.

    log P(y_i = 1) / P(y_i = 0) = o_i + z_i' b,    b_k ~ Normal(0, 1 / precision_k)

The offset o_i is what is known of row i beside its regressors z_i. The posterior is log-concave:
Newton's method finds its mode, and the curvature there gives a normal approximation. A draw from
it is the start of steps of elliptical slice sampling (Murray, Adams and MacKay 2010) on the ratio
of the posterior to the approximation. These leave the posterior itself invariant, which is skewed
where rows are few or one of the answers is rare.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.special import expit

MOST_STEPS = 100  # of Newton's method, which needs some five
CLOSE = 1e-9  # a step that gains less log density ends it
N_SLICES = 10  # each step halves what is left of a skew, or better
NARROWEST = 1e-9  # angle: as good as the point itself


class LogisticPosterior:
    """The posterior of the coefficients.

    Parameters
    ----------
    regressors : float64 array of shape (n, p)
        The z_i.
    answers : bool array of shape (n,)
        The y_i.
    offsets : float64 array of shape (n,)
        The o_i.
    precisions : float64 array of shape (p,)
        Of the prior, above 0.

    Attributes
    ----------
    mode : float64 array of shape (p,)
    factor : float64 array of shape (p, p)
        Lower triangular, L L' being the negative second derivative at the mode.
    """

    def __init__(self, regressors, answers, offsets, precisions):
        self.regressors, self.precisions = regressors, precisions
        self.offsets, self.signs = offsets, np.where(answers, -1.0, 1.0)
        self.mode, self.factor = self._climb(np.asarray(answers, dtype=np.float64))

    def log_density(self, coefficients):
        """Log density of coefficients, up to a constant."""
        return self._log_density(coefficients, self.offsets + self.regressors @ coefficients)

    def _log_density(self, coefficients, log_odds):
        fit = -np.logaddexp(0.0, self.signs * log_odds).sum()
        return fit - 0.5 * self.precisions @ coefficients**2

    def _climb(self, answers):
        """The mode, and the factor there."""
        at = np.zeros(len(self.precisions))
        height, gain = self.log_density(at), np.inf
        for _ in range(MOST_STEPS):
            chances = expit(self.offsets + self.regressors @ at)
            weighted = self.regressors * (chances * (1.0 - chances))[:, None]
            curvature = self.regressors.T @ weighted + np.diag(self.precisions)
            factor = cho_factor(curvature, lower=True)
            if gain < CLOSE:
                break
            slope = self.regressors.T @ (answers - chances) - self.precisions * at
            step = cho_solve(factor, slope)
            reached = self.log_density(at + step)
            while reached < height - CLOSE:  # beyond the mode, where the curve is flat
                step *= 0.5
                reached = self.log_density(at + step)
            at, gain, height = at + step, reached - height, reached
        return at, np.tril(factor[0])

    def draw(self, generator):
        """Coefficients drawn from the posterior: (p,)."""
        centre = self.offsets + self.regressors @ self.mode

        def proposed():
            """A step away from the mode, and what it adds to the log odds."""
            normal = generator.standard_normal(len(self.mode))
            step = solve_triangular(self.factor, normal, trans=1, lower=True)
            return np.r_[step, self.regressors @ step]

        def log_ratio(away):
            """Of the posterior to the approximation."""
            step, odds = away[: len(self.mode)], away[len(self.mode) :]
            rest = 0.5 * np.sum((self.factor.T @ step) ** 2)
            return self._log_density(self.mode + step, centre + odds) + rest

        away = proposed()
        for _ in range(N_SLICES):
            other = proposed()
            least = log_ratio(away) - generator.standard_exponential()
            angle = 2.0 * np.pi * generator.random()
            low, high = angle - 2.0 * np.pi, angle
            turned = np.cos(angle) * away + np.sin(angle) * other
            while log_ratio(turned) < least and high - low > NARROWEST:
                low, high = (angle, high) if angle < 0.0 else (low, angle)
                angle = low + (high - low) * generator.random()
                turned = np.cos(angle) * away + np.sin(angle) * other
            away = turned
        return self.mode + away[: len(self.mode)]
