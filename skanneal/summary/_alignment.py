"""One numbering for the clusters of several partitions."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from ._labels import checked, relabel


def align_labels(labels: ArrayLike, reference: Any) -> np.ndarray:
    """Number a partition's clusters like those of a reference with which they share most rows.

    Draws and chains number their clusters each in its own way. So that the same colour means the
    same cluster in two pictures, the clusters are matched one to one such that as many rows as
    possible have the same number in both.

    Parameters
    ----------
    labels : array-like of int of shape (n_rows,)
        The partition to number. Any integers, one per cluster.
    reference : array-like of int of shape (n_rows,)
        The partition whose numbers are taken.

    Returns
    -------
    aligned : ndarray of int64 of shape (n_rows,)
        The same partition as `labels`. Clusters that have no match in the reference have numbers
        above all of its own, in order of first appearance.

    Raises
    ------
    ValueError
        If lengths differ, labels are not integers, or numbers above all of the reference's do not
        fit into int64.

    Examples
    --------
    >>> from skanneal.summary import align_labels
    >>> align_labels([5, 5, 5, 3, 3, 1], reference=[1, 1, 0, 0, 0, 0])
    array([1, 1, 1, 0, 0, 2])
    """
    labels, reference = checked([labels, reference])
    if not len(labels):
        return np.empty(0, dtype=np.int64)
    codes = relabel(labels)
    names, known = np.unique(reference, return_inverse=True)
    shared = np.zeros((codes.max() + 1, len(names)))
    np.add.at(shared, (codes, known), 1.0)
    ours, theirs = linear_sum_assignment(shared, maximize=True)
    n_unmatched = len(shared) - len(ours)
    if int(names[-1]) > np.iinfo(np.int64).max - n_unmatched:
        raise ValueError(
            f"reference has the label {names[-1]}, above which int64 has no numbers for "
            f"{n_unmatched} more clusters: number its clusters anew, as relabel does."
        )
    number = np.full(len(shared), -1, dtype=np.int64)
    number[ours] = names[theirs]
    unmatched = np.flatnonzero(np.bincount(ours, minlength=len(shared)) == 0)
    number[unmatched] = int(names[-1]) + np.arange(1, n_unmatched + 1)
    return number[codes]
