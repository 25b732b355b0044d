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
from scipy.special import gammaincinv, gammaln, ndtri

from ._forms import unpack
from ._normal import Normal

FARTHEST = 1e15  # fill, in cell units: its square leaves room


class NormalColumns:
    """The family's columns under one partition of the rows, some of which are held in one view.

    Parameters
    ----------
    cells : float64 array of shape (n, n_columns)
        Of the rows that are partitioned, with fills in the gaps.
    labels : int array of shape (n,)
        Of the clusters, none of them negative.
    hyper : float64 array of shape (n_columns, 4)
        mu0, kappa0, delta and psi of each column; kappa0 and delta are all the same.
    gaps : bool array of shape (n, n_columns), default=None
        Which cells are fills; None: none of them.
    """

    growth = {"nu0": 1.0}  # of the hyperparameters with each further column

    def __init__(self, cells, labels, hyper, gaps=None):
        self.labels, self.hyper, self.gaps = labels, hyper, gaps
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

    @staticmethod
    def laws(block, slots):
        """Student's t of a row in each of these slots of a block, in cell units: centres (n, d),
        squared scales (n, d, d) and degrees of freedom (n,)."""
        arrays, d = block.to_arrays(slots), len(block.columns)
        n, mu0, nu0 = arrays["size"], arrays["mu0"], arrays["nu0"]
        kappa = arrays["kappa0"] + n
        shifts = (arrays["mean"].T - mu0) * (n > 0)[:, None]
        psi = np.array([unpack(packed, d) for packed in arrays["scatter"].T]) + arrays["scale0"]
        outer = shifts[:, :, None] * shifts[:, None, :]
        psi += (arrays["kappa0"] * n / kappa)[:, None, None] * outer
        degrees = nu0 + n - d + 1.0
        scale = (kappa + 1.0) / (kappa * degrees)
        return mu0 + (n / kappa)[:, None] * shifts, psi * scale[:, None, None], degrees

    def hold(self, columns):
        """Let these be the columns that the view holds."""
        self.held = list(columns)
        self.means, self.centred = self._of_clusters(self.held)
        self.factors = self._factors(self.means, self.centred, self.held)
        squares = np.maximum(_squares(self.factors), self.psi[self.held])
        self.log_ratio = np.log(self.psi[self.held] / squares).sum()  # of all clusters
        self.last = None  # s of each column held, after the others

    def score(self, column):
        """Log marginal likelihood of a column's cells, without fills, given the others held.

        It takes s of the column after the others, 1 / (Psi^-1)_cc, and the product of theirs, which
        is what is left of the determinant."""
        if self.gaps is not None and self.gaps[:, column].any():
            return self._seen(column, [c for c in self.held if c != column]).score(column)
        psi, n_others, log_ratio = self.psi[column], len(self.held), self.log_ratio
        if column in self.held:
            if self.last is None:
                self.last = 1.0 / (np.linalg.inv(self.factors) ** 2).sum(axis=2)
            square = np.maximum(self.last[:, self.held.index(column)], psi)
            n_others, log_ratio = n_others - 1, log_ratio - np.log(psi / square).sum()
        else:
            square = np.maximum(self._rest(column), psi)
        return self._log_factors(self.sizes, n_others, psi, square).sum() + 0.5 * log_ratio

    def _log_factors(self, n, p, psi, squares):
        """Log of column p's factor of the product above, without the last one."""
        nu = self.delta + p
        logs = gammaln(0.5 * (nu + n)) - gammaln(0.5 * nu) - 0.5 * n * np.log(np.pi)
        logs += 0.5 * np.log(self.kappa0 / (self.kappa0 + n))
        return logs + 0.5 * nu * np.log(psi) - 0.5 * (nu + n) * np.log(squares)

    def together(self, columns):
        """Log marginal likelihood of columns together."""
        factors = self._factors(*self._of_clusters(columns), columns)
        return self._chain(_squares(factors), columns).sum()

    def draw(self, column, generator):
        """Draw a column's fills given its other cells and the others held: (n_gaps,).

        In each cluster the regression's coefficients and variance are drawn once."""
        others, gaps = [c for c in self.held if c != column], np.flatnonzero(self.gaps[:, column])
        seen, out = self._seen(column, [*others, column]), np.empty(len(gaps))
        for label in np.unique(self.labels[gaps]):
            own = np.flatnonzero(self.labels[gaps] == label)
            mean, factor, n = seen._of_label(label)
            deviations = self.cells[np.ix_(gaps[own], others)] - self.mu0[others] - mean[:-1]
            degrees = self.delta + len(others) + n
            sigma = factor[-1, -1] / np.sqrt(2.0 * gammaincinv(0.5 * degrees, _uniforms(generator)))
            normals = sigma * ndtri(_uniforms(generator, len(own) + len(mean)))
            slopes = np.linalg.solve(factor[:-1, :-1], factor[:-1, -1] + normals[1 : len(mean)])
            centre = self.mu0[column] + mean[-1] + normals[0] / np.sqrt(self.kappa0 + n)
            out[own] = centre + deviations @ slopes + normals[len(mean) :]
        return np.clip(out, -FARTHEST, FARTHEST)

    def _seen(self, column, held):
        """The same of the rows that have a cell in this column, with these columns held."""
        rows = ~self.gaps[:, column]
        seen = NormalColumns(self.cells[rows], self.labels[rows], self.hyper)
        seen.hold(held)
        return seen

    def _of_label(self, label):
        """Posterior mean less mu0, R and the rows of a cluster, which may have none."""
        at = np.flatnonzero(np.unique(self.labels) == label)
        if not len(at):
            return np.zeros(len(self.held)), np.diag(np.sqrt(self.psi[self.held])), 0
        n = self.sizes[at[0]]
        return n / (self.kappa0 + n) * self.means[at[0]], self.factors[at[0]], n

    def _of_clusters(self, columns):
        """Means of the clusters less mu0, (n_clusters, d), and the cells less their cluster's, in
        the order of the clusters: (n, d)."""
        cells = self.cells[:, columns][self.order] - self.mu0[columns]
        means = np.add.reduceat(cells, self.starts, axis=0) / self.sizes[:, None]
        return means, cells - np.repeat(means, self.sizes, axis=0)

    def _factors(self, means, centred, columns):
        """R of each cluster: (n_clusters, d, d)."""
        roots, least = np.sqrt(self.weights)[:, None] * means, np.sqrt(self.psi[columns])
        out = np.empty((len(self.sizes), len(columns), len(columns)))
        for k, (start, n) in enumerate(zip(self.starts, self.sizes)):
            rows = np.vstack([np.diag(least), roots[k], centred[start : start + n]])
            out[k] = np.linalg.qr(rows, mode="r")
        pivots = np.einsum("kii->ki", out)  # a view; none is below the prior's, but by rounding
        np.copyto(pivots, least, where=np.abs(pivots) < least)
        return out

    def _rest(self, column):
        """s of a column that is not held, after those that are: (n_clusters,)."""
        psi = self.psi[column]
        means, centred = self._of_clusters([column])
        s = np.add.reduceat(centred[:, 0] ** 2, self.starts) + self.weights * means[:, 0] ** 2 + psi
        if self.held:
            cross = np.add.reduceat(self.centred * centred, self.starts, axis=0)
            cross += self.weights[:, None] * self.means * means
            solved = np.linalg.solve(self.factors.transpose(0, 2, 1), cross[:, :, None])[:, :, 0]
            s -= np.sum(solved**2, axis=1)
        return s

    def _chain(self, squares, columns):
        """The logarithm of each factor of the product above, summed over clusters: (d,)."""
        n, psi = self.sizes[:, None], self.psi[columns]
        squares = np.maximum(squares, psi)  # which are not less, but by rounding
        logs = self._log_factors(n, np.arange(len(columns)), psi, squares)
        ratios = 0.5 * np.log(psi / squares)
        return (logs + np.cumsum(ratios, axis=1) - ratios).sum(axis=0)


def _squares(factors):
    """Squares of the diagonals: (n_clusters, d)."""
    return np.diagonal(factors, axis1=1, axis2=2) ** 2


def _uniforms(generator, size=None):
    """Uniform numbers above 0 and below 1."""
    return generator.random(size) + 2.0**-54
