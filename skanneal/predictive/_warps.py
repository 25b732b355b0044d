r"""How the numbers of one component differ from its family's law: a map for each column.

The maps of _margins.py give a column the margin of the data. Within a component its numbers may
still be skewed, end somewhere, or pile up where the family has a smooth law. So with
``margins="data"`` a component *warps* its law: its rows have the law of rows y' of the family, cell
by cell y = h^-1(y'), with a map h for each column of numbers. What binds the columns is that of the
family, as in a Gaussian copula, and the whole stays one law,

    p_k(y) = p_family(h_k(y)) prod_j h_kj'(y_j).

Let A be the family's law of the column in the component, a Student's t, and u = A(y) the ranks of
the component's training cells. If the family is right they are uniform. Their law is estimated by
Polya trees (Lavine 1992, "Some aspects of Polya tree distributions for statistical modelling",
Annals of Statistics 20): (0, 1) is halved LEVELS times; of n ranks in an interval of level l - 1,
n_1 of them in its left half, the left half has in the mean the share

    (c l^2 + n_1) / (2 c l^2 + n),

since the shares have beta laws of parameters c l^2, with which the trees' laws have densities. How
smooth these are, c, is not known: trees of STRENGTHS are averaged by their evidence, in each
component and column. So a component of few rows keeps its family's law, and so does a new one. h
takes the quantiles of A at the ends of the 2^LEVELS intervals to those with the estimated shares
below; it is straight between them, and of slope 1 beyond. Atoms, levels and counts stay as they
are: their laws are free anyway.

One strength for all, c = 1, was turned down: where the family is right, new rows were then less
probable than without maps.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from scipy.special import betaln, softmax, stdtr, stdtrit

LEVELS = 6
BINS = 2**LEVELS
STRENGTHS = 0.5, 2.0, 8.0, 32.0  # c, each as probable as the others
MOST_DEGREES = 1e6  # of Student's t; more are a normal law


# ---- what training cells say ---------------------------------------------------------------------


def rank_counts(view, cells, labels):
    """How many training cells of each component have ranks in each interval.

    Parameters
    ----------
    view : View
        Of a draw whose components are numbered 0 .. K - 1.
    cells : dict of int to float64 array of shape (n,)
        By column, on the axis of the mixture; NaN where missing or at an atom.
    labels : int array of shape (n,)
        The component of each row.

    Returns
    -------
    counts : dict of int to int32 array of shape (K, BINS)
        Of the columns of the view whose law is Student's.
    """
    counts = {}
    for place in sorted(cells.keys() & view.features.keys()):
        law = view.student_law(place)
        if law is None:
            continue
        known = np.flatnonzero(~np.isnan(cells[place]))
        own = labels[known]
        centre, root, degrees = (of[own] for of in _standard(law))
        ranks = stdtr(degrees, (cells[place][known] - centre) / root)
        bins = np.minimum((ranks * BINS).astype(np.int64), BINS - 1)
        counts[place] = np.zeros((len(view.slots) - 1, BINS), dtype=np.int32)
        np.add.at(counts[place], (own, bins), 1)
    return counts


def shares(counts):
    """The probability of each interval, given how many ranks are in it: (K, BINS)."""
    logs, trees = [], []
    for strength in STRENGTHS:
        log_evidence, tree = np.zeros(len(counts)), np.ones((len(counts), 1))
        for level in range(1, LEVELS + 1):
            n = counts.reshape(len(counts), 2 ** (level - 1), 2, -1).sum(axis=3)
            a = strength * level**2
            ratios = betaln(*np.moveaxis(a + n, 2, 0)) - betaln(a, a) + np.log(2.0) * n.sum(axis=2)
            log_evidence += ratios.sum(axis=1)
            halves = (a + n) / (2.0 * a + n.sum(axis=2, keepdims=True))
            tree = (tree[:, :, None] * halves).reshape(len(counts), -1)
        logs.append(log_evidence)
        trees.append(tree)
    weights = softmax(logs, axis=0)
    return (weights[:, :, None] * trees).sum(axis=0)


def _standard(law):
    """Centres, scales and degrees of freedom that SciPy's functions take."""
    centre, square, degrees = law
    return centre, np.sqrt(square), np.minimum(degrees, MOST_DEGREES)


# ---- maps ----------------------------------------------------------------------------------------


class Warps:
    """The maps h of the components of a view.

    Parameters
    ----------
    view : View
    counts : dict of int to int32 array of shape (K, BINS)
        As `rank_counts` gives them.

    Attributes
    ----------
    lines : dict of int to Lines
        By column, from cells of the mixture to those of the family.
    """

    def __init__(self, view, counts):
        self.lines = {}
        edges = np.arange(1, BINS) / BINS
        for place, of in counts.items():
            centre, root, degrees = (a[:-1, None] for a in _standard(view.student_law(place)))
            estimated = shares(of)
            below = np.cumsum(estimated, axis=1)[:, :-1]
            above = np.cumsum(estimated[:, ::-1], axis=1)[:, -2::-1]
            low = below < 0.5  # from the nearer end
            warped = np.where(low, 1.0, -1.0) * stdtrit(degrees, np.where(low, below, above))
            self.lines[place] = Lines(
                stdtrit(degrees, edges) * root + centre, warped * root + centre
            )

    def from_family(self, place, at, cells):
        """Cells of the mixture; `at` is the component of each, K or more of a new one."""
        cells, lines = np.array(cells, dtype=np.float64), self.lines[place]
        for k in np.unique(at[at < len(lines.x)]):
            cells[..., at == k] = lines.inverse(k, cells[..., at == k])
        return cells


class Lines:
    """For each component an increasing line through points, of slope 1 beyond them.

    Parameters
    ----------
    x, y : float64 array of shape (K, n_points)
        Ascending.
    """

    def __init__(self, x, y):
        ends, last = np.ones((len(x), 1)), np.maximum(np.arange(x.shape[1] + 1) - 1, 0)
        self.x, self.y = x, y
        self._slopes = np.hstack([ends, np.diff(y) / np.diff(x), ends])
        self._starts = y[:, last] - self._slopes * x[:, last]
        self._log_slopes = np.log(self._slopes)

    def __call__(self, k, values):
        """Values of component k's line, and the log of its slope there."""
        at = np.searchsorted(self.x[k], values)
        moved = self._starts[k].take(at) + self._slopes[k].take(at) * values
        return moved, self._log_slopes[k].take(at)

    def inverse(self, k, values):
        """Where component k's line has these values."""
        at = np.searchsorted(self.y[k], values)
        return (values - self._starts[k].take(at)) / self._slopes[k].take(at)
