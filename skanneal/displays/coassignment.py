"""How often pairs of rows share a cluster."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..summary import coclustering, counted_chains, rank_clusters, relabel
from ._axes import axes_of, square
from ._fitted import check_drawable
from ._groups import Groups


class CoassignmentDisplay:
    """How often each pair of rows shares a cluster, rows sorted by cluster.

    Parameters
    ----------
    coassignment : ndarray of shape (n_shown, n_shown)
        Shares of the draws, from 0 to 1.
    labels : ndarray of int of shape (n_shown,)
        Clusters of these rows; equal labels must stand side by side.
    rows : ndarray of int of shape (n_shown,) or None, default=None
        The positions of these rows in the data.
    name : {"cluster", "component"}, default="cluster"
        What `labels` are.
    title : str or None, default=None
        What stands above.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    image_ : matplotlib AxesImage
        The square.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import CoassignmentDisplay
    >>> from skanneal.summary import coclustering
    >>> draws = [[0, 0, 0, 1, 1], [0, 0, 1, 1, 1]]
    >>> display = CoassignmentDisplay(coclustering(draws), np.array([0, 0, 0, 1, 1])).plot()
    >>> display.image_.get_array().shape
    (5, 5)
    """

    def __init__(
        self,
        coassignment: Any,
        labels: ArrayLike,
        *,
        rows: Any = None,
        name: str = "cluster",
        title: str | None = None,
    ) -> None:
        self.coassignment = coassignment
        self.labels = labels
        self.rows = rows
        self.name = name
        self.title = title

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, max_rows: int = 1000, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the co-assignment of a fitted estimator's training rows.

        They are sorted by cluster; by component where all are in one cluster.

        Parameters
        ----------
        estimator : estimator
            Fitted. All its ``draws_`` count equally, except that chains with negligible
            ``chain_weights_`` are left out.
        max_rows : int, default=1000
            If there are more rows, this many are shown, evenly spaced in the order of the clusters.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            Passed to ``imshow``.

        Returns
        -------
        display : CoassignmentDisplay
        """
        check_drawable(cls, estimator, ["draws_", "labels_"], "a mixture")
        if max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {max_rows}.")
        n_chains = len(estimator.draws_)
        counted = counted_chains(getattr(estimator, "chain_weights_", np.ones(n_chains)))
        draws = [np.asarray(draw.labels) for c in counted for draw in estimator.draws_[c]]
        groups, name, title = Groups.of(estimator)
        by_size, _ = rank_clusters(groups)
        # Within a cluster, rows that share their clusters in the draws come side by side.
        rows = np.lexsort([*(relabel(draw) for draw in draws), by_size])
        if len(rows) > max_rows:
            rows = rows[np.linspace(0, len(rows) - 1, max_rows).round().astype(int)]
        shown = coclustering(draws, rows), groups[rows]
        return cls(*shown, rows=rows, name=name, title=title).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; return the display itself.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            Passed to ``imshow``.

        Returns
        -------
        display : CoassignmentDisplay
        """
        self.figure_, self.ax_ = axes_of("CoassignmentDisplay.plot", ax, figsize=(6.2, 5.2))
        n, title = len(self.coassignment), "Share of draws in one cluster"
        self.image_ = square(
            self.figure_, self.ax_, self.coassignment, self.labels, title, **kwargs
        )
        edges = np.flatnonzero(np.diff(self.labels)) + 1
        starts, ends = np.append(0, edges), np.append(edges, n)
        named = ends - starts >= 0.03 * n  # tall enough for a name
        self.ax_.set_yticks((starts + ends)[named] / 2, np.asarray(self.labels)[starts[named]])
        self.ax_.tick_params(length=0)
        self.ax_.set(xticks=[], xlabel=f"{n:,} rows, sorted by {self.name}")
        self.ax_.set_ylabel(self.name.capitalize())
        self.ax_.set_title(self.title or "", fontsize="medium")
        return self
