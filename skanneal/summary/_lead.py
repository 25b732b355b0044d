"""By how much one model gives rows a higher density than another does, and what that decides.

The search chooses between models by rows that none of them has seen: between families of columns,
between views that a chain may go on with, between chains that ended in different places. All these
choices are made here. A lead is a mean difference of log densities, in nats per row, and its
standard error, which holds what differs between rows and what differs between chains. It is sure if
it is SURE standard errors above the least gain that matters; with several rivals, if the chance
that any of them is ahead by luck is what it is for one rival (Bonferroni).

Of models that are compared on more and more rows, a straight line through the last two leads, in
the logarithm of the rows, forecasts those to come: a model that is behind on few rows may be
catching up (van Erven, Grünwald and de Rooij 2012).
"""

# SPDX-License-Identifier: BSD-3-Clause

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

SURE = 3.0  # standard errors; chance alone is so far ahead of one rival once in 740 times


class Lead(NamedTuple):
    """A mean difference of log densities and its standard error, in nats per row."""

    mean: float
    error: float

    @classmethod
    def of(cls, differences, folds=None):
        """Return the lead that differences show.

        Parameters
        ----------
        differences : array of shape (n_rows,)
            Of the log densities of rows that both models give.
        folds : int array of shape (n_rows,) or None, default=None
            Rows of one number are judged by the same chains. What differs between chains makes the
            means of folds differ by more than rows alone would: the larger error counts.
        """
        variance = np.var(differences) / len(differences)
        if folds is not None:
            numbers, sizes = np.unique(folds, return_counts=True)
            means = [np.mean(differences[folds == number]) for number in numbers]
            if len(numbers) > 1:
                of_folds = np.average(np.square(means - np.mean(differences)), weights=sizes)
                variance = max(variance, of_folds / (len(numbers) - 1))
        return cls(float(np.mean(differences)), math.sqrt(variance))

    def __neg__(self):
        """Return the rival's lead."""
        return Lead(-self.mean, self.error)

    def forecast(self, before, doublings):
        """Return the lead after so many doublings of the rows, by a straight line.

        Parameters
        ----------
        before : Lead
            With half as many rows.
        doublings : float
            From now on.

        Examples
        --------
        >>> from skanneal.summary._lead import Lead
        >>> Lead(-1.0, 0.5).forecast(Lead(-3.0, 0.0), 2)
        Lead(mean=3.0, error=1.5)
        """
        mean = self.mean + doublings * (self.mean - before.mean)
        error = math.hypot((1.0 + doublings) * self.error, doublings * before.error)
        return Lead(mean, error)

    def is_sure(self, worth=0.0, n_rivals=1):
        """Return whether the model is ahead for sure, and by more than what matters.

        Parameters
        ----------
        worth : float
            The least gain that matters, in nats per row.
        n_rivals : int
            Of how many leads this is one.

        Examples
        --------
        >>> from skanneal.summary._lead import Lead
        >>> [Lead(0.04, 0.01).is_sure(worth) for worth in (0.0, 0.05)]
        [True, False]
        >>> Lead(0.031, 0.01).is_sure(), Lead(0.031, 0.01).is_sure(n_rivals=3)
        (True, False)
        """
        return self.mean > max(worth, errors_for(n_rivals) * self.error)

    def is_tie(self, worth=0.0):
        """Return whether the model is not ahead, or by less than what matters or one standard
        error."""
        return self.mean <= max(worth, self.error)

    def is_hopeless(self, worth=0.0, n_rivals=1):
        """Return whether the model is for sure not ahead by what matters."""
        return self.mean + errors_for(n_rivals) * self.error < worth


def errors_for(n_rivals):
    """Return the standard errors that a lead must have to be sure, as one of so many.

    Examples
    --------
    >>> from skanneal.summary._lead import errors_for
    >>> errors_for(1), round(errors_for(3), 2)
    (3.0, 3.32)
    """
    return SURE if n_rivals == 1 else -float(ndtri(ndtr(-SURE) / n_rivals))
