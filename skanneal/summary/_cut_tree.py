"""A tree of components cut into clusters."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral
from typing import Any

import numpy as np

from ._labels import relabel


def one_cluster(n_components: int, asked: bool = False) -> str:
    """What to say where all rows are one cluster, which one may have asked for.

    >>> one_cluster(17)
    'no sure valley; 17 components'
    """
    if n_components == 1:
        return "a single component"
    return (
        f"{'one cluster was asked for' if asked else 'no sure valley'}; {n_components} components"
    )


def cut_tree(
    tree: np.ndarray, probability: float = 0.9, n_clusters: int | None = None
) -> np.ndarray:
    """Cut a tree of components into clusters.

    Parameters
    ----------
    tree : array-like of shape (n_components - 1, 4)
        From `cluster_tree`.
    probability : float, default=0.9
        Components are in different clusters where it is at least so sure that they are two.
    n_clusters : int or None, default=None
        How many clusters there shall be, instead, at least 1; as many as there are components if
        these are fewer.

    Returns
    -------
    clusters : ndarray of int64 of shape (n_components,)
        The cluster of each component, in order of first appearance.

    Raises
    ------
    ValueError
        If `tree` is none, or `probability` or `n_clusters` no such number.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.summary import cut_tree
    >>> tree = np.array([[0, 1, 0.4, 2], [2, 3, 9.0, 3]])
    >>> cut_tree(tree), cut_tree(tree, n_clusters=3)
    (array([0, 0, 1]), array([0, 1, 2]))
    """
    if n_clusters is not None and (not isinstance(n_clusters, Integral) or n_clusters < 1):
        raise ValueError(f"n_clusters must be None or an integer, at least 1; got {n_clusters!r}.")
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"probability must be in [0, 1], got {probability!r}.")
    tree = checked_tree(tree)
    n_components = len(tree) + 1
    if n_components == 1:
        return np.zeros(1, dtype=np.int64)
    if n_clusters is None:
        n_clusters = 1 + np.count_nonzero(valley_sureness(tree) >= probability)
    clusters = np.arange(2 * n_components - 1)
    for step in reversed(range(n_components - min(n_clusters, n_components))):
        clusters[tree[step, :2].astype(np.int64)] = clusters[n_components + step]
    return relabel(clusters[:n_components])


def valley_sureness(tree: np.ndarray) -> Any:
    """How sure the valleys of a tree of components are, the surest first.

    Parameters
    ----------
    tree : array-like of shape (n_components - 1, 4)
        From `cluster_tree`.

    Returns
    -------
    sureness : ndarray of shape (n_components - 1,)
        1 - exp(-height), not increasing. Where a tree is cut by a probability, there is one cluster
        more than valleys that are at least so sure.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.summary import valley_sureness
    >>> valley_sureness(np.array([[0, 1, 0.4, 2], [2, 3, 9.0, 3]])).round(2)
    array([1.  , 0.33])
    """
    return -np.expm1(-checked_tree(tree)[::-1, 2])


def checked_tree(tree):
    """A tree as an array, if it has the shape of one, and heights that are numbers."""
    tree = np.asarray(tree, dtype=np.float64)
    if tree.ndim != 2 or tree.shape[1] != 4:
        raise ValueError(
            f"tree must be of shape (n_components - 1, 4), as cluster_tree gives it, got one of "
            f"shape {tree.shape}."
        )
    if np.isnan(tree).any():
        raise ValueError("tree must hold numbers, as cluster_tree gives them, but has nan.")
    return tree
