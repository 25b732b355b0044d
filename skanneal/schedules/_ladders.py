"""Ladders: the levels of tempered samplers, from the target down to a few rows or the prior.

A ladder is a hyperparameter object and reduces to inverse temperatures beta_0 = 1 > beta_1 > ...
Tempering by subsampling turns them into numbers of rows, round(beta N).
"""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from .._native._doc_link import DocLink


class BaseLadder(DocLink, BaseEstimator):
    """Base of the ladders: a subclass stores its parameters and writes `_betas`."""

    _parameter_constraints: dict = {"adapt": ["boolean"], "recentre": ["boolean"]}

    def inverse_temperatures(self) -> Any:
        """Return the inverse temperatures.

        Returns
        -------
        betas : ndarray of shape (n_levels,)
            From 1 down; only the last may be 0, the prior.
        """
        self._validate_params()
        return self._betas()

    def levels(self, n_rows: Any) -> Any:
        """Return the levels by subsampling; levels that round to the same size are merged.

        Parameters
        ----------
        n_rows : int
            Rows of the data, at least 1.

        Returns
        -------
        betas : ndarray of shape (n_levels,)
        sizes : ndarray of int64 of shape (n_levels,)
            Strictly decreasing from `n_rows`; 0 stands for the prior, any other is at least 1.
        """
        if not isinstance(n_rows, Integral) or n_rows < 1:
            raise ValueError(f"n_rows must be a positive integer, not {n_rows!r}.")
        betas = self.inverse_temperatures()
        sizes = np.maximum(np.rint(betas * n_rows), betas > 0).astype(np.int64)
        kept = np.r_[True, np.diff(sizes) < 0]
        return betas[kept], sizes[kept]


class GeometricLadder(BaseLadder):
    """Inverse temperatures that fall by the same factor from level to level.

    Parameters
    ----------
    n_levels : int, default=7
        Number of levels, including the target.
    beta_min : float, default=1/8
        Inverse temperature of the hottest level.
    adapt : bool, default=False
        Whether the levels in between move, during warm-up, such that neighbours reject equally
        often. They stay fixed for the draws.
    recentre : bool, default=False
        Whether levels of fewer rows are made to resemble the target during warm-up. Their rows are
        the best of many random sets; a power and a quadratic, fitted to where the chain has been,
        change their likelihoods. They are then cheap copies of the target: use two levels if the
        evaluation of the target is expensive. The draws stay exact. Only for the methods "stt" and
        "spt", and not with `adapt`, because the fit is valid for its rows only.

    Examples
    --------
    >>> from skanneal.schedules import GeometricLadder
    >>> betas, sizes = GeometricLadder().levels(512)
    >>> sizes.tolist()
    [512, 362, 256, 181, 128, 91, 64]
    >>> GeometricLadder(n_levels=4).levels(3)[1].tolist()
    [3, 2, 1]
    """

    _parameter_constraints: dict = {
        **BaseLadder._parameter_constraints,
        "n_levels": [Interval(Integral, 1, None, closed="left")],
        "beta_min": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        *,
        n_levels: int = 7,
        beta_min: float = 1 / 8,
        adapt: bool = False,
        recentre: bool = False,
    ) -> None:
        self.n_levels = n_levels
        self.beta_min = beta_min
        self.adapt = adapt
        self.recentre = recentre

    def _betas(self):
        if self.n_levels == 1:
            return np.ones(1)
        return float(self.beta_min) ** (np.arange(self.n_levels) / (self.n_levels - 1))


class CustomLadder(BaseLadder):
    """Inverse temperatures that you give.

    Parameters
    ----------
    betas : array-like of shape (n_levels,), default=(1.0, 0.5, 0.25, 0.125, 0.0)
        Strictly decreasing from 1. The last may be 0, which stands for the prior; the evidence is
        then estimated.
    adapt : bool, default=False
        As in `GeometricLadder`; the last level stays where it is.
    recentre : bool, default=False
        As in `GeometricLadder`; the last must not be 0.

    Examples
    --------
    >>> from skanneal.schedules import CustomLadder
    >>> CustomLadder(betas=[1, 0.5, 0]).levels(10)[1].tolist()
    [10, 5, 0]
    """

    _parameter_constraints: dict = {
        **BaseLadder._parameter_constraints,
        "betas": ["array-like"],
    }

    def __init__(
        self,
        *,
        betas: ArrayLike = (1.0, 0.5, 0.25, 0.125, 0.0),
        adapt: bool = False,
        recentre: bool = False,
    ) -> None:
        self.betas = betas
        self.adapt = adapt
        self.recentre = recentre

    def _betas(self):
        words = f"betas must be numbers that begin with 1, not {self.betas!r}."
        try:
            betas = np.asarray(self.betas, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(words) from error
        if betas.ndim != 1 or not len(betas) or betas[0] != 1 or not np.isfinite(betas).all():
            raise ValueError(words)
        if (np.diff(betas) >= 0).any() or betas[-1] < 0:
            raise ValueError(f"betas must fall strictly and not below 0, not {self.betas!r}.")
        return betas
