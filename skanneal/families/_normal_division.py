"""Columns of normal rows one by one, as they are divided among the views of a CrossCat.

The prior is that of `_multivariate_normal.pyx` with a diagonal scale0 = diag(psi) and
nu0 = delta + d - 1, delta being the same for any number d of columns (Dawid 1981): then the prior
of some columns is the marginal of the prior of all. Column p of a cluster's n rows, counted from 0,
is given the columns before it a normal regression on them, with the marginal likelihood

    Gamma((nu + n)/2) / Gamma(nu/2) pi^(-n/2) (kappa0/kappa)^(1/2) psi_p^(nu/2) s_p^(-(nu + n)/2)
    prod_{i < p} (psi_i / s_i)^(1/2),                                nu = delta + p,

and the product over the columns is the marginal likelihood of the rows. s_p = R_pp^2, where R is
the triangular factor, R'R = Psi = scale0 + S + kappa0 n/kappa (m - mu0)(m - mu0)'. It is made of
the rows themselves, since squares would lose half of the digits.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import gammaln

from ._normal import Normal


class NormalColumns:
    """The family's columns under one partition of the rows, some of which are held in one view.

    Parameters
    ----------
    cells : float64 array of shape (n, n_columns)
        Of the rows that are partitioned, without gaps.
    labels : int array of shape (n,)
        Of the clusters, none of them negative.
    hyper : float64 array of shape (n_columns, 4)
        mu0, kappa0, delta and psi of each column; kappa0 and delta are all the same.
    """

    growth = {"nu0": 1.0}  # of the hyperparameters with each further column

    def __init__(self, cells, labels, hyper):
        self.cells, (self.mu0, kappa0, delta, self.psi) = cells, np.transpose(hyper)
        self.kappa0, self.delta = kappa0[0], delta[0]
        self.order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels)
        self.sizes = sizes[sizes > 0]
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.weights = self.kappa0 * self.sizes / (self.kappa0 + self.sizes)
        self.hold([])

    @staticmethod
    def column_scores(table, columns, hyper, rows, labels, n_slots):
        """Of each column by itself, as `ColumnFamily.column_scores`: the normal family's."""
        own = [(mu0, kappa0, nu0, scale0 / nu0) for mu0, kappa0, nu0, scale0 in hyper]
        return Normal.column_scores(table, columns, own, rows, labels, n_slots)

    def hold(self, columns):
        """Let these be the columns that the view holds."""
        self.held = list(columns)
        self.means, self.centred = self._of_clusters(self.held)
        self.factors = self._factors(self.means, self.centred, self.held)

    def score(self, column):
        """Log marginal likelihood of a column given the others that are held."""
        others = [c for c in self.held if c != column]
        if len(others) < len(self.held):
            at = [self.held.index(c) for c in [*others, column]]
            squares = _squares(np.linalg.qr(self.factors[:, :, at], mode="r"))
        else:
            squares = np.column_stack([_squares(self.factors), self._rest(column)])
        return self._chain(squares, [*others, column])[-1]

    def together(self, columns):
        """Log marginal likelihood of columns together."""
        factors = self._factors(*self._of_clusters(columns), columns)
        return self._chain(_squares(factors), columns).sum()

    def _of_clusters(self, columns):
        """Means of the clusters less mu0, (n_clusters, d), and the cells less their cluster's, in
        the order of the clusters: (n, d)."""
        cells = self.cells[np.ix_(self.order, columns)] - self.mu0[columns]
        means = np.add.reduceat(cells, self.starts, axis=0) / self.sizes[:, None]
        return means, cells - np.repeat(means, self.sizes, axis=0)

    def _factors(self, means, centred, columns):
        """R of each cluster: (n_clusters, d, d)."""
        roots, prior = np.sqrt(self.weights)[:, None] * means, np.diag(np.sqrt(self.psi[columns]))
        out = np.empty((len(self.sizes), len(columns), len(columns)))
        for k, (start, n) in enumerate(zip(self.starts, self.sizes)):
            rows = np.vstack([prior, roots[k], centred[start : start + n]])
            out[k] = np.linalg.qr(rows, mode="r")
        return out

    def _rest(self, column):
        """s of a column that is not held, after those that are: (n_clusters,)."""
        means, centred = self._of_clusters([column])
        cross = np.add.reduceat(self.centred * centred, self.starts, axis=0)
        cross += self.weights[:, None] * self.means * means
        solved = np.linalg.solve(self.factors.transpose(0, 2, 1), cross[:, :, None])[:, :, 0]
        own = np.add.reduceat(centred[:, 0] ** 2, self.starts) + self.weights * means[:, 0] ** 2
        psi = self.psi[column]  # which s cannot be below, but by rounding
        return np.maximum(psi + own - np.sum(solved**2, axis=1), psi)

    def _chain(self, squares, columns):
        """The logarithm of each factor of the product above, summed over clusters: (d,)."""
        n, psi = self.sizes[:, None], self.psi[columns]
        nu = self.delta + np.arange(len(columns))
        logs = gammaln(0.5 * (nu + n)) - gammaln(0.5 * nu) - 0.5 * n * np.log(np.pi)
        logs += 0.5 * np.log(self.kappa0 / (self.kappa0 + n))
        logs += 0.5 * nu * np.log(psi) - 0.5 * (nu + n) * np.log(squares)
        ratios = 0.5 * np.log(psi / squares)
        return (logs + np.cumsum(ratios, axis=1) - ratios).sum(axis=0)


def _squares(factors):
    """Squares of the diagonals: (n_clusters, d)."""
    return np.diagonal(factors, axis1=1, axis2=2) ** 2
