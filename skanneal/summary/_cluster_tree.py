"""From components to clusters: components between which the rows show no gap belong together.

For two groups of components a and b, let f_a, f_b be their densities times their weights. A skewed,
curved or heavy-tailed cluster that takes several components has as many rows at a border between
two of them as within; between two clusters there are few. So the rows are laid on a line from a to
b, on which a cluster has one mode and two clusters have two, and a dip test judges this (Tantrum,
Murua and Stuetzle 2003, "Assessment and pruning of hierarchical model based clustering", KDD;
Hennig 2010, "Methods for merging Gaussian mixture components", Advances in Data Analysis and
Classification 4). It asks the rows themselves, so that ripples which a family makes where its shape
is wrong are no valleys, however sure the posterior is of them.

Their place on the line is

    y_i = log f_a(x_i) / Q_a - log f_b(x_i) / Q_b,

where Q_a is how much lower log f_a is in rows of b than in rows of a, by the medians. Of two normal
components this is linear along the line between their centres, whatever their covariances: log f_a
falls as Q_a t^2 at a share t of the way, log f_b as Q_b (1 - t)^2. The plain log odds are bent
where one component is wider than the other. They stand in where a Q is not positive: one group is
then within the other.

Of the larger group only as many rows take part as the smaller has, those nearest to the border by
their log odds: else a small cluster beside a large one is lost in the share of the rows that it
has. The quarter of each side that is farthest from the other on the line is left out: tails say
nothing of a valley, weaken the test, and where one group is bent or wide the line may come back.

One partition would be a poor judge of itself: its borders lie where its own rows happen to be few.
So every draw judges by its own components, of which each belongs to the group that most of its rows
are in. The evidence is the median over the draws. Between two groups of numbers that are hardly
more than a component each, a valley is also sought along a straight line (_straight_line.py); the
surer of both counts.

All draws see the same rows, and in a square each finds a gap that it takes for a border. So it is
asked how many places a border has been chosen from. If two draws differ about the sides of D rows
(_disagreement.py), it may lie beside each of these, and the probability p of the dip test is
multiplied by the number of places, 1 + D (Bonferroni's inequality).

Most of a long border may have a valley while it has none at one place: so it is between the inner
and the outer half of a spiral, or between a group in a corner of a square and the rest. Two groups
are one if they are so anywhere. A passage is a pair of neighbouring components, one of each group,
of which the evidence is known from before they were in groups. With m rows in the smaller component
and n in the smaller group, by the medians over the draws, a valley that is as deep there as along
the whole border has about m / n of its evidence, which grows as the rows. If this is more than one
border in ten has by chance, the passage would show the valley; and if it then has less than that,
its evidence is that of the border. Small components beside others in their group are no passages.

Between two values of a level lies nothing, so that a dip is certain wherever a level divides two
groups. Where columns have levels or atoms, a valley is therefore no surer than that two components
explain the rows of the two groups better than one (predictive/_one_or_two_groups.py).

Groups are merged, always the two between which a valley is least sure, until one is left; groups of
one row or two, of which nothing is sure, before all others. Where nothing speaks for a valley, no
more than chance does for the surest of so many, those merge first that overlap most, by the
Bhattacharyya coefficient of their rows (_tree_order.py): between the thin tails of two clusters too
few rows lie to show a valley, and if the tails merged before each with its own core, so would the
cores. What is left to the end is thus the surest of n_components - 1 valleys: by Bonferroni's
inequality a height is the evidence less the logarithm of their number. The tree does not depend on
where it will be cut, and can do with nothing but densities: for every family, with gaps, and
whatever the units of the columns.

Normal clusters that overlap have no valley. So it is also asked whether components are clusters:
whether two normal laws explain the rows of neighbouring components better than one bump
(_one_or_two.py). A single pair cannot tell, since some neighbouring pieces of a ring or of a square
look like two normal laws. But where components are clusters nearly all pairs of neighbours are two,
and of pieces some are and some are not. So the share of the table's pairs that are two is how sure
it is that its components are clusters. All pairs that one valley parts tell one thing: all pieces
of a ring are two with those of another ring, and with their neighbours some are and some are not.
So together they count as one pair, as much as the valley is sure. Pieces of one cluster are seldom
only two or three, since one bump then explains their rows. So of fewer than FEW_PAIRS pairs those
that are not two are a share of FEW_PAIRS.

But in a cube of many rows nearly all pairs of pieces are two. There each draw has pieces of its
own, and clusters are what draws agree about: if two draws put most rows into different components
(_disagreement.py), components are no clusters. A component that lies within another one is part of
it. And a small one, which has less than SMALL of the median rows, is a cluster only if its own pair
is two as well: what other pairs are says little of three rows to which a mixture has given a
component. And any pair may be sure by itself, where draws agree about its rows (_by_itself.py).

What parts two components is the surer of the valleys and of this share. In which order components
join, where a number of clusters is asked for, is said elsewhere (_tree_order.py), and why valleys
may be sought between peaks of the density in place of components (predictive/_parts.py), too.
"""

