"""The clusters of rows in every view of every draw."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np


class Memberships:
    """Clusters of some rows.

    Parameters
    ----------
    views_of : list of int arrays of shape (n_columns,)
        For each draw the view of each column.
    clusters : list of list of arrays
        For each draw and view the rows' clusters: int (n_rows,) of training rows, probabilities
        (n_rows, n_clusters) of new ones.
    positions : int array of shape (n_rows,) or None
        Of training rows.
    """

    def __init__(self, views_of, clusters, positions=None):
        self.views_of, self.clusters, self.positions = views_of, clusters, positions
        self.n_rows = len(clusters[0][0])

    @classmethod
    def of_training_rows(cls, draws, rows):
        """Of rows of the fit, by position."""
        clusters = [[labels[rows] for labels in draw.row_labels] for draw in draws]
        return cls([draw.view_labels for draw in draws], clusters, rows)

    @classmethod
    def of_table(cls, draws, predictor, table):
        """Of new rows."""
        clusters = []
        for d, draw in enumerate(draws):
            of_views = predictor.memberships(table, d)
            clusters.append([of_views[draw.stored(v)] for v in range(draw.n_views)])
        return cls([draw.view_labels for draw in draws], clusters)

    def part(self, rows):
        """Some of the rows."""
        clusters = [[of_view[rows] for of_view in of_draw] for of_draw in self.clusters]
        return Memberships(
            self.views_of, clusters, None if self.positions is None else self.positions[rows]
        )

    def similarity(self, other, columns, draw_weights):
        """Mean over draws of the mean over views of sharing a cluster: (n_rows, other.n_rows).

        Each draw counts by its weight. Only the views that hold one of the columns count; columns
        in no view do not distinguish rows.
        """
        out = np.zeros((self.n_rows, other.n_rows))
        total = draw_weights.sum()
        of_draws = zip(self.views_of, self.clusters, other.clusters, draw_weights)
        for view_of, one, two, weight in of_draws:
            views = np.unique(view_of[columns])
            views = views[views >= 0]
            if not len(views):
                out += weight / total
            for v in views:
                out += _shared(one[v], two[v]) / (len(views) * total / weight)
        return np.minimum(out, 1.0)  # which rounding exceeds


def _shared(one, two):
    """Probability that rows share a cluster of one view: (n_one, n_two)."""
    if one.ndim == two.ndim == 1:
        return one[:, None] == two
    n_clusters = next(a.shape[1] for a in (one, two) if a.ndim == 2)
    one, two = (a if a.ndim == 2 else np.eye(n_clusters)[a] for a in (one, two))
    return one @ two.T
