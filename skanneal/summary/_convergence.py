"""Whether the chains of a fit agree, and which of them do.

Two sorts of figures are compared with their limits. Of scalars that do not depend on how clusters
are numbered, R-hat and the effective sample size (Vehtari and others, 2021; see `r_hat`). Of
partitions, how far draws of different chains lie apart, by the variation of information (Meilă,
2007), as a multiple of how far draws lie apart that come from the two halves of one chain.

Neither sees what no chain has found: that is why the chains of a fit begin differently.

A chain by itself can only tell that it is still under way: of each scalar the two halves of its
records are compared.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

import numpy as np
from scipy.special import xlogy

from ._diagnostics import ess, r_hat
from ._labels import relabel

SCALARS = ("log_joint", "n_components", "n_views", "concentration")  # of those that there are
R_HAT = 1.1  # the most of each scalar
ESS = 5.0  # the least of each scalar, per chain
DISTANCE = 1.15  # the most of the ratio of distances
HALVES = 2.0  # standard deviations between the means of one chain's halves; a trend has 3.5
FEW_RECORDS, FEW_DRAWS = 20, 4  # per chain, below which a figure says nothing
ROUNDING = 1e-6  # nats between log joint densities that say nothing
NATS = 0.05  # of a distance between partitions, that count for nothing
APART = 3.0  # standard deviations between two chains' means, beyond which they are at odds
FAR = 1.5  # the same of the ratio of two chains' distances
COMPARED = 5  # draws of each half of a chain


def convergence(scalars: Any, partitions: Any, ranked: bool = True) -> Any:
    """Return the figures that tell whether chains agree.

    Parameters
    ----------
    scalars : dict of str to array of shape (n_chains, n_records)
        Records of the stage that the draws are from; a row may begin and end with NaN.
    partitions : list of list of (int array of shape (n_columns,), list of int array)
        For each chain and draw, the view of each column and, for each view, the clusters of some
        rows, the same for all draws.
    ranked : bool, default=True
        Whether chains are the better, the higher their log joint density is.

    Returns
    -------
    convergence : dict
        "figures": by name ("r_hat of log_joint", "ess of log_joint", ..., "distance of rows",
        "distance of columns") dicts with "value", "limit" and "agrees", which is None where the
        value is NaN since there is too little to tell; distances agree also where no chain's is
        larger by more than NATS, and have "excess", the most that any is larger by, in nats; of one
        chain also "halves of log_joint", ... "agreeing": bool array of shape (n_chains,),
        the largest set of chains of which no two are at odds, of equals that of higher log joint
        density. "converged": whether every figure agrees.
    """
    n_chains = len(partitions)
    figures, apart = {}, np.zeros((n_chains, n_chains), dtype=bool)
    for name in _judged(scalars):
        found, at_odds = _of_scalar(name, scalars[name])
        figures |= found
        if n_chains == 1:
            figures[f"halves of {name}"] = _figure(_between_halves(scalars[name][0]), HALVES)
        apart |= at_odds
    for name, chains in _levels(partitions).items():
        found, at_odds = _of_partitions(name, chains)
        figures |= found
        apart |= at_odds
    log_joints = np.asarray(scalars["log_joint"], dtype=np.float64)
    recorded = np.maximum(np.isfinite(log_joints).sum(axis=1), 1)
    heights = ranked * np.nansum(log_joints, axis=1) / recorded
    return {
        "figures": figures,
        "agreeing": agreeing_chains(apart, heights),
        "converged": all(figure["agrees"] is True for figure in figures.values()),
    }


def agreeing_chains(apart: Any, heights: Any) -> Any:
    """Return the largest set of chains of which no two are at odds.

    Parameters
    ----------
    apart : bool array of shape (n_chains, n_chains)
        Symmetric: which two are at odds.
    heights : array of shape (n_chains,)
        Mean log joint densities: chains enter the set from the highest on, and of sets of one size
        the one that begins higher is taken.

    Returns
    -------
    agreeing : bool array of shape (n_chains,)

    Examples
    --------
    >>> import numpy as np
    >>> apart = np.zeros((4, 4), dtype=bool)
    >>> apart[1, [0, 2, 3]] = apart[[0, 2, 3], 1] = True
    >>> agreeing_chains(apart, np.array([-20.0, -10.0, -21.0, -19.0])).tolist()
    [True, False, True, True]
    """
    order, best = np.argsort(-np.asarray(heights), kind="stable"), []
    for first in order:
        chosen = [first]
        for other in order:
            if other != first and not apart[other, chosen].any():
                chosen.append(other)
        if len(chosen) > len(best):
            best = chosen
    return np.isin(np.arange(len(order)), best)


def _figure(value, limit, at_least=False):
    """A figure as `convergence` returns it."""
    agrees = None if np.isnan(value) else bool(value >= limit if at_least else value <= limit)
    return {"value": float(value), "limit": limit, "agrees": agrees}


def _judged(scalars):
    """Which scalars tell whether chains agree. Where columns are in views, the components of all
    views together do not: most are small, and come and go for as long as a chain runs."""
    names = [name for name in SCALARS if name in scalars]
    return [name for name in names if name != "n_components" or "n_views" not in scalars]


# ---- scalars ------------------------------------------------------------------------------------


def _of_scalar(name, values):
    """R-hat and effective sample size of one scalar, and which chains are at odds by it."""
    values = np.asarray(values, dtype=np.float64)
    n_chains, n_records = len(values), np.isfinite(values).sum(axis=1).min(initial=len(values.T))
    if n_chains < 2 or n_records < FEW_RECORDS:
        worst, least = np.nan, np.nan
    elif np.nanmax(values) - np.nanmin(values) <= ROUNDING:
        worst, least = 1.0, np.inf  # one value throughout
    else:
        worst, least = r_hat(values), ess(values) / n_chains
    figures = {
        f"r_hat of {name}": _figure(worst, R_HAT),
        f"ess of {name}": _figure(least, ESS, at_least=True),
    }
    if n_chains < 2 or n_records < FEW_RECORDS:
        return figures, np.zeros((n_chains, n_chains), dtype=bool)
    means, variances = np.nanmean(values, axis=1), np.nanvar(values, axis=1)
    spread = np.sqrt((variances[:, None] + variances) / 2.0)
    return figures, np.abs(means[:, None] - means) > APART * np.maximum(spread, ROUNDING)


def _between_halves(values):
    """How far the means of a chain's first and last half lie apart, in standard deviations of a
    half: NaN of few records."""
    values = np.asarray(values, dtype=np.float64)
    values = values[np.isfinite(values)]
    if len(values) < FEW_RECORDS:
        return np.nan
    halves = values[: len(values) // 2], values[-(len(values) // 2) :]
    apart = abs(halves[0].mean() - halves[1].mean())
    spread = np.sqrt((halves[0].var() + halves[1].var()) / 2.0)
    return apart / max(spread, ROUNDING)


# ---- partitions ---------------------------------------------------------------------------------


def _levels(partitions):
    """Of the rows and, if there are several, of the columns: for each chain the draws compared."""
    chains = [_spread(chain) for chain in partitions]
    levels = {"rows": chains}
    if len(chains[0][0][0]) > 1:
        one = np.zeros(1, dtype=np.int64)
        levels["columns"] = [[(one, [view_of]) for view_of, _ in chain] for chain in chains]
    return levels


def _spread(draws):
    """As many draws as are compared, evenly spread."""
    n_compared = min(len(draws), 2 * COMPARED)
    return [draws[i] for i in np.linspace(0, len(draws) - 1, n_compared).round().astype(int)]


def _of_partitions(name, chains):
    """The ratio of distances between chains to those within, and which chains are at odds."""
    n_chains, apart = len(chains), np.zeros((len(chains),) * 2, dtype=bool)
    worst = excess = np.nan
    if n_chains > 1 and min(map(len, chains)) >= FEW_DRAWS:
        distances = _distances([[_Partitions(*draw) for draw in chain] for chain in chains])
        within = np.diagonal(distances)
        between = (distances.sum(axis=1) - within) / (n_chains - 1)
        worst = ((between + NATS) / (within.mean() + NATS)).max()
        excess = float((between - within.mean()).max())
        of_pair = (within[:, None] + within) / 2.0
        apart = ((distances + NATS) / (of_pair + NATS) > FAR) & (distances - of_pair > NATS)
        np.fill_diagonal(apart, False)
    figure = _figure(worst, DISTANCE)
    if excess <= NATS:
        figure["agrees"] = True
    return {f"distance of {name}": figure | {"excess": excess}}, apart


def _distances(chains):
    """Mean distances between chains and, on the diagonal, between the halves of one."""
    halves = [(chain[: len(chain) // 2], chain[len(chain) // 2 :]) for chain in chains]
    distances = np.zeros((len(chains),) * 2)
    for i, (first, last) in enumerate(halves):
        distances[i, i] = _mean_distance(first, last)
        for j, (other_first, other_last) in enumerate(halves[:i]):
            both = _mean_distance(first, other_last), _mean_distance(last, other_first)
            distances[i, j] = distances[j, i] = np.mean(both)
    return distances


def _mean_distance(draws, others):
    return np.mean([draw.distance(other) for draw in draws for other in others])


class _Partitions:
    """The partitions of one draw: of the rows, as each column sees them."""

    def __init__(self, view_of, labels):
        self.view_of = relabel(view_of)
        _, views = np.unique(self.view_of, return_index=True)
        self.labels = [relabel(labels[view_of[first]]) for first in views]
        self.sizes = [int(codes.max(initial=-1)) + 1 for codes in self.labels]
        self.sums = [_sum_of_terms(codes) for codes in self.labels]

    def distance(self, other):
        """Variation of information in nats, the mean over the columns."""
        n_rows, n_views = len(self.labels[0]), len(other.labels)
        counts, total = np.bincount(self.view_of * n_views + other.view_of).tolist(), 0.0
        for pair, count in enumerate(counts):
            if not count:
                continue
            v, w = divmod(pair, n_views)
            joint = _sum_of_terms(self.labels[v] * other.sizes[w] + other.labels[w])
            total += count * (self.sums[v] + other.sums[w] - 2.0 * joint)
        return max(0.0, total / (len(self.view_of) * n_rows))


def _sum_of_terms(codes):
    """The sum of n log n over the sizes n of clusters."""
    sizes = np.bincount(codes)
    return float(xlogy(sizes, sizes).sum())
