r"""Components whose rows are normal, with a regression on known values that all of them share.

A row of component k, with the regressors z, is

    y ~ N(mu_k + B'z, Sigma_k),    mu_k ~ N(mu0, Sigma_k / kappa0),    Sigma_k ~ IW(nu0, Psi0),
    B_lj ~ N(0, 1 / precision_lj).

`Components` are one draw of mu, B and Sigma. They answer for rows with gaps: what is missing is
normal given the rest of the row, with the inverse P_MM^{-1} of its part of P_k = Sigma_k^{-1} as
covariance. `drawn` makes a step of a Gibbs sampler from whole rows and their components:

    (mu, B) | Sigma          all together, so that a regressor which divides the rows as components
                             do slows nothing down
    Sigma_k | mu, B          ~ IW(nu0 + n_k + 1, Psi0 + sum_i e_i e_i' + kappa0 (mu_k - mu0)(...)')

with e_i = y_i - mu_k - B'z_i. The first is normal with a precision A that no matrix need hold: if
h has the mean A E and the covariance A, the solution x of A x = h is the draw. Conjugate gradients
find it.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import softmax

from ._parameters import draw_roots

CLOSE = 1e-6  # of the right-hand side, what conjugate gradients may leave
BLOCK_BYTES = 1 << 25  # of the matrices of rows with gaps that are held at a time


class Prior(NamedTuple):
    """Hyperparameters.

    Attributes
    ----------
    mu0 : float64 array of shape (d,)
    kappa0, nu0 : float
    scale0 : float64 array of shape (d, d)
        Psi0.
    precisions : float64 array of shape (q, d)
        Of the elements of B.
    """

    mu0: np.ndarray
    kappa0: float
    nu0: float
    scale0: np.ndarray
    precisions: np.ndarray


class Components(NamedTuple):
    """Parameters of K components.

    Attributes
    ----------
    means : float64 array of shape (K, d)
    slopes : float64 array of shape (q, d)
        B.
    roots : float64 array of shape (K, d, d)
        W_k, with W_k'W_k the inverse of Sigma_k.
    """

    means: np.ndarray
    slopes: np.ndarray
    roots: np.ndarray

    @classmethod
    def near(cls, prior, whole, regressors, labels):
        """What whole rows in known components suggest, without slopes: where a sampler starts."""
        means, roots, slopes = [], [], np.zeros((regressors.shape[1], whole.shape[1]))
        for k in range(labels.max() + 1):
            own = whole[labels == k]
            mean = (prior.kappa0 * prior.mu0 + own.sum(axis=0)) / (prior.kappa0 + len(own))
            means.append(mean)
            squares, degrees = _posterior(prior, own, mean)
            roots.append(np.sqrt(degrees) * np.linalg.inv(np.linalg.cholesky(squares)))
        return cls(np.array(means), slopes, np.array(roots))

    def shares(self, cells, regressors, log_shares):
        """The probability of each component, given what is known of the rows: (n, K).

        Parameters
        ----------
        cells : float64 array of shape (n, d)
            NaN where they are missing.
        regressors : float64 array of shape (n, q)
        log_shares : float64 array of shape (n, K)
            Log probabilities before the cells are looked at, up to a constant of the row.
        """
        rest, logs = cells - regressors @ self.slopes, np.array(log_shares)
        parts = _by_number_of_gaps(np.isnan(cells))
        for k, (mean, root) in enumerate(zip(self.means, self.roots)):
            away = np.nan_to_num(rest - mean)
            logs[:, k] += np.log(np.diagonal(root)).sum() - 0.5 * ((away @ root.T) ** 2).sum(axis=1)
            for rows, gaps in parts:
                lower, pull = _of_gaps(root, away[rows], gaps)
                logs[rows, k] += 0.5 * (pull**2).sum(axis=1)
                logs[rows, k] -= np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
        return softmax(logs, axis=1)

    def filled(self, cells, regressors, labels, generator=None):
        """Rows with values for their gaps, given the components: (n, d).

        Parameters
        ----------
        cells, regressors
            As for `shares`.
        labels : int array of shape (n,)
        generator : numpy.random.Generator, default=None
            Draws the values; without it they are the expected ones.
        """
        centres, whole = regressors @ self.slopes + self.means[labels], np.array(cells)
        for rows, gaps in _by_number_of_gaps(np.isnan(cells)):
            away = np.nan_to_num(cells[rows] - centres[rows])
            for k in np.unique(labels[rows]):
                own = labels[rows] == k
                lower, pull = _of_gaps(self.roots[k], away[own], gaps[own])
                noise = 0.0 if generator is None else generator.standard_normal(pull.shape)
                upper = np.swapaxes(lower, 1, 2)
                step = np.linalg.solve(upper, (noise - pull)[:, :, None])[:, :, 0]
                at = rows[own][:, None], gaps[own]
                whole[at] = centres[at] + step
        return whole

    def expected(self, cells, regressors, shares):
        """The expected rows, components having these shares: (n, d)."""
        of_all = (
            share[:, None] * self.filled(cells, regressors, np.full(len(cells), k))
            for k, share in enumerate(shares.T)
        )
        return sum(of_all)

    def drawn(self, prior, whole, regressors, labels, generator):
        """Components one step of the sampler later.

        Parameters
        ----------
        prior : Prior
        whole : float64 array of shape (n, d)
        regressors : float64 array of shape (n, q)
        labels : int array of shape (n,)
        generator : numpy.random.Generator
        """
        means, slopes = self._drawn_means(prior, whole, regressors, labels, generator)
        rest, factors, degrees = whole - regressors @ slopes, [], []
        for k, mean in enumerate(means):
            squares, of_component = _posterior(prior, rest[labels == k], mean)
            factors.append(np.linalg.inv(np.linalg.cholesky(squares)))
            degrees.append(of_component)
        return Components(
            means, slopes, draw_roots(np.array(degrees), np.array(factors), generator)
        )

    def _drawn_means(self, prior, whole, regressors, labels, generator):
        """The means and the slopes, given the covariances."""
        n_components, d = self.means.shape
        inverses = np.swapaxes(self.roots, 1, 2) @ self.roots
        products, right = [], np.zeros((n_components + regressors.shape[1], d))
        for k, root in enumerate(self.roots):
            own = labels == k
            x = np.column_stack([np.ones(np.count_nonzero(own)), regressors[own]])
            noisy = whole[own] @ root.T + generator.standard_normal((len(x), d))
            pull = x.T @ (noisy @ root)
            at_centre = prior.kappa0 * root @ prior.mu0
            at_centre += np.sqrt(prior.kappa0) * generator.standard_normal(d)
            right[k] += pull[0] + at_centre @ root
            right[n_components:] += pull[1:]
            products.append(x.T @ x)
            products[k][0, 0] += prior.kappa0
        normal = generator.standard_normal(prior.precisions.shape)
        right[n_components:] += np.sqrt(prior.precisions) * normal

        def multiplied(flat):
            """A times the means and slopes, which are flat."""
            of = flat.reshape(right.shape)
            out = np.zeros_like(of)
            out[n_components:] = prior.precisions * of[n_components:]
            for k, (product, inverse) in enumerate(zip(products, inverses)):
                own = product @ np.vstack([of[k], of[n_components:]]) @ inverse
                out[k] += own[0]
                out[n_components:] += own[1:]
            return out.ravel()

        near = _alike(products, inverses, prior.precisions)
        a, inverse_of_near = (
            LinearOperator((right.size, right.size), matvec=of, dtype=np.float64)
            for of in (multiplied, near)
        )
        start = np.vstack([self.means, self.slopes]).ravel()
        found, _ = cg(a, right.ravel(), x0=start, rtol=CLOSE, M=inverse_of_near)
        found = found.reshape(right.shape)
        return found[:n_components], found[n_components:]


def _posterior(prior, rest, mean):
    """Psi and the degrees of freedom of a component's covariance, given its mean and its rows."""
    away, off = rest - mean, mean - prior.mu0
    squares = prior.scale0 + away.T @ away + prior.kappa0 * np.outer(off, off)
    return squares, prior.nu0 + len(rest) + 1.0


