"""The groups of rows that a display shows of a fit."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ..encoding import open_table
from ..summary._cut_tree import one_cluster


class Groups(NamedTuple):
    """Clusters, or components where all rows are one cluster.

    Attributes
    ----------
    labels : int array of shape (n_rows,)
    name : {"cluster", "component"}
    title : str or None
        What there is to say of one cluster.
    """

    labels: np.ndarray
    name: str
    title: str | None

    @classmethod
    def of(cls, estimator):
        """Return those of a fitted estimator."""
        labels = np.asarray(estimator.labels_)
        if (labels != labels[0]).any():
            return cls(labels, "cluster", None)
        components = np.asarray(getattr(estimator, "component_labels_", labels))
        asked = getattr(estimator, "n_clusters", None) is not None
        return cls(components, "component", one_cluster(len(np.unique(components)), asked))


def training_table(estimator, X):
    """X as a table with a row for each label of a fitted estimator; else a ValueError."""
    table, n_rows = open_table(X, "X"), len(estimator.labels_)
    if table.shape[0] != n_rows:
        raise ValueError(
            f"X must be the training data: it has {table.shape[0]} rows, labels_ {n_rows}."
        )
    return table
