"""Columns of normal rows one by one, as they are divided among the views of a CrossCat.

The prior is that of `_multivariate_normal.pyx` with a diagonal scale0 = diag(psi) and
nu0 = delta + d - 1, delta being the same for any number d of columns (Dawid 1981): then the prior
of some columns is the marginal of the prior of all. Column p of a cluster's n rows, counted from 0,
is given the columns before it a normal regression on them, with the marginal likelihood

    Gamma((nu + n)/2) / Gamma(nu/2) pi^(-n/2) (kappa0/kappa)^(1/2) psi_p^(nu/2) s_p^(-(nu + n)/2)
    prod_{i < p} (psi_i / s_i)^(1/2),                                nu = delta + p,

and the product over the columns is the marginal likelihood of the rows. s_p = R_pp^2, where R is
the triangular factor, R'R = Psi = scale0 + S + kappa0 n/kappa (m - mu0)(m - mu0)'. It is made of
the rows themselves, since squares would lose half of the digits: of rows (1, x - mu0), one for each
of the cluster's and those of the prior, (kappa0^(1/2), 0) and (0, psi_p^(1/2) at p). The factor's
first row is then kappa^(1/2) (1, m_n - mu0), m_n the posterior mean, and R is the rest.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import gammaincinv, gammaln, ndtri

from ._forms import unpack
from ._normal import Normal

FARTHEST = 1e15  # fill, in cell units: its square leaves room
LEAST_LEFT = 1e-3  # of a pivot, where rows are taken out of a factor: less would cost digits


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
    asked : sequence of int, default=None
        Columns that are to be scored; None: all of them.
    """

    growth = {"nu0": 1.0}  # of the hyperparameters with each further column

    def __init__(self, cells, labels, hyper, gaps=None, asked=None):
        self.labels, self.hyper, self.gaps = labels, hyper, gaps
        self.asked = range(len(hyper)) if asked is None else asked
        self.cells, (self.mu0, kappa0, delta, self.psi) = cells, np.transpose(hyper)
        self.kappa0, self.delta = kappa0[0], delta[0]
        self.order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels)
        self.sizes = sizes[sizes > 0]
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.cluster = np.repeat(np.arange(len(self.sizes)), self.sizes)
        self.forget()

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

    def forget(self):
        """Cells have changed: nothing is known of them any more."""
        self.held = self.known = None

    def hold(self, columns):
        """Let these be the columns that the view holds.

        Of each column that means s after the others held: of one that is not, what is left of it
        below their rows of R; of one that is, 1 / (Psi^-1)_cc. The product of the others' s is what
        is left of the determinant."""
        self.held, d = list(columns), len(columns)
        rest = [c for c in self.asked if c not in self.held]
        whole, psi = self._factors([*self.held, *rest]), self.psi[[*self.held, *rest]]
        self.centres = whole[:, 0, 1 : d + 1] / whole[:, 0, :1]  # m_n - mu0
        self.rest, self.triangles, self.white = rest, whole, None
        factors, squares = whole[:, 1:, 1:], np.empty((len(whole), len(psi)))
        self.factors = factors[:, :d, :d]
        pivots, least = np.einsum("kii->ki", self.factors), np.sqrt(psi[:d])
        np.copyto(pivots, least, where=np.abs(pivots) < least)  # which are not less
        squares[:, :d] = 1.0 / (np.linalg.inv(self.factors) ** 2).sum(axis=2)
        squares[:, d:] = (factors[:, d:, d:] ** 2).sum(axis=1)
        squares, n_others = np.maximum(squares, psi), d - (np.arange(len(psi)) < d)
        logs = self._log_factors(self.sizes[:, None], n_others, psi, squares).sum(axis=0)
        logs += np.log(least / np.abs(pivots)).sum()
        logs[:d] -= 0.5 * np.log(psi / squares).sum(axis=0)[:d]
        self.scores = np.full(len(self.psi), np.nan)
        self.scores[[*self.held, *rest]] = logs

    def score(self, column):
        """Log marginal likelihood of a column's cells, without fills, given the others held."""
        if self.gaps is None or not self.gaps[:, column].any():
            return self.scores[column]
        found = None if column in self.held else self._without_gaps(column)
        return self._seen(column).scores[-1] if found is None else found

    def together(self, columns):
        """Log marginal likelihood of columns together."""
        pivots = np.einsum("kii->ki", self._factors(columns))[:, 1:]
        return self._chain(self.sizes, columns, pivots).sum()

    def _without_gaps(self, column):
        """`score` of a column that is not held, by the factors of all rows with fills for cells, of
        which rows without a cell are taken out; None where digits would be lost.

        With L L' = 1 - sum a a', a = R^-T (1, x - mu0) of these rows, what is left is L'R, whose
        pivots are the products of theirs."""
        d, at = len(self.held), len(self.held) + 1 + self.rest.index(column)
        above, below = self.triangles[:, : d + 1, at], self.triangles[:, d + 1 :, at]
        roots, sizes = np.sqrt((below**2).sum(axis=1)), self.sizes.copy()
        if self.white is None:
            self.white = self._whitened(self.triangles[:, : d + 1, : d + 1])
        out = np.flatnonzero(self.gaps[self.order, column])
        of, white = self.cluster[out], self.white[out]
        own = self.cells[self.order[out], column] - self.mu0[column]
        own = (own - (white * above[of]).sum(axis=1)) / roots[of]
        white = np.column_stack([white, own])
        left = np.tile(np.eye(d + 2), (len(sizes), 1, 1))
        ends = np.r_[np.flatnonzero(np.diff(of, prepend=-1)), len(of)]
        for start, stop in zip(ends, ends[1:]):
            left[of[start]] -= white[start:stop].T @ white[start:stop]
            sizes[of[start]] -= stop - start
        try:
            shares = np.einsum("kii->ki", np.linalg.cholesky(left))
        except np.linalg.LinAlgError:
            return None
        if shares.min(initial=1.0) < LEAST_LEFT:
            return None
        pivots = np.einsum("kii->ki", self.triangles)[:, 1 : d + 1]
        pivots = shares[:, 1:] * np.column_stack([pivots, roots])
        return self._chain(sizes, [*self.held, column], pivots)[-1]

    def _whitened(self, factors):
        """R^-T (1, x - mu0) of each row, in the order of the clusters: (n, d + 1)."""
        rows, inverses = self._rows(self.held), np.linalg.inv(factors)
        for k, (start, n) in enumerate(zip(self.starts, self.sizes)):
            rows[start : start + n] = rows[start : start + n] @ inverses[k]
        return rows

    def draw(self, column, generator):
        """Draw a column's fills given its other cells and the others held: (n_gaps,).

        In each cluster the regression's coefficients and variance are drawn once."""
        others, gaps = [c for c in self.held if c != column], np.flatnonzero(self.gaps[:, column])
        seen, out = self._seen(column), np.empty(len(gaps))
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

    def _seen(self, column):
        """The columns held and this one, which comes last, in the rows that have a cell in it."""
        rows, columns = ~self.gaps[:, column], [*(c for c in self.held if c != column), column]
        seen = NormalColumns(
            self.cells[np.ix_(rows, columns)], self.labels[rows], self.hyper[columns]
        )
        seen.hold(range(len(columns)))
        return seen

    def _of_label(self, label):
        """Posterior mean less mu0, R and the rows of a cluster, which may have none."""
        at = np.flatnonzero(np.unique(self.labels) == label)
        if not len(at):
            return np.zeros(len(self.held)), np.diag(np.sqrt(self.psi[self.held])), 0
        return self.centres[at[0]], self.factors[at[0]], self.sizes[at[0]]

    def _factors(self, columns):
        """The triangular factor of the rows (1, these columns) of each cluster, those of the prior
        among them: (n_clusters, d + 1, d + 1). That of all columns known stands for the rows,
        whatever their number."""
        if self.known is None or not set(columns) <= set(self.known):
            self.known = sorted({*columns, *self.asked})
            self.whole = self._of_rows(self.known)
        at = np.r_[0, 1 + np.searchsorted(self.known, columns)].astype(np.int64)
        return np.linalg.qr(self.whole[:, :, at], mode="r")

    def _of_rows(self, columns):
        """The same, of the rows themselves."""
        d = len(columns)
        prior = np.diag(np.sqrt(np.r_[self.kappa0, self.psi[columns]]))
        rows, out = self._rows(columns), np.empty((len(self.sizes), d + 1, d + 1))
        for k, (start, n) in enumerate(zip(self.starts, self.sizes)):
            own = np.vstack([prior, rows[start : start + n]])
            out[k] = np.linalg.qr(own, mode="raw")[0][:, : d + 1].T  # and more below it
        return np.triu(out)

    def _rows(self, columns):
        """(1, x - mu0) of each row, in the order of the clusters: (n, d + 1)."""
        rows = np.ones((len(self.order), len(columns) + 1))
        rows[:, 1:] = self.cells[np.ix_(self.order, columns)] - self.mu0[columns]
        return rows

    def _chain(self, sizes, columns, pivots):
        """The logarithm of each column's factor of the product above, summed over clusters of these
        sizes, from the diagonals of R: (d,)."""
        psi = self.psi[columns]
        squares = np.maximum(pivots**2, psi)  # which are not less, but by rounding
        logs = self._log_factors(sizes[:, None], np.arange(len(columns)), psi, squares)
        ratios = 0.5 * np.log(psi / squares)
        return (logs + np.cumsum(ratios, axis=1) - ratios).sum(axis=0)

    def _log_factors(self, n, p, psi, squares):
        """Log of column p's factor of the product above, without the last one."""
        nu = self.delta + p
        logs = gammaln(0.5 * (nu + n)) - gammaln(0.5 * nu) - 0.5 * n * np.log(np.pi)
        logs += 0.5 * np.log(self.kappa0 / (self.kappa0 + n))
        return logs + 0.5 * nu * np.log(psi) - 0.5 * (nu + n) * np.log(squares)


def _uniforms(generator, size=None):
    """Uniform numbers above 0 and below 1."""
    return generator.random(size) + 2.0**-54
