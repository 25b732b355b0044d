"""How far from a partition the draws are: a credible ball, and the partitions at its edge."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ._labels import checked, checked_weights, relabel
from ._losses import LOSSES, expected_loss


class CredibleBall(NamedTuple):
    """See `credible_ball`, whose Returns section describes these."""

    radius: float
    farthest: np.ndarray
    fewest_clusters: np.ndarray
    most_clusters: np.ndarray


def credible_ball(
    labels: ArrayLike,
    labels_list: Any,
    *,
    probability: float = 0.95,
    loss: str = "vi",
    draw_weights: ArrayLike | None = None,
) -> Any:
    """Find the smallest ball around a partition that holds most of the draws.

    A single partition does not show how uncertain it is. The partitions at the edge of its ball do:
    they are as different from it as the posterior still finds credible (Wade and Ghahramani 2018,
    "Bayesian cluster analysis: point estimation and credible balls", Bayesian Analysis 13, Section
    4).

    Parameters
    ----------
    labels : array-like of int of shape (n_rows,)
        The partition at the centre.
    labels_list : sequence of array-like of int of shape (n_rows,)
        The draws' partitions.
    probability : float, default=0.95
        The share of the draws' weight that the ball holds at least, above 0 and at most 1.
    loss : {"vi", "binder"}, default="vi"
        Which distance: the variation of information in nats, or the share of ordered pairs of rows
        on which two partitions disagree.
    draw_weights : array-like of shape (n_draws,) or None, default=None
        How much each draw counts, in any unit. None counts them equally.

    Returns
    -------
    radius : float
        Of the ball, in units of the distance.
    farthest : ndarray of int64 of shape (n_rows,)
        The draw in the ball that is farthest from the centre, its labels numbered from 0 in order
        of first appearance (the horizontal bound).
    fewest_clusters, most_clusters : ndarray of int64 of shape (n_rows,)
        Of the draws in the ball with the fewest clusters, and of those with the most, the one that
        is farthest from the centre (the upper and the lower vertical bound).

    Raises
    ------
    ValueError
        If lengths differ, the loss is unknown, or a number is not in its range.

    Examples
    --------
    >>> from skanneal.summary import credible_ball
    >>> draws = [[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 2], [0, 0, 0, 0]]
    >>> ball = credible_ball([0, 0, 1, 1], draws, probability=0.75)
    >>> round(ball.radius, 4), ball.most_clusters
    (0.3466, array([0, 0, 1, 2]))
    """
    labels_list = checked(labels_list)
    checked([labels, labels_list[0]])
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {tuple(LOSSES)}, got {loss!r}.")
    if not 0.0 < probability <= 1.0:
        raise ValueError(f"probability must be above 0 and at most 1, got {probability!r}.")
    weights = checked_weights(draw_weights, len(labels_list))
    distances = np.array([expected_loss(labels, [draw], LOSSES[loss]) for draw in labels_list])
    n_clusters = np.array([len(np.unique(draw)) for draw in labels_list])
    order = np.argsort(distances, kind="stable")
    held = np.cumsum(weights[order]) / weights.sum()
    last = np.searchsorted(held, probability * (1 - 1e-12))  # sums of weights are rounded
    radius = distances[order[min(last, len(order) - 1)]]
    inside = np.flatnonzero((distances <= radius) & (weights > 0))

    def edge(of):
        return relabel(labels_list[of[np.argmax(distances[of])]])

    return CredibleBall(
        float(radius),
        edge(inside),
        edge(inside[n_clusters[inside] == n_clusters[inside].min()]),
        edge(inside[n_clusters[inside] == n_clusters[inside].max()]),
    )
