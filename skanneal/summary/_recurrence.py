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

is 0 if all draws are equal and 1 if each is sure of borders of its own. In draws of a model that is
right it vanishes as rows come in. It is taken for the probability that a border is arbitrary: the
evidence that borders recur is -log (D - E) / D.

Few draws that agree are no proof, all the less if they are of one chain. Where nothing else speaks
for a border, a probability of 1 / (n + 2) is left, after n draws, that the next one has another
(Laplace's rule of succession).
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


def recurrence_in_basins(tree, between, within, weights):
    """Return how sure it is that the borders of components recur between which there is no valley.

    At any height a tree of valleys is cut into basins. Of a basin all borders recur, or none: two
    tiles of a ring may have met at the same place in all draws by chance. Two components are
    parted at a height if it is so sure that the borders of their basin at this height recur.

    Parameters
    ----------
    tree : ndarray of shape (n_components - 1, 4)
        Of valleys, as `cluster_tree` gives it.
    between, within : ndarray of shape (n_components,)
        Sums of D and E over the rows of each component.
    weights : array-like of shape (n_draws,)
        How much each draw counts, in any unit.

    Returns
    -------
    evidence : ndarray of shape (n_components, n_components)
        The lowest height at which two components of a basin are no longer parted.
    """
    most = np.log(np.count_nonzero(weights) + 2.0)
    n_components = len(tree) + 1
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
        own = min(recurrence(between @ members[node], within @ members[node]), most)
        larger = own >= ends[node]
        reached[node] = reached[parents[node]] if larger else max(heights[node - n_components], own)
        a, b = members[children[node - n_components]]
        out[np.ix_(a, b)] = out[np.ix_(b, a)] = reached[node]
    return out
