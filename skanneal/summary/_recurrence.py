"""Whether borders recur: do draws differ about the rows by more than each of them is unsure?

Where components are clusters, every draw has them, and a row near a border is in doubt under each
draw. Where components are tiles of a square, of a ring or of a heavy tail, they might as well lie
elsewhere: a draw is sure of its own borders, and the next one has others. For two draws s and t
that give a row the probabilities p_sk and p_tk of its groups k, let

    D = 1 - sum_k p_sk p_tk,    E = 1 - sum_k p_sk^2

be the probabilities that the two put it into different groups, and that one draw does if it is
asked twice, both as means over draws and summed over rows. E is how far the groups overlap; D - E
is what the draws do not know of the borders. (With entropies for these probabilities, D - E would
be the mutual information of group and draw.) The share

    (D - E) / D

is 0 if all draws are equal and 1 if each is sure of borders of its own. Of a valley it is taken for
the probability that its border is arbitrary: the evidence that it recurs is -log (D - E) / D.

Of components without a valley it is asked whether they are the clusters. Where they are, the sum of
D - E over the rows does not grow with their number n. It is half the mean squared distance of two
draws' tables of probabilities; near a border, which has about n rows in doubt, the squares are as
1 / n. So draws misplace as many rows as there are borders, or nearly so, however many rows there
are. Pieces of one bent or heavy cluster might as well lie elsewhere, and more rows are placed
otherwise the more there are. With m the rows per component by which draws differ, the log odds that
components are clusters are

    log odds of pairs + 2 max(0, log(2 / (m + 1 / (S + 2)))),

in which two draws that misplace one row each differ by 2, a border has two sides, and draws that
agree leave the probability 1 / (S + 2), after S of them, that the next one does not (Laplace's rule
of succession). Draws that differ about more rows tell nothing, since those of clusters do so, too,
where it is in doubt how many components there are. The form was compared with others on simulated
tables. The odds of pairs are those of the share of all pairs of neighbours in the table that are
two (_one_or_two.py): of components that are clusters nearly all are, of pieces some are and some
are not.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

SURE = 1e3  # nats: evidence where draws differ by no more than they are unsure


def disagreement(shares, weights):
    """Return of each row D and E.

    Parameters
    ----------
    shares : iterable of ndarray of shape (n_rows, n_groups)
        Each draw's probabilities of the rows' groups.
    weights : array-like of shape (n_draws,)
        How much each draw counts, in any unit.

    Returns
    -------
    between, within : ndarray of shape (n_rows,)
        D, of pairs of different draws, and E; both 0 if one draw has all of the weight.
    """
    weights = np.asarray(weights, dtype=np.float64) / np.sum(weights)
    mean = within = same = 0.0
    for of_draw, weight in zip(shares, weights):
        own = 1.0 - (of_draw**2).sum(axis=1)
        mean = mean + weight * of_draw
        within, same = within + weight * own, same + weight**2 * own
    different = 1.0 - weights @ weights
    if different < 1e-9:
        return np.zeros_like(within), np.zeros_like(within)
    return (1.0 - (mean**2).sum(axis=1) - same) / different, within


def recurrence(between, within):
    """Return the evidence that borders recur, in nats, of sums of D and E over rows; 0 if no row is
    in doubt, which tells nothing."""
    if between <= within:
        return SURE if within > 0 else 0.0
    return float(min(-np.log1p(-max(within, 0.0) / between), SURE))


def sureness_in_basins(tree, unknown, counted, weights, log_odds):
    """Return how sure it is that components are clusters between which there is no valley.

    At any height a tree of valleys is cut into basins. Of a basin all components are clusters, or
    none: two tiles of a ring may have met at the same place in all draws by chance. Two components
    are parted at a height if it is so sure that the components of their basin at this height are.

    Parameters
    ----------
    tree : ndarray of shape (n_components - 1, 4)
        Of valleys, as `cluster_tree` gives it.
    unknown : ndarray of shape (n_components,)
        D - E, summed over the rows of each component.
    counted : ndarray of bool of shape (n_components,)
        Which components have more than a row or two.
    weights : array-like of shape (n_draws,)
        How much each draw counts, in any unit.
    log_odds : float
        What pairs of neighbours say.

    Returns
    -------
    evidence : ndarray of shape (n_components, n_components)
        The lowest height at which two components of a basin are no longer parted; 0 if there are
        not two draws to be compared.
    """
    n_draws, n_components = np.count_nonzero(weights), len(tree) + 1
    if n_draws < 2:
        return np.zeros((n_components, n_components))
    children, heights = tree[:, :2].astype(np.int64), tree[:, 2]
    members = np.zeros((2 * n_components - 1, n_components), dtype=bool)
    np.fill_diagonal(members, True)
    ends = np.full(2 * n_components - 1, np.inf)  # the height at which a basin joins another one
    parents = np.zeros(2 * n_components - 1, dtype=np.int64)
    for node, pair in enumerate(children, n_components):
        members[node] = members[pair].any(axis=0)
        ends[pair], parents[pair] = heights[node - n_components], node
    out, reached = np.full((n_components, n_components), SURE), np.zeros(2 * n_components - 1)
    for node in reversed(range(n_components, 2 * n_components - 1)):
        misplaced = max(unknown @ members[node], 0.0) / max((counted & members[node]).sum(), 1)
        known = 2.0 * max(np.log(2.0 / (misplaced + 1.0 / (n_draws + 2.0))), 0.0)
        own = np.logaddexp(0.0, log_odds + known)
        larger = own >= ends[node]
        reached[node] = reached[parents[node]] if larger else max(heights[node - n_components], own)
        a, b = members[children[node - n_components]]
        out[np.ix_(a, b)] = out[np.ix_(b, a)] = reached[node]
    return out
