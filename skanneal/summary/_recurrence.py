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
