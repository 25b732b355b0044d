"""A mixture as a step of a pipeline: rows become probabilities of the clusters."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from .._native._types import TableLike


class MembershipMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Makes a transformer of a mixture that has `predict_proba`; stands before `BaseTable`."""

    def transform(self, X: TableLike) -> np.ndarray:
        """Probability of each existing cluster, as `predict_proba` gives it.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_columns)
            As `predict_proba` takes it.

        Returns
        -------
        probabilities : ndarray or frame of shape (n_rows, n_clusters)
            Clusters of `labels_`; rows sum to 1. A frame if `set_output` says so.
        """
        return self.predict_proba(X)

    @property
    def _n_features_out(self):
        return self.n_clusters_
