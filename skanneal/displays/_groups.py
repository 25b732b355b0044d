"""The groups of rows that a display shows of a fit."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

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
