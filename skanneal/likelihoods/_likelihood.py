"""The contract of a likelihood: the density of a row given the parameters of its cluster.

A sampler that does not integrate these parameters out holds an atom for every cluster: a value
theta, drawn from the base measure H. It asks the likelihood for everything that depends on what
rows and atoms are; the sampler itself only slices both along their first axis.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np


class Likelihood:
    """A likelihood f(row | theta) with a base measure H over theta: subclass it to write your own.

    theta is a float64 array whose first axis runs over atoms, each of which has the parameters of
    one cluster. You decide about its other axes, and about what an encoded row is. Every method
    that draws gets a `numpy.random.Generator` and must take all its random numbers from it. The
    values that methods return are checked: their shapes, their types, and that none is NaN.

    A subclass must define `log_lik`, `statistics`, `draw`, `prior_draw` and `log_prior`. The
    algorithms that propose atoms from the data ("importance", "accelerated") also need
    `proposal_draw` and `proposal_logpdf`. If rows are not rows of a float64 array, define `encode`.
    The object is pickled and sent to the workers, so keep it small.

    Attributes
    ----------
    conjugate : bool
        Whether the atoms can be integrated out; this is true only for a `ConjugateLikelihood`.

    Examples
    --------
    Waiting times, x ~ Exponential(rate), with a log-normal prior on the rate, which is not
    conjugate; theta is the logarithm of the rate.

    >>> import numpy as np
    >>> from skanneal.likelihoods import Likelihood
    >>> class WaitingTimes(Likelihood):
    ...     spread = 2.0   # theta ~ N(0, spread^2)
    ...
    ...     def log_lik(self, rows, theta, out):
    ...         out[:] = theta - rows * np.exp(theta)
    ...
    ...     def statistics(self, rows, labels, n_atoms):
    ...         kept = labels >= 0
    ...         n = np.bincount(labels[kept], minlength=n_atoms)
    ...         total = np.bincount(labels[kept], rows[kept, 0], minlength=n_atoms)
    ...         return np.stack([n, total], axis=1)
    ...
    ...     def draw(self, statistics, theta, rng):   # a Metropolis step for every atom
    ...         n, total = statistics.T
    ...         def log_density(t):
    ...             return n * t - total * np.exp(t) + self.log_prior(t)
    ...         step = theta + rng.standard_normal(len(theta)) / np.sqrt(n + self.spread**-2)
    ...         accept = np.log(rng.random(len(theta))) < log_density(step) - log_density(theta)
    ...         return np.where(accept, step, theta)
    ...
    ...     def prior_draw(self, n, rng):
    ...         return self.spread * rng.standard_normal(n)
    ...
    ...     def log_prior(self, theta):
    ...         return -0.5 * (theta / self.spread) ** 2 - np.log(self.spread * np.sqrt(2 * np.pi))
    ...
    ...     def proposal_draw(self, rows, rng):   # around the row's own rate, within a factor of e
    ...         return rng.standard_normal(len(rows)) - np.log(rows[:, 0])
    ...
    ...     def proposal_logpdf(self, theta, row):
    ...         return -0.5 * (theta + np.log(row[0, 0])) ** 2 - 0.5 * np.log(2 * np.pi)
    >>> likelihood, rng = WaitingTimes(), np.random.default_rng(0)
    >>> rows = likelihood.encode([[0.2], [1.0], [3.0]])
    >>> theta = likelihood.prior_draw(2, rng)
    >>> out = np.empty((3, 2), dtype=np.float32)
    >>> likelihood.log_lik(rows, theta, out)
    >>> statistics = likelihood.statistics(rows, np.array([0, 1, -1], dtype=np.int32), 2)
    >>> statistics.tolist()
    [[1.0, 0.2], [1.0, 1.0]]
    >>> likelihood.draw(statistics, theta, rng).shape
    (2,)
    """

    conjugate = False

    def encode(self, X):
        """Convert rows to the form that the other methods take, once for each part of the data.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_columns)

        Returns
        -------
        rows : object with len(), [start:stop] and [int array]
            By default X as a float64 array.

        Raises
        ------
        ValueError
            If this likelihood cannot describe a row.
        """
        return np.asarray(X, dtype=np.float64)

    def prepare(self, theta):
        """Convert theta to what `log_lik` is given; called once for many blocks of rows.

        Parameters
        ----------
        theta : float64 array of shape (n_atoms, ...)

        Returns
        -------
        object
            By default theta itself.
        """
        return theta

    def log_lik(self, rows, theta, out):
        """Log density of rows under all atoms.

        Parameters
        ----------
        rows : encoded rows
        theta : object
            What `prepare` returned.
        out : float32 array of shape (len(rows), n_atoms), written
            -inf where a row is impossible; never NaN or inf.
        """
        raise NotImplementedError(f"{type(self).__name__} has no log_lik")

    def score(self, rows, prepared, n_atoms, out):
        """`log_lik` into the first columns of wider lines.

        Parameters
        ----------
        rows : encoded rows
        prepared : object
            What `prepare` returned for n_atoms atoms.
        n_atoms : int
        out : float32 or float64 array of shape (len(rows), at least n_atoms), written
            Columns beyond the atoms may be written too, with finite numbers.
        """
        scores = np.empty((len(rows), n_atoms), np.float32)
        self.log_lik(rows, prepared, scores)
        out[:, :n_atoms] = scores

    def statistics(self, rows, labels, n_atoms):
        """Summarise the rows of each atom, such that the summaries of two parts of the data add up.

        Parameters
        ----------
        rows : encoded rows
        labels : int32 array of shape (len(rows),)
            The atom of each row; rows with -1 are not counted.
        n_atoms : int

        Returns
        -------
        ndarray of shape (n_atoms, ...)
            float64 or int64.
        """
        raise NotImplementedError(f"{type(self).__name__} has no statistics")

    def draw(self, statistics, theta, rng):
        """New atoms: draws from the posterior, or updates of theta that leave it invariant.

        Parameters
        ----------
        statistics : ndarray of shape (n_atoms, ...)
            Of each atom's rows.
        theta : float64 array of shape (n_atoms, ...)
            As they are.
        rng : numpy.random.Generator

        Returns
        -------
        float64 array of the shape of theta
        """
        raise NotImplementedError(f"{type(self).__name__} has no draw")

    def prior_draw(self, n, rng):
        """n atoms from H: float64 array of shape (n, ...)."""
        raise NotImplementedError(f"{type(self).__name__} has no prior_draw")

    def log_prior(self, theta):
        """log H of each atom, normalised: float64 array of shape (n_atoms,)."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prior")

    def proposal_draw(self, rows, rng):
        """Draw one atom for each row i, from a density q_i that favours atoms near the row.

        q_i must be positive wherever the row's likelihood times H is.

        Parameters
        ----------
        rows : encoded rows
        rng : numpy.random.Generator

        Returns
        -------
        float64 array of shape (len(rows), ...)
        """
        raise NotImplementedError(f"{type(self).__name__} has no proposal_draw")

    def proposal_logpdf(self, theta, row):
        """log q of one row at each atom, in the coordinates in which `log_prior` is a density.

        Parameters
        ----------
        theta : float64 array of shape (n_atoms, ...)
        row : encoded rows, one

        Returns
        -------
        float64 array of shape (n_atoms,)
        """
        raise NotImplementedError(f"{type(self).__name__} has no proposal_logpdf")

    @property
    def proposes(self):
        """Whether it has the two methods of a proposal."""
        cls = type(self)
        return all(
            getattr(cls, name) is not getattr(Likelihood, name)
            for name in ("proposal_draw", "proposal_logpdf")
        )

    def update(self, theta, statistics, sizes, rng):
        """Move the parameters of H, in place, leaving their posterior given theta invariant.

        `draw` is called directly afterwards. So if `draw` draws from the posterior, whatever theta
        was, an update may also integrate the atoms out and ignore theta.

        Parameters
        ----------
        theta : float64 array of shape (n_atoms, ...)
        statistics : ndarray of shape (n_atoms, ...)
            Of each atom's rows.
        sizes : int64 array of shape (n_atoms,)
            Number of each atom's rows.
        rng : numpy.random.Generator
        """

    def state(self):
        """The parameters that `update` moves: dict of name to array, by default none."""
        return {}

    def set_state(self, state):
        """Take over what `state` returned."""

    def features(self, theta):
        """The atoms in the form that is shown to the user; by default theta."""
        return theta

    def log_jacobian(self, n_rows):
        """The term that brings a log density of n_rows encoded rows into the user's units."""
        return 0.0
