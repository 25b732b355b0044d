"""Which columns depend on one another pairwise: a guess at the views of a table.

Columns are cut into a few bins. If two columns are independent, G = 2 sum O log(O / E) over the
cells of their contingency table is nearly chi-square with df degrees of freedom (Agresti 2013,
Categorical Data Analysis, 3.2). For sets A and B of columns,

    z(A, B) = mean (G - df) / sqrt(mean 2 df),    over the pairs with one column in A and one in B,

says how sure a dependence is. It has means in place of sums, because all these pairs show the same
dependence if A and B depend on one another by chance. The two sets with the greatest z are joined,
again and again, while that z is above SURE.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

N_BINS = 5  # a column of numbers has so many bins, all equally full
MOST_LEVELS = 8  # a column of levels has at most so many bins: the last is for all rarer ones
SURE = 3.0  # the least z at which two sets are joined


def column_groups(table):
    """Return groups of columns that depend on one another.

    Parameters
    ----------
    table : Table
        Of numbers, counts and codes; a few hundred rows or more.

    Returns
    -------
    groups : list of ndarray of int
        Columns of each group of two or more.
    """
    bins = [binned(table, j) for j in range(table.n_columns)]
    return joined(*dependence(bins))


def binned(table, j):
    """Return a column's bins, 0, 1, ...; -1 where it is missing: int array of shape (n_rows,)."""
    cells, n_levels = table.column(j), int(table.n_levels[j])
    bins = np.full(table.n_rows, -1)
    if n_levels:
        present = cells < n_levels
        sizes = np.bincount(cells[present], minlength=n_levels)
        rank = np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")
        bins[present] = np.minimum(rank[cells[present]], MOST_LEVELS - 1)
        return bins
    present = ~np.isnan(cells) if cells.dtype.kind == "f" else cells < np.iinfo(cells.dtype).max
    if present.any():
        values = cells[present]
        inner = np.quantile(values, np.arange(1, N_BINS) / N_BINS)
        bins[present] = np.searchsorted(np.unique(inner), values)
    return bins


def dependence(bins):
    """Return G - df of each pair of columns, and 2 df: float arrays of shape (n_columns,) * 2.

    Parameters
    ----------
    bins : list of int array of shape (n_rows,)
        Of each column; -1 is left out, pair by pair.
    """
    n_bins = np.array([max(int(column.max(initial=-1)), 0) + 1 for column in bins])
    starts = np.cumsum(n_bins) - n_bins
    indicators = np.zeros((len(bins[0]), n_bins.sum()), dtype=np.float32)
    for start, column in zip(starts, bins):
        present = np.flatnonzero(column >= 0)
        indicators[present, start + column[present]] = 1.0
    counts = (indicators.T @ indicators).astype(np.float64)
    of_column = np.add.reduceat(counts, starts, axis=1)  # a bin's rows that the other column has
    total = np.add.reduceat(of_column, starts, axis=0)

    def summed(terms):
        return np.add.reduceat(terms, starts, axis=0)

    margins = summed(_x_log_x(of_column))
    cells = np.add.reduceat(summed(_x_log_x(counts)), starts, axis=1)
    g = 2.0 * (cells - margins - margins.T + _x_log_x(total))
    occupied = summed((of_column > 0).astype(np.float64))
    df = np.maximum(occupied - 1.0, 0.0) * np.maximum(occupied.T - 1.0, 0.0)
    return g - df, 2.0 * df


def joined(excess, variance):
    """Join columns to groups, the surest pair first; return the groups.

    Parameters
    ----------
    excess, variance : ndarray of shape (n_columns, n_columns)
        Of G, symmetric.

    Returns
    -------
    groups : list of ndarray of int
        Of two columns or more, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.chains._column_groups import joined
    >>> excess = np.array([[0.0, 9.0, 1.0], [9.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> joined(excess, np.full((3, 3), 2.0))
    [array([0, 1])]
    """
    excess, variance = excess.copy(), variance.copy()
    members, n_pairs = [[j] for j in range(len(excess))], np.ones(excess.shape)
    z = excess / np.sqrt(np.maximum(variance, 1.0))
    np.fill_diagonal(z, -np.inf)
    while z.max(initial=-np.inf) > SURE:
        a, b = divmod(int(z.argmax()), len(z))
        members[a] += members[b]
        for sums in (excess, variance, n_pairs):
            sums[a] += sums[b]
            sums[:, a] = sums[a]
        others = z[a] > -np.inf
        others[b] = False
        z[a] = z[:, b] = z[b] = -np.inf
        z[a, others] = (excess[a] / np.sqrt(np.maximum(variance[a], 1.0) * n_pairs[a]))[others]
        z[:, a] = z[a]
        members[b] = []
    return [np.array(sorted(own)) for own in members if len(own) > 1]


def _x_log_x(x):
    return x * np.log(np.maximum(x, 1.0))