# SPDX-License-Identifier: BSD-3-Clause

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import squareform
from scipy.special import expit, log_expit, logsumexp, softmax

from ._by_itself import evidence_by_itself, log_factors
from ._disagreement import disagreement, mean_square_difference, share_in_doubt
from ._fills import with_fills
from ._groups import FAR, FEW_ROWS, Groups
from ._labels import checked_weights
from ._straight_line import CHANCE

MOST = 0.5  # share of the rows about which two draws differ where components are no clusters
# Share of rows below which a component is small: of those of its group's largest, to count there;
# of the median component's, to be a cluster because others are.
SMALL = 0.2
FEW_PAIRS = 3  # of which a share is counted, at least


def cluster_tree(
    log_joints: ArrayLike | None,
    draws: ArrayLike = (),
    draw_weights: ArrayLike | None = None,
    numbers: Any = None,
) -> np.ndarray:
    """Merge components into clusters, those first of which it is least sure that they are two.

    Parameters
    ----------
    log_joints : array-like of shape (n_rows, n_components)
        Log of each component's weight times its density of each row, relative to one density that
        varies little within a component: of no rows, say. It takes out units and gaps.
    draws : sequence of array-like of shape (n_rows, n_components), default=()
        The same of the draws that judge how sure a valley is: what a draw's components say of each
        row, added up by the component of `log_joints` that most of their rows are in, -inf where
        there is none. Without draws `log_joints` is the judge.
    draw_weights : array-like of shape (n_draws,) or None, default=None
        How much each draw counts, in any unit. None counts them equally.
    numbers : array-like of shape (n_rows, n_columns) or None, default=None
        The rows' numbers, in any units and nan where there is a gap: where valleys between two
        components are sought along straight lines, too, among rows of few gaps.

    Returns
    -------
    tree : ndarray of shape (n_components - 1, 4)
        As SciPy's `linkage` gives it, with the number of components in the last column. A height is
        the evidence that two clusters are two, -log(1 - probability) in nats: the greater of that
        of a valley and that of components that are clusters.

    Raises
    ------
    ValueError
        If densities are no such arrays, or there is a nan among them.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.summary import cluster_tree, cut_tree
    >>> rows = np.r_[np.linspace(0, 1, 60), np.linspace(2, 3, 60)]
    >>> centres = np.array([0.25, 0.75, 2.5])
    >>> tree = cluster_tree(-8 * (rows[:, None] - centres) ** 2)
    >>> cut_tree(tree, probability=0.95)
    array([0, 0, 1])
    """
    for joints in (log_joints, *draws):
        if np.ndim(joints) != 2 or np.isnan(joints).any():
            raise ValueError("log_joints and draws must be (n_rows, n_components) without nan.")
    given = log_joints, draws, draw_weights, numbers
    valleys = valley_tree(*given)
    return surer(valleys, pair_heights(*given, None, valleys))


