"""Clusters against features."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any, Self

import numpy as np

from .._native._types import TableLike
from ..estimators._descriptions import as_levels
from ..summary import profile_clusters, rank_clusters
from ._axes import axes_of, literal, sentence
from ._fitted import check_drawable, training_table
from ._groups import Groups

_LIMIT = 2.0  # standard deviations at which the colours of means end


class ClusterDisplay:
    """Clusters against features: standardised means of numbers, frequencies of levels.

    Parameters
    ----------
    values : ndarray of shape (n_clusters, n_features)
        For a number, its mean in the cluster minus its mean in all rows, in standard deviations of
        all rows; for a level, its share of the cluster. NaN where a cluster has no observed cell.
    is_level : ndarray of bool of shape (n_features,)
        Which features are levels; numbers come first.
    feature_names : sequence of str
        Names of the columns, "column = level" for levels.
    cluster_names : sequence of str
        Names of the clusters.
    name : {"cluster", "component"}, default="cluster"
        What they are called.
    title : str or None, default=None
        What stands above. Of one cluster, which differs from nothing, it is all that is drawn.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    meshes_ : list of matplotlib QuadMesh
        The mesh of the levels and that of the numbers, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import ClusterDisplay
    >>> values = np.array([[1.2, 0.9], [-1.2, 0.1]])
    >>> names = ["height", "colour = red"]
    >>> display = ClusterDisplay(values, np.array([False, True]), names, ["0", "1"]).plot()
    >>> len(display.meshes_)
    2
    """

    def __init__(
        self,
        values: Any,
        is_level: Any,
        feature_names: Any,
        cluster_names: Any,
        *,
        name: str = "cluster",
        title: str | None = None,
    ) -> None:
        self.values = values
        self.is_level = is_level
        self.feature_names = feature_names
        self.cluster_names = cluster_names
        self.name = name
        self.title = title

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: TableLike,
        *,
        max_features: int = 30,
        max_clusters: int = 20,
        ax: Any = None,
    ) -> Self:
        """Draw a fitted estimator's clusters; its components where all rows are one cluster.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like or frame of shape (n_rows, n_columns)
            The training data. Columns are shown level by level if they hold no numbers, or if the
            estimator has them as levels (`families_`).
        max_features : int, default=30
            If there are more features, those in which the clusters differ most are shown.
        max_clusters : int, default=20
            If there are more clusters, the largest are shown.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ClusterDisplay
        """
        check_drawable(cls, estimator, ["labels_"], "a clusterer")
        table, (labels, name, title) = training_table(estimator, X), Groups.of(estimator)
        ranks, sizes = rank_clusters(labels)
        profile = profile_clusters(table, ranks, len(sizes), as_levels(estimator))
        shown = np.sort(np.argsort(-profile.spread, kind="stable")[:max_features])
        shown = shown[np.argsort(profile.is_level[shown], kind="stable")]  # numbers first
        names = labels[np.unique(ranks, return_index=True)[1]]
        display = cls(
            profile.values[:max_clusters, shown],
            profile.is_level[shown],
            [profile.names[j] for j in shown],
            [f"{label}  (n = {size:,})" for label, size in zip(names, sizes)][:max_clusters],
            name=name,
            title=title,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; return the display itself.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure, whose size depends on the numbers of cells.
        **kwargs : dict
            Passed to ``pcolormesh``.

        Returns
        -------
        display : ClusterDisplay
        """
        values, is_level = np.asarray(self.values), np.asarray(self.is_level, dtype=bool)
        n_clusters, n_features = values.shape
        n_numbers = int((~is_level).sum())
        longest = max(map(len, self.feature_names))  # these stand upright below the cells
        figsize = (3.4 + 0.3 * n_features, 0.8 + 0.07 * longest + 0.3 * max(n_clusters, 4))
        self.figure_, self.ax_ = axes_of("ClusterDisplay.plot", ax, figsize=figsize)
        self.meshes_ = []
        if self.title is not None and n_clusters == 1:
            sentence(self.ax_, self.title)
            return self
        # The levels first: their colour bar then stands on the right, as they do.
        if n_numbers < n_features:
            options = {"cmap": "Purples", "vmin": 0, "vmax": 1, **kwargs}
            self._plot_part(values, n_numbers, n_features, "Frequency", "neither", options)
        if n_numbers > 0:
            options = {"cmap": "RdBu_r", "vmin": -_LIMIT, "vmax": _LIMIT, **kwargs}
            self._plot_part(values, 0, n_numbers, "Standardised\nmean", "both", options)
        self.ax_.set_facecolor("0.85")  # shows through where there is nothing observed
        self.ax_.set(xlim=(0, n_features), ylim=(n_clusters, 0), ylabel=self.name.capitalize())
        self.ax_.set_title(self.title or "", fontsize="medium")
        if 0 < n_numbers < n_features:
            self.ax_.axvline(n_numbers, color="black", linewidth=1.2)
        self.ax_.set_yticks(np.arange(n_clusters) + 0.5, literal(self.cluster_names))
        self.ax_.set_xticks(np.arange(n_features) + 0.5, literal(self.feature_names), rotation=90)
        self.ax_.tick_params(length=0, labelsize="small")
        self.ax_.spines[:].set_visible(False)
        return self

    def _plot_part(self, values, start, stop, title, extend, options):
        edges = np.arange(start, stop + 1), np.arange(len(values) + 1)
        part = np.ma.masked_invalid(values[:, start:stop])
        options = {"edgecolor": "white", "linewidth": 0.6, **options}
        mesh = self.ax_.pcolormesh(*edges, part, **options)
        bar = self.figure_.colorbar(mesh, ax=self.ax_, label=title, extend=extend, pad=0.03)
        bar.outline.set_visible(False)
        self.meshes_.append(mesh)
