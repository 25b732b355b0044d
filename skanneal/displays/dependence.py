"""Which columns depend on which: columns against columns."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any, Self

import numpy as np

from ..summary import rank_clusters
from ._axes import axes_of, literal, square
from ._columns import column_names, columns_by_view
from ._fitted import check_drawable


class DependenceDisplay:
    """How probable it is that columns depend on each other: columns against columns.

    Parameters
    ----------
    dependence : ndarray of shape (n_columns, n_columns)
        Probabilities.
    names : sequence of str
        Names of the columns.
    views : ndarray of int of shape (n_columns,)
        View of each column, equal ones side by side.

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
    >>> from skanneal.displays import DependenceDisplay
    >>> dependence = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.0], [0.1, 0.0, 1.0]])
    >>> display = DependenceDisplay(dependence, ["length", "width", "colour"], [0, 0, 1]).plot()
    >>> display.image_.get_array().shape
    (3, 3)
    """

    def __init__(self, dependence: Any, names: Any, views: Any) -> None:
        self.dependence = dependence
        self.names = names
        self.views = views

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the dependence probabilities of a fitted estimator, columns sorted by view.

        Parameters
        ----------
        estimator : CrossCatPY
            Fitted.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            Passed to ``imshow``.

        Returns
        -------
        display : DependenceDisplay
        """
        check_drawable(cls, estimator, ["view_labels_"], "a CrossCatPY")
        order, dependence = columns_by_view(estimator)
        names, ranks = column_names(estimator), rank_clusters(estimator.view_labels_)[0]
        shown = dependence[np.ix_(order, order)], [names[j] for j in order], ranks[order]
        return cls(*shown).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; return the display itself.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure, whose size depends on the number of columns.
        **kwargs : dict
            Passed to ``imshow``.

        Returns
        -------
        display : DependenceDisplay
        """
        n = len(self.names)
        side = 3.0 + 0.2 * min(n, 60)
        self.figure_, self.ax_ = axes_of("DependenceDisplay.plot", ax, figsize=(side + 1.6, side))
        title = "Probability of dependence"
        self.image_ = square(self.figure_, self.ax_, self.dependence, self.views, title, **kwargs)
        self.ax_.set_yticks(np.arange(n) + 0.5, literal(self.names))
        self.ax_.set_xticks(np.arange(n) + 0.5, literal(self.names), rotation=90)
        self.ax_.tick_params(length=0, labelsize="small" if n <= 30 else "xx-small")
        return self