def pair_heights(
    log_joints, draws=(), draw_weights=None, numbers=None, peaks=None, valleys=None, factor=None
):
    """How sure it is that two components are two clusters because components are clusters, in nats:
    (n_components, n_components); parameters as in `cluster_tree`, `peaks` as in `valley_tree`, and
    `valleys` from there: without them all pairs count alike. With peaks, what is about one peak
    counts as one component, and a pair has a say by itself."""
    groups, judges, weights, numbers = _given(log_joints, draws, draw_weights, numbers)
    n_components = len(groups.alive)
    own = np.arange(n_components)  # of each component, the first one about its peak
    for first, other in _known(peaks):
        own[other] = first
        for of_draw in groups, *judges:
            of_draw.merge(first, other)
    shares = (softmax(judge.joints[:, groups.alive], axis=1) for judge in judges)
    if judges and share_in_doubt(shares, weights) > MOST:
        return np.zeros((n_components, n_components))
    odds, sizes = _pairs(groups, judges or [groups], weights, numbers)
    if factor is not None:
        for a, b in np.argwhere(np.triu(np.abs(odds) < FAR, 1)).tolist():
            odds[a, b] = odds[b, a] = min(odds[a, b], factor(a, b))
    sure = _share_of_two(odds, groups.alive, valleys)
    own_evidence = _by_itself(odds, groups, judges, weights, valleys)
    small = sizes[own] < SMALL * np.median(sizes[groups.alive])
    odds = odds[np.ix_(own, own)]
    by_itself = -log_expit(-odds)
    heights = np.full(odds.shape, sure) if peaks is None else np.maximum(sure, by_itself)
    heights = np.where(small | small[:, None], np.minimum(heights, by_itself), heights)
    heights = np.maximum(heights, own_evidence[np.ix_(own, own)])
    return np.where(odds <= -FAR, 0.0, heights)


def valley_tree(log_joints, draws=(), draw_weights=None, numbers=None, peaks=None, factor=None):
    """The tree of the valleys alone.

    Parameters
    ----------
    log_joints, draws, draw_weights, numbers
        As in `cluster_tree`.
    peaks : int array of shape (n_components,) or None, default=None
        About which peak of the density each component is. Those about one peak are joined first,
        and no valley is sought between them. None: each has a peak of its own.
    factor : callable or None, default=None
        Where rows have no places in between: the log of a Bayes factor for that two groups are
        two, and not one. No valley is surer than that. It has `merge`, as groups have.
    """
    if np.shape(log_joints)[1] == 1:
        return np.empty((0, 4))
    return _valleys(*_given(log_joints, draws, draw_weights, numbers), peaks, factor)


def _given(log_joints, draws, draw_weights, numbers):
    """Groups of the components and of those of draws, weights of these, and numbers."""
    judges = [Groups(joints) for joints in draws]
    weights = checked_weights(draw_weights if judges else None, len(judges) or 1)
    numbers = None if numbers is None else with_fills(np.asarray(numbers, dtype=np.float64))
    return Groups(log_joints), judges, weights, numbers


def _share_of_two(odds, alive, valleys=None):
    """-log of the share of a table's pairs of neighbours that are not two; 0 if there is no pair.
    All pairs that one valley parts count as one, as much as it is sure.

    Of a component within another one it is not asked, nor of one with hardly a row."""
    asked = _asked(odds, alive)
    if not asked.any():
        return 0.0
    counts = _counts(asked, valleys)
    n_pairs = max(counts.sum(), FEW_PAIRS)
    return float(np.log(n_pairs) - logsumexp(log_expit(-odds[asked]), b=counts))


def _asked(odds, alive):
    """Which pairs are asked whether they are two."""
    return np.triu((np.abs(odds) < FAR) & alive & alive[:, None], 1)


def _counts(asked, valleys):
    """As how many pairs each counts of those that are asked."""
    if valleys is None:
        return np.ones(asked.sum())
    numbered = np.column_stack([valleys[:, :2], np.arange(len(valleys)), valleys[:, 3]])
    of = squareform(cophenet(numbered))[asked].astype(np.int64)
    together = np.exp(-valleys[of, 2])
    return together + (1.0 - together) / np.bincount(of)[of]


