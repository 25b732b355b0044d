"""The table as a CrossCat sees it."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._optional_dependencies import check_matplotlib_support

from .._native._types import TableLike
from ..encoding import open_table
from ..summary import rank_clusters
from ._axes import literal
from ._columns import column_names, columns_by_view
from ._fitted import check_drawable


class ViewsDisplay:
    """The table as a CrossCat sees it: a panel for each view, its rows sorted by their cluster.

    Parameters
    ----------
    cells : list of ndarray of shape (n_shown, n_columns_of_view)
        For each view, its cells between 0 and 1, rows sorted by cluster; NaN where missing.
    labels : list of ndarray of int of shape (n_shown,)
        The rows' clusters in each view, equal ones side by side.
    names : list of sequence of str
        Names of each view's columns.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        One per view.
    figure_ : matplotlib Figure
        The figure.
    images_ : list of matplotlib AxesImage
        One per view.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import ViewsDisplay
    >>> cells = [np.array([[0.1, 0.2], [0.9, 0.8]]), np.array([[0.5], [0.6]])]
    >>> labels = [np.array([0, 1]), np.array([0, 0])]
    >>> display = ViewsDisplay(cells, labels, [["length", "width"], ["colour"]]).plot()
    >>> len(display.axes_)
    2
    """

    def __init__(self, cells: Any, labels: ArrayLike, names: Any) -> None:
        self.cells = cells
        self.labels = labels
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: TableLike,
        *,
        max_rows: int = 1000,
        figure: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the training rows of a fitted estimator, view by view.

        Parameters
        ----------
        estimator : CrossCatPY
            Fitted.
        X : array-like or frame of shape (n_rows, n_columns)
            The training data. Numbers are shown by their rank in the column, levels in their order.
        max_rows : int, default=1000
            If there are more rows, this many are shown in each view, evenly spaced.
        figure : matplotlib Figure or None, default=None
            Where to draw; None makes a new one.
        **kwargs : dict
            Passed to ``imshow``.

        Returns
        -------
        display : ViewsDisplay
        """
        check_drawable(cls, estimator, ["view_labels_"], "a CrossCatPY")
        table, n_rows = open_table(X, "X"), len(estimator.labels_)
        if table.shape != (n_rows, len(estimator.view_labels_)):
            raise ValueError(
                f"X must be the training data: it has shape {table.shape}, the fit's had "
                f"({n_rows}, {len(estimator.view_labels_)})."
            )
        if max_rows < 1:
            raise ValueError(f"max_rows must be at least 1, got {max_rows}.")
        shades = np.column_stack([_shades(table.column(j)) for j in range(table.shape[1])])
        names = column_names(estimator)
        order, views = columns_by_view(estimator)[0], estimator.view_labels_
        cells, labels, shown = [], [], []
        for v in dict.fromkeys(views[order].tolist()):
            columns = order[views[order] == v]
            ranks, _ = rank_clusters(estimator.row_labels_[v])
            rows = np.argsort(ranks, kind="stable")
            if len(rows) > max_rows:
                rows = rows[np.linspace(0, len(rows) - 1, max_rows).round().astype(int)]
            cells.append(shades[np.ix_(rows, columns)])
            labels.append(ranks[rows])
            shown.append([names[j] for j in columns])
        return cls(cells, labels, shown).plot(figure, **kwargs)

    def plot(self, figure: Any = None, **kwargs: Any) -> Self:
        """Draw; return the display itself.

        Parameters
        ----------
        figure : matplotlib Figure or None, default=None
            Where to draw; None makes a new one, whose size depends on the number of columns.
        **kwargs : dict
            Passed to ``imshow``.

        Returns
        -------
        display : ViewsDisplay
        """
        check_matplotlib_support("ViewsDisplay.plot")
        widths = [len(names) for names in self.names]
        if figure is None:
            import matplotlib.pyplot as plt

            width = min(16, 1.5 + 0.24 * sum(widths) + 0.3 * len(widths))
            figure = plt.figure(figsize=(width, 6.0), layout="constrained")
        self.figure_ = figure
        axes = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)
        self.axes_, self.images_ = list(axes[0]), []
        kwargs = {"cmap": "viridis", "vmin": 0, "vmax": 1, "interpolation": "nearest", **kwargs}
        for ax, cells, labels, names in zip(self.axes_, self.cells, self.labels, self.names):
            n, m = cells.shape
            ax.set_facecolor("0.85")  # shows through where a cell is missing
            image = ax.imshow(
                np.ma.masked_invalid(cells), aspect="auto", extent=(0, m, n, 0), **kwargs
            )
            self.images_.append(image)
            ax.hlines(np.flatnonzero(np.diff(labels)) + 1, 0, m, color="white", linewidth=1.0)
            ax.set_xticks(np.arange(m) + 0.5, literal(names), rotation=90)
            ax.set_yticks([])
            ax.tick_params(length=0, labelsize="small" if sum(widths) <= 40 else "xx-small")
            ax.spines[:].set_visible(False)
        self.axes_[0].set_ylabel(f"{len(self.labels[0]):,} rows, sorted by cluster in each view")
        bar = figure.colorbar(self.images_[0], ax=self.axes_, fraction=0.03, pad=0.02)
        bar.set_ticks([0, 1], labels=["low", "high"])
        bar.outline.set_visible(False)
        return self


def _shades(column):
    """Cells from 0 to 1, NaN where missing: numbers by their rank, levels in their order."""
    values = np.asarray(column.values, dtype=np.float64)
    present = np.ones(len(values), bool) if column.missing is None else ~column.missing
    shades = np.full(len(values), np.nan)
    if column.levels is None:
        known, ranks = np.unique(values[present], return_inverse=True)
        middle = np.cumsum(np.bincount(ranks, minlength=len(known)))
        below = np.concatenate([[0], middle[:-1]])
        shades[present] = ((below + middle) / 2 / max(1, present.sum()))[ranks]
    else:
        shades[present] = values[present] / max(1, len(column.levels) - 1)
    return shades
