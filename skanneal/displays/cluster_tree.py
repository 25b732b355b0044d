"""How components join to clusters."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any, Self

import numpy as np
from scipy.cluster.hierarchy import dendrogram

from ..summary._cut_tree import one_cluster
from ._axes import axes_of, sentence
from ._fitted import check_drawable


class ClusterTreeDisplay:
    """The tree of a fit's components: the higher a join, the surer it parts clusters.

    Where no valley is sure at all, a sentence says so instead.

    Parameters
    ----------
    tree : ndarray of shape (n_components - 1, 4)
        A tree like `cluster_tree_`.
    separation : float or None, default=None
        Where a line shows the cut; None draws none.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import ClusterTreeDisplay
    >>> tree = np.array([[0, 1, 0.4, 2], [2, 3, 9.0, 3]])
    >>> display = ClusterTreeDisplay(tree, separation=0.99).plot()
    >>> display.ax_.get_xlabel()
    'Component'
    """

    def __init__(self, tree: np.ndarray, separation: float | None = None) -> None:
        self.tree = tree
        self.separation = separation

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw a fitted estimator's tree.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``point_estimate="clusters"``.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ClusterTreeDisplay
        """
        check_drawable(
            cls,
            estimator,
            ["cluster_tree_"],
            "an estimator that was fitted with point_estimate='clusters'",
        )
        return cls(estimator.cluster_tree_, estimator._clusters.separation).plot(ax)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; return the display itself.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            Passed to SciPy's ``dendrogram``.

        Returns
        -------
        display : ClusterTreeDisplay
        """
        self.figure_, self.ax_ = axes_of("ClusterTreeDisplay.plot", ax)
        tree = np.asarray(self.tree)
        highest = tree[:, 2].max(initial=0.0)
        if highest == 0.0:
            sentence(self.ax_, one_cluster(len(tree) + 1))
            return self
        options = {"color_threshold": 0, "above_threshold_color": "C0", **kwargs}
        dendrogram(tree, ax=self.ax_, **options)
        if self.separation is not None:
            cut, label = -np.log1p(-self.separation), f"separation {self.separation:g}"
            self.ax_.axhline(cut, color="black", linestyle=":", linewidth=1, label=label)
            self.ax_.legend(frameon=False, fontsize="small")
            self.ax_.set_ylim(0.0, 1.05 * max(highest, cut))
            if highest < cut:
                self.ax_.set_title(one_cluster(len(tree) + 1), fontsize="medium")
        self.ax_.set(xlabel="Component", ylabel="How sure clusters are parted (nats)")
        return self
