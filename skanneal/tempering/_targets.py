"""Targets: what the tempered samplers draw from, given by a log prior and a log likelihood.

A target is a description: data, prior, nothing that changes while chains run. It is shared by all
chains and must pickle. A chain calls ``target.bind(order, sizes)`` and gets an object of its own
(`skanneal.tempering._bound.BoundTarget`, a compiled class) that knows the order of the rows and
the sizes of the levels and evaluates them without the GIL.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

from numpy.typing import ArrayLike

from ._bound import BoundPython
from ._given import as_numbers

__all__ = ["Target"]


class Target:
    """A posterior density over a vector of unconstrained parameters; base of all targets.

    A subclass in plain Python sets `n_parameters` and `n_rows` and defines `log_prior` and
    `log_likelihood`. It also defines `draw_prior` if chains start from the prior, or if the hottest
    level is the prior and is to be drawn exactly. A compiled target overrides `bind` instead of
    `log_likelihood` (see `skanneal/tempering/_bound.pxd`).

    Parameters are unconstrained reals: for a positive parameter use its logarithm, and add the
    logarithm of the Jacobian to `log_prior`.

    Attributes
    ----------
    n_parameters : int
        Length of theta.
    n_rows : int
        Number of rows of data, at least 1; each level of the ladder holds the first rows in a
        random order.
    independent : bool
        Whether the log likelihood is a sum over rows. One evaluation then gives all hotter levels
        too; otherwise each of them is evaluated separately.
    has_gradient : bool
        Whether gradients are given, as Hamiltonian Monte Carlo requires.
    parameter_names : list of str or None
        Used in labels only.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.tempering import Target, sample
    >>> class Coin(Target):
    ...     n_parameters = 1
    ...
    ...     def __init__(self, tosses):
    ...         self.tosses, self.n_rows = np.asarray(tosses), len(tosses)
    ...
    ...     def log_prior(self, theta, gradient=False):
    ...         return -0.5 * theta[0] ** 2, None
    ...
    ...     def log_likelihood(self, theta, rows, gradient=False):
    ...         heads = self.tosses[rows].sum()
    ...         return heads * theta[0] - len(rows) * np.logaddexp(0, theta[0]), None
    ...
    ...     def draw_prior(self, generator):
    ...         return generator.standard_normal(1)
    >>> result = sample(Coin([1, 1, 0, 1, 1, 1]), method="stt", inner="mh", random_state=0)
    >>> result.draws.shape
    (4, 250, 1)
    """

    independent = True
    has_gradient = False
    parameter_names = None

    @property
    def draws_prior(self) -> Any:
        """Whether `draw_prior` is defined."""
        return type(self).draw_prior is not Target.draw_prior

    def log_prior(self, theta: ArrayLike, gradient: Any = False) -> Any:
        """Log prior density, up to a constant; it must be normalised for the evidence.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,)
            Not to be changed or kept.
        gradient : bool
            Whether the gradient is wanted.

        Returns
        -------
        value : float
            ``-inf`` outside the support.
        gradient : ndarray of shape (n_parameters,) or None
        """
        raise NotImplementedError(f"{type(self).__name__} must define log_prior.")

    def log_likelihood(self, theta: ArrayLike, rows: Any, gradient: Any = False) -> Any:
        """Log likelihood of some rows.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,)
            Not to be changed or kept.
        rows : ndarray of int64
            Positions in the data, at least one, in no order.
        gradient : bool
            Whether the gradient is wanted.

        Returns
        -------
        value : float
            NaN counts as a rejection and is reported.
        gradient : ndarray of shape (n_parameters,) or None
        """
        raise NotImplementedError(f"{type(self).__name__} must define log_likelihood.")

    def draw_prior(self, generator: Any) -> Any:
        """Draw from the prior: where chains start, and the hottest level if it is the prior.

        Parameters
        ----------
        generator : numpy.random.Generator
            The chain's.

        Returns
        -------
        theta : ndarray of shape (n_parameters,)
        """
        raise NotImplementedError(f"{type(self).__name__} does not define draw_prior.")

    def bind(self, order: Any, sizes: Any) -> Any:
        """Return the evaluator of one chain.

        Parameters
        ----------
        order : ndarray of int64 of shape (n_rows,)
            A permutation of the rows.
        sizes : ndarray of int64 of shape (n_levels,)
            ``sizes[0] == n_rows``, strictly decreasing, all at least 1: level m holds the rows
            ``order[:sizes[m]]``.

        Returns
        -------
        bound : BoundTarget
        """
        return BoundPython(self, order, sizes)


def prior_draw(target, generator):
    """A draw from a target's prior, of the right length; what a user's `draw_prior` may get wrong.

    Parameters
    ----------
    target : Target
    generator : numpy.random.Generator

    Returns
    -------
    theta : ndarray of shape (n_parameters,)
    """
    owner = type(target).__name__
    drawn = target.draw_prior(generator)
    theta = as_numbers(f"what draw_prior of {owner} returns", drawn).ravel()
    if len(theta) != target.n_parameters:
        raise ValueError(
            f"draw_prior of {owner} returned {len(theta)} numbers for {target.n_parameters} "
            f"parameters."
        )
    return theta