def _by_itself(odds, groups, judges, weights, valleys):
    """How sure it is by each pair itself that it is two, and of others by the share of the pairs
    that are: (n_components, n_components); 0 without draws."""
    asked = _asked(odds, groups.alive)
    if not judges or not asked.any():
        return np.zeros(odds.shape)
    differ, n_rows = [], []
    for a, b in np.argwhere(asked).tolist():
        differ.append(mean_square_difference(*_of_both(groups, judges, weights, a, b)))
        n_rows.append(len(groups.rows[a]) + len(groups.rows[b]))
    factors = log_factors(odds[asked], differ, n_rows)
    evidence, of_share = evidence_by_itself(factors, _counts(asked, valleys))
    heights = np.full(odds.shape, of_share)
    heights[asked] = heights.T[asked] = evidence
    return heights


def surer(tree, pairs):
    """The tree whose cut at any height is the common refinement of those of a tree and of the
    groups that chains of less sure pairs make: what parts two components is the surer of both.

    Single linkage makes an ultrametric of the pairs; the larger of two ultrametrics is one."""
    if not len(tree):
        return tree
    chains = cophenet(linkage(squareform(pairs, checks=False), "single"))
    return linkage(np.maximum(chains, cophenet(tree)), "single")


def _shares(groups, rows, a, b):
    """Probabilities that rows of two groups are in the first."""
    return expit(groups.joints[rows, a] - groups.joints[rows, b])


def _pairs(groups, judges, weights, numbers=None):
    """Log odds that the rows of two components are two, (n_components, n_components), and how many
    rows each component has in most draws.

    Pairs that are no neighbours in most draws are apart by others, or by valleys. A component that
    has hardly a row in most draws goes with the one that most of its rows are in."""
    n_components = len(groups.alive)
    found = np.full((len(judges), n_components, n_components), FAR)
    of_judges = np.array([judge.sizes for judge in judges]).T
    sizes = np.array([_weighted_median(own, weights) for own in of_judges])
    for of_judge, judge in zip(found, judges):
        for a, b in judge.neighbours():
            of_judge[a, b] = of_judge[b, a] = judge.two(a, b, numbers)
    order = np.argsort(found, axis=0, kind="stable")
    held = np.cumsum(np.asarray(weights, dtype=np.float64)[order], axis=0)
    at = (held < (0.5 - 1e-9) * held[-1]).sum(axis=0)
    out = np.take_along_axis(np.take_along_axis(found, order, axis=0), at[None], axis=0)[0]
    np.fill_diagonal(out, -FAR)
    for k in range(n_components):
        if sizes[k] < FEW_ROWS:
            votes = np.zeros(n_components)
            for judge, weight in zip(judges, weights):
                where = judge.labels[groups.rows[k]] if len(groups.rows[k]) else judge.labels
                votes += weight * np.bincount(where, minlength=n_components)
            votes[k] = -1.0
            most = votes.argmax()
            out[k], out[:, k] = FAR, FAR
            out[k, most] = out[most, k] = out[k, k] = -FAR
    return out, sizes


