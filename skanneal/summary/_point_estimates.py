"""One partition that stands for those of all draws."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._labels import checked, relabel
from ._losses import LOSSES, expected_loss, minimise

POINT_ESTIMATES = ("map", *LOSSES)


def point_estimate(
    labels_list: Any, log_joints: ArrayLike | None = None, method: str = "map"
) -> np.ndarray:
    """One partition that stands for all draws.

    Parameters
    ----------
    labels_list : sequence of array-like of int of shape (n_rows,)
        The draws' partitions, of all chains.
    log_joints : array-like of shape (n_draws,) or None, default=None
        Log joint densities of the draws; "map" needs them.
    method : {"map", "vi", "binder"}, default="map"
        "map": the draw with the highest log joint density. "vi", "binder": the partition found to
        have the least expected variation of information or Binder loss (Wade and Ghahramani 2018).

    Returns
    -------
    labels : ndarray of int64 of shape (n_rows,)
        Contiguous from 0, in order of first appearance.

    Raises
    ------
    ValueError
        If `method` is unknown, there are no draws, their lengths differ, or "map" lacks log joint
        densities.

    Examples
    --------
    >>> from skanneal.summary import point_estimate
    >>> draws = [[0, 0, 1, 1, 1], [0, 0, 1, 1, 2], [3, 3, 3, 1, 1]]
    >>> point_estimate(draws, method="vi")
    array([0, 0, 1, 1, 1])
    >>> point_estimate(draws, [-7.5, -7.9, -7.2], method="map")
    array([0, 0, 0, 1, 1])
    """
    if method not in POINT_ESTIMATES:
        raise ValueError(f"method must be one of {POINT_ESTIMATES}, got {method!r}.")
    if method == "map":
        return relabel(_most_probable(labels_list, log_joints))
    return minimise(labels_list, LOSSES[method])


def expected_vi(labels: ArrayLike, labels_list: Any) -> float:
    """Mean variation of information between a partition and the draws.

    Parameters
    ----------
    labels : array-like of int of shape (n_rows,)
        Any partition of the rows.
    labels_list : sequence of array-like of int of shape (n_rows,)
        The draws' partitions.

    Returns
    -------
    expected_vi : float
        In nats.

    Examples
    --------
    >>> from skanneal.summary import expected_vi
    >>> round(expected_vi([0, 0, 1, 1], [[5, 5, 3, 3], [0, 0, 0, 0]]), 4)
    0.3466
    """
    return expected_loss(labels, labels_list, LOSSES["vi"])


def expected_binder(labels: ArrayLike, labels_list: Any) -> float:
    """Mean Binder loss between a partition and the draws.

    Parameters
    ----------
    labels : array-like of int of shape (n_rows,)
        Any partition of the rows.
    labels_list : sequence of array-like of int of shape (n_rows,)
        The draws' partitions.

    Returns
    -------
    expected_binder : float
        Mean share of the ordered pairs of rows on which two partitions disagree, from 0 to 1.

    Examples
    --------
    >>> from skanneal.summary import expected_binder
    >>> expected_binder([0, 0, 1, 1], [[5, 5, 3, 3], [0, 0, 0, 0]])
    0.25
    """
    return expected_loss(labels, labels_list, LOSSES["binder"])


def _most_probable(labels_list, log_joints):
    labels_list = checked(labels_list)
    log_joints = np.asarray([] if log_joints is None else log_joints, dtype=np.float64)
    if log_joints.shape != (len(labels_list),):
        raise ValueError(
            f"log_joints must hold one number per draw: {len(labels_list)} draws,"
            f" {log_joints.size} numbers."
        )
    if np.isnan(log_joints).all():
        raise ValueError("log_joints are all NaN.")
    return labels_list[np.nanargmax(log_joints)]
