"""Means, paired differences and verdicts, shared by all papers' tables.

Errors are standard errors over independent runs (chains, splits or seeds). A verdict is read off
the 95 % interval, by Student's t, of a mean or of a paired difference.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

REPRODUCED, REFUTED, UNDECIDED = "reproduced", "refuted", "undecided"


class Estimate(NamedTuple):
    """A mean over ``n`` runs with its standard error; ``n`` is None for an exact number, whose
    ``error`` is half the width of its interval."""

    mean: float
    error: float
    n: int | None

    def interval(self):
        """Lower and upper end; everything where one run says nothing of the error."""
        if self.n is None:
            half = self.error
        elif self.n < 2:
            half = math.inf
        else:
            half = float(student.ppf(0.975, self.n - 1)) * self.error
        return self.mean - half, self.mean + half

    def text(self, digits=3):
        """The mean with its error, or without one where there is none."""
        if self.n is not None and self.n < 2:
            return f"{self.mean:.{digits}f} (one run)"
        return f"{self.mean:.{digits}f}" + (f" ± {self.error:.{digits}f}" if self.error else "")


def exact(value, error=0.0):
    """A number that was computed, not drawn, with what is left to its limit as its error."""
    return Estimate(float(value), float(error), None)


def mean(values):
    """Of independent runs."""
    values = np.asarray(list(values), dtype=float)
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return Estimate(float(values.mean()), float(error), len(values))


def deviation(values):
    """Standard deviation of the raw scores of runs; not a number for one."""
    values = list(values)
    return float(np.std(values, ddof=1)) if len(values) > 1 else math.nan


def paired(ones, others):
    """Mean of ones - others over the keys (seeds, splits) that both have.

    Parameters
    ----------
    ones, others : dict of key to float
    """
    return mean([ones[key] - others[key] for key in ones if key in others])


def difference(one, other):
    """Of two independent estimates."""
    counts = [e.n for e in (one, other) if e.n is not None]
    error = math.hypot(one.error, other.error)
    return Estimate(one.mean - other.mean, error, min(counts) if counts else None)


def z_scores(scores):
    """Scores with mean zero and variance one over all runs of a data set, as Obermeyer's Figure 3.

    Parameters
    ----------
    scores : dict of key to float
    """
    values = np.array(list(scores.values()))
    return dict(zip(scores, (values - values.mean()) / values.std(), strict=True))


def is_positive(estimate):
    """Verdict on the claim that a difference is above zero."""
    low, high = estimate.interval()
    return REPRODUCED if low > 0 else REFUTED if high < 0 else UNDECIDED


def is_about(estimate, value, tolerance):
    """Verdict on the claim that a number is ``value``, up to ``tolerance``."""
    low, high = estimate.interval()
    if value - tolerance <= low and high <= value + tolerance:
        return REPRODUCED
    return REFUTED if high < value - tolerance or low > value + tolerance else UNDECIDED


def all_of(verdicts):
    """Verdict on a claim with several parts: each must hold."""
    verdicts = list(verdicts)
    for verdict in (REFUTED, UNDECIDED):
        if verdict in verdicts:
            return verdict
    return REPRODUCED if verdicts else UNDECIDED