def _valleys(groups, judges, weights, numbers, peaks=None, factor=None):
    """The tree of the valleys alone; `peaks` as in `valley_tree`."""
    n_components = groups.joints.shape[1]
    node = np.arange(n_components)  # of each group; a group has the number of its first component
    counts = np.ones(n_components)
    tree, height = np.empty((n_components - 1, 4)), 0.0
    merging = [groups, *judges] if factor is None else [groups, *judges, factor]

    def join(step, a, b):
        tree[step] = *sorted((node[a], node[b])), height, counts[a] + counts[b]
        for of in merging:
            of.merge(a, b)
        node[a], counts[a] = n_components + step, counts[a] + counts[b]

    known = _known(peaks)
    for step, pair in enumerate(known):
        join(step, *pair)
    said, asked = {}, set()
    passages = [{} for _ in range(n_components)]  # to each other peak: evidence and rows
    members, own_sizes = [[k] for k in range(n_components)], groups.sizes.tolist()
    largest = np.column_stack([groups.sizes, np.zeros_like(groups.sizes)])  # two of each group
    n_valleys = n_components - 1 - len(known)  # of which the surest is left to the end
    many = np.log(max(n_valleys, 1))
    overlaps = groups.overlaps()
    for step in range(len(known), n_components - 1):
        pair = groups.smallest()
        if pair is None:
            pairs = groups.neighbours()
            for a, b in pairs - said.keys():
                found = [
                    (judge.valley(a, b), judge.sizes[[a, b]].min()) for judge in judges or [groups]
                ]
                evidence, rows = (_weighted_median(of, weights) for of in zip(*found))
                if len(members[a]) == len(members[b]) == 1:
                    passages[a][b] = passages[b][a] = evidence, rows
                counting = (_counting(members[of], own_sizes, largest[of, 0]) for of in (a, b))
                between = [passages[i][j] for i, j in product(*counting) if j in passages[i]]
                of_dips = _at_passages(evidence, rows, between) - many
                said[a, b] = _fair(of_dips, groups, judges, weights, a, b)
                if factor is not None and said[a, b] > 0.0:
                    said[a, b] = min(said[a, b], _of_factor(factor(a, b)))
            while (pair := _least_sure(pairs, said, overlaps)) not in asked:
                asked.add(pair)
                alone = largest[pair, 1] < SMALL * largest[pair, 0]
                if numbers is not None and alone.all():
                    found = groups.straight_valley(*pair, numbers, said[pair] + many) - many
                    said[pair] = max(said[pair], _fair(found, groups, judges, weights, *pair))
            height = max(height, said[pair])
        a, b = pair
        join(step, a, b)
        for of in overlaps, overlaps.T:
            of[a] += of[b]
        members[a] += members[b]
        largest[a] = np.sort(largest[pair, :], axis=None)[:1:-1]
        said = {pair: of for pair, of in said.items() if not {a, b} & set(pair)}
        asked &= said.keys()
    return tree


def _of_factor(log_factor):
    """Evidence by the log of a Bayes factor for two and not one, if both are as probable."""
    return float(np.logaddexp(0.0, log_factor))


def _least_sure(pairs, said, overlaps):
    """The pair between which a valley is least sure; of those for which nothing speaks, the one
    that overlaps most."""

    def order(pair):
        own = np.sqrt(overlaps[pair[0], pair[0]] * overlaps[pair[1], pair[1]])
        return said[pair] >= 0.0, max(said[pair], 0.0), -overlaps[pair] / own, pair

    return min(pairs, key=order)


def _known(peaks):
    """The pairs to join first: of each peak the first component with every other one."""
    if peaks is None:
        return []
    _, first, peak = np.unique(peaks, return_index=True, return_inverse=True)
    return [(int(first[k]), at) for at, k in enumerate(peak) if first[k] != at]


def _counting(components, sizes, largest):
    """Which components of a group count, whose largest one has so many rows."""
    least = SMALL * largest
    return [k for k in components if sizes[k] >= least]


def _at_passages(evidence, rows, passages):
    """Evidence of a valley between two groups, or that of a passage without it.

    Passages are pairs of evidence and rows; `rows` are those of the whole border."""
    shown = [own for own, m in passages if own < CHANCE < evidence * m / max(rows, 1)]
    return min([evidence, *shown])


def _fair(evidence, groups, judges, weights, a, b):
    """Evidence of a valley between two groups, less the logarithm of the number of places that the
    draws which have both groups choose its border from; but no less than 0 for that."""
    if evidence <= 0.0:
        return evidence
    shares, own = _of_both(groups, judges, weights, a, b)
    places = disagreement(shares, own).sum() if len(shares) > 1 else 0.0
    return max(evidence - float(np.log1p(places)), 0.0)


def _of_both(groups, judges, weights, a, b):
    """Probabilities that the rows of two groups are in the first, by the draws that have both, and
    the weights of these."""
    rows = np.concatenate([groups.rows[a], groups.rows[b]])
    both = [min(len(judge.rows[a]), len(judge.rows[b])) >= FEW_ROWS for judge in judges]
    shares = [_shares(judge, rows, a, b) for judge, has in zip(judges, both) if has]
    return shares, np.asarray(weights)[both]


def _weighted_median(values, weights):
    """The weighted median, the upper one if there are two."""
    order = np.argsort(np.negative(values), kind="stable")
    held = np.cumsum(np.asarray(weights, dtype=np.float64)[order])
    return float(values[order[np.searchsorted(held, (0.5 - 1e-9) * held[-1])]])
