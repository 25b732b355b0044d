"""Multinomial rows of counts whose probabilities are a softmax of normal logits of low rank."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from threadpoolctl import threadpool_limits

from ._count_rows import CountRows
from ._draws import normals
from ._logistic import log_softmax, modes, slice_features, slice_loading
from ._product import Weights
from ._table_rows import TableLikelihood

LOG_2PI = np.log(2.0 * np.pi)
MOST_ROWS = 500  # of the table that the first loading is made from


class LogisticNormal(CountRows, TableLikelihood):
    """Rows of counts: x ~ Multinomial(X, softmax(mu)), mu ~ N(0, Lambda Lambda').

    Lambda has n_columns rows and `rank` columns, its entries are N(0, scale^2). mu has a density
    on a subspace only, so theta holds eta, mu = Lambda eta with eta ~ N(0, I): float64 of shape
    (n_atoms, rank). Densities over atoms are with respect to eta, and do not depend on
    Lambda. Nothing here is conjugate: atoms and Lambda, row by row, move by elliptical slices.

    The proposal of a row is, with probability 0.9, a normal around about the mode of the row's
    posterior, of 1.5 times its curvature's covariance, else the prior, which keeps the weights
    H / q bounded.

    Parameters
    ----------
    table : Table
        Its rows make the first Lambda: leading singular vectors of the logarithms of their shares.
    rank : int, default=16
        At most the number of columns.
    scale : float, default=1.0
        Prior standard deviation of Lambda's entries.
    n_steps : int, default=5
        Elliptical slices of each atom per draw.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.likelihoods import LIKELIHOODS
    >>> X = np.array([[9, 1, 0], [8, 0, 1], [0, 1, 9]])
    >>> likelihood = LIKELIHOODS["logistic_normal"].of(X, rank=2)
    >>> rows, rng = likelihood.encode(X), np.random.default_rng(0)
    >>> statistics = likelihood.statistics(rows, np.array([0, 0, 1], dtype=np.int32), 2)
    >>> theta = likelihood.draw(statistics, likelihood.prior_draw(2, rng), rng)
    >>> likelihood.features(theta).sum(axis=1).round(6).tolist()
    [1.0, 1.0]
    """

    PRIOR_SHARE = 0.1  # of a proposal
    SPREAD = 1.5  # of its normal part, a factor of variances

    def __init__(self, table, rank=16, scale=1.0, n_steps=5):
        super().__init__(table)
        self.rank, self.scale, self.n_steps = min(rank, table.n_columns), scale, n_steps
        self.loading = self._first_loading(table)

    def _first_loading(self, table):
        """Singular vectors, scaled so that the atoms of single rows have unit variances."""
        loading = np.zeros((table.n_columns, self.rank))
        if table.n_rows:
            at = np.unique(np.linspace(0, table.n_rows - 1, MOST_ROWS).astype(np.int64))
            counts = table.take(at).column(0).toarray() + 0.5
            logits = np.log(counts / counts.sum(axis=1, keepdims=True))
            logits -= logits.mean(axis=1, keepdims=True)
            with threadpool_limits(1, user_api="blas"):  # too small for several threads
                _, sizes, vectors = np.linalg.svd(logits, full_matrices=False)
            n = min(self.rank, len(sizes))
            loading[:, :n] = vectors[:n].T * sizes[:n] / np.sqrt(len(at))
        rest = normals(loading.shape, np.random.PCG64(0))  # what no row tells apart
        return np.where(np.abs(loading).sum(axis=0) > 0, loading, self.scale * rest)

    def prepare(self, theta):
        """The weights of the sparse product, in float32."""
        return Weights(log_softmax(theta, self.loading))

    def draw(self, statistics, theta, rng):
        """`n_steps` elliptical slices of each atom; those without rows from the prior."""
        bit_generator = rng.bit_generator
        return slice_features(statistics, theta, self.loading, self.n_steps, bit_generator)

    def total_log_lik(self, statistics, theta):
        """The sum of all rows' log likelihoods: the statistics say it all."""
        log_p, n = log_softmax(theta, self.loading), self.loading.shape[0]
        return float((statistics[:, :n] * log_p).sum() + statistics[:, n].sum())

    def prior_draw(self, n, rng):
        """Atoms from the prior."""
        return normals((n, self.rank), rng.bit_generator)

    def log_prior(self, theta):
        """Standard normal."""
        return -0.5 * (self.rank * LOG_2PI + (theta**2).sum(axis=1))

    def _modes(self, rows):
        statistics = self.statistics(rows, np.arange(len(rows), dtype=np.int32), len(rows))
        if (statistics == statistics[:1]).all():  # copies of one row, for several proposals
            return (np.repeat(a, len(rows), axis=0) for a in modes(statistics[:1], self.loading))
        return modes(statistics, self.loading)

    def proposal_draw(self, rows, rng):
        """One draw around each row's mode, or from the prior."""
        mode, factor = self._modes(rows)
        z = normals(mode.shape, rng.bit_generator)
        # L' w = z has covariance (L L')^-1
        w = np.empty_like(z)
        for a in range(self.rank - 1, -1, -1):
            known = (factor[:, a + 1 :, a] * w[:, a + 1 :]).sum(axis=1)
            w[:, a] = (z[:, a] - known) / factor[:, a, a]
        prior = rng.random(len(rows)) < self.PRIOR_SHARE
        return np.where(prior[:, None], z, mode + np.sqrt(self.SPREAD) * w)

    def proposal_logpdf(self, theta, row):
        """The density of `proposal_draw`."""
        mode, factor = self._modes(row)
        z = np.einsum("kb,ba->ka", theta - mode, factor[0]) / np.sqrt(self.SPREAD)
        log_det = np.log(np.diag(factor[0])).sum() - 0.5 * self.rank * np.log(self.SPREAD)
        near = log_det - 0.5 * (self.rank * LOG_2PI + (z**2).sum(axis=1))
        share = self.PRIOR_SHARE
        return np.logaddexp(np.log1p(-share) + near, np.log(share) + self.log_prior(theta))

    def update(self, theta, statistics, sizes, rng):
        """An elliptical slice of each row of Lambda given all atoms."""
        args = self.loading, self.scale, rng.bit_generator
        self.loading = slice_loading(statistics, theta, *args)

    def state(self):
        """Lambda."""
        return {"loading": self.loading.copy()}

    def set_state(self, state):
        self.loading = np.array(state["loading"], dtype=np.float64)

    def features(self, theta):
        """Probabilities."""
        return np.exp(log_softmax(theta, self.loading))