def _alike(products, inverses, precisions):
    """A function that solves A x = h nearly: as if all components had one covariance."""
    n_components, d = len(products), len(inverses[0])
    sizes = np.array([product[0, 0] for product in products])
    shared = np.tensordot(sizes / sizes.sum(), inverses, axes=1)
    whole = np.zeros((n_components + len(precisions),) * 2)
    for k, product in enumerate(products):
        at = np.r_[k, n_components : len(whole)]
        whole[np.ix_(at, at)] += product
    of_prior = precisions / np.diagonal(shared)
    whole[range(n_components, len(whole)), range(n_components, len(whole))] += of_prior.mean(axis=1)
    left, right = cho_factor(whole), cho_factor(shared)

    def solved(flat):
        half = cho_solve(left, flat.reshape(-1, d))
        return cho_solve(right, half.T).T.ravel()

    return solved


def _by_number_of_gaps(missing):
    """Blocks of rows with equally many gaps, and where these are: (n_rows,), (n_rows, n_gaps)."""
    counts, parts = missing.sum(axis=1), []
    for n_gaps in np.unique(counts[counts > 0]).tolist():
        rows = np.flatnonzero(counts == n_gaps)
        step = max(1, BLOCK_BYTES // (8 * n_gaps * n_gaps))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            parts.append((some, np.nonzero(missing[some])[1].reshape(len(some), n_gaps)))
    return parts


def _of_gaps(root, away, gaps):
    """Of each row the Cholesky factor L of P_MM, and L^{-1} P_MO e_O."""
    inverse = root.T @ root
    lower = np.linalg.cholesky(inverse[gaps[:, :, None], gaps[:, None, :]])
    pull = np.take_along_axis(away @ inverse, gaps, axis=1)
    return lower, np.linalg.solve(lower, pull[:, :, None])[:, :, 0]
