"""A mixture's density over two columns of numbers, and the rows of its clusters."""

# SPDX-License-Identifier: BSD-3-Clause

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import get_tags

from .._native._types import Columns, TableLike
from ..encoding._codecs import as_numbers
from ..families import FAMILIES
from ..summary import rank_clusters
from ._axes import LINESTYLES, MARKERS, axes_of, literal, plain
from ._fitted import check_drawable, training_table
from ._groups import Groups

MARGIN = 0.1  # of the range of the rows, on either side
# The greatest lower bound of a family's numbers, by its sort of cell. Other cells are not drawn.
BOUNDS = {
    "number": -np.inf,
    "number_or_atom": -np.inf,
    "non_negative": 0.0,
    "logarithm": 0.0,
    "logarithm_or_atom": 0.0,
    "count": 0.0,
}


class DensityDisplay:
    """Contours that enclose given shares of a density's mass, and the rows of each cluster.

    Parameters
    ----------
    x, y : ndarray of shape (n_x,), (n_y,)
        The grid.
    log_density : ndarray of shape (n_y, n_x)
        ``log_density[i, j]`` at ``y[i]``, ``x[j]``.
    points : ndarray of shape (n_rows, 2)
        Rows; NaN where a cell is missing.
    labels : ndarray of int of shape (n_rows,)
        Their clusters.
    names : sequence of 2 str, default=("x", "y")
        Names of the columns.
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
    contours_ : matplotlib QuadContourSet
        The contours.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import DensityDisplay
    >>> x = np.linspace(-3, 3, 40)
    >>> log_density = -0.5 * (x[:, None] ** 2 + x**2)
    >>> points = np.random.default_rng(0).normal(size=(30, 2))
    >>> display = DensityDisplay(x, x, log_density, points, np.zeros(30, dtype=int)).plot()
    >>> len(display.contours_.levels)
    3
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        log_density: Any,
        points: Any,
        labels: ArrayLike,
        *,
        names: Any = ("x", "y"),
        name: str = "cluster",
        title: str | None = None,
    ) -> None:
        self.x = x
        self.y = y
        self.log_density = log_density
        self.points = points
        self.labels = labels
        self.names = names
        self.name = name
        self.title = title

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: TableLike,
        *,
        columns: Columns | None = (0, 1),
        grid_resolution: int = 80,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a fitted mixture's density; all other columns are integrated out.

        Rows are marked by their cluster; by their component where all are in one cluster.

        Parameters
        ----------
        estimator : estimator
            Fitted. If it takes no missing cells, it must have two columns.
        X : array-like or frame of shape (n_rows, n_columns)
            The training data.
        columns : (int, int), default=(0, 1)
            Positions of two columns of numbers or counts, but not of dates.
        grid_resolution : int, default=80
            Points of the grid in either direction. It keeps to what the columns' families can
            describe, for counts to whole numbers, of which there may be fewer.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            Passed to ``contour``.

        Returns
        -------
        display : DensityDisplay
        """
        check_drawable(cls, estimator, ["labels_", "score_samples"], "a mixture")
        if not isinstance(grid_resolution, Integral) or grid_resolution < 2:
            raise ValueError(
                f"grid_resolution must be an integer, at least 2; got {grid_resolution!r}."
            )
        table = training_table(estimator, X)
        columns = _two_positions(columns, table.shape[1])
        read = [_read(estimator, j, table.column(j)) for j in columns]
        if table.shape[1] > 2 and not get_tags(estimator).input_tags.allow_nan:
            raise ValueError(
                f"X must have two columns, not {table.shape[1]}: {type(estimator).__name__} "
                "describes whole rows only, so no column can be integrated out."
            )
        points = np.column_stack([values for values, _ in read])
        x, y = (_axis(values, cells, grid_resolution) for values, cells in read)
        grid = np.column_stack([axis.ravel() for axis in np.meshgrid(x, y)])
        log_density = estimator.score_samples(_rows(X, table.shape[1], columns, grid))
        names = getattr(estimator, "feature_names_in_", None)
        titles = [f"column {j}" if names is None else str(names[j]) for j in columns]
        labels, name, title = Groups.of(estimator)
        shown = x, y, log_density.reshape(len(y), len(x)), points, labels
        return cls(*shown, names=titles, name=name, title=title).plot(ax, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        shares: Any = (0.5, 0.8, 0.95),
        max_clusters: int = 8,
        **kwargs: Any,
    ) -> Self:
        """Draw; return the display itself.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        shares : sequence of float, default=(0.5, 0.8, 0.95)
            The shares of the density's mass on the grid that the contours enclose.
        max_clusters : int, default=8
            If there are more clusters, the smaller ones share one mark.
        **kwargs : dict
            Passed to ``contour``.

        Returns
        -------
        display : DensityDisplay
        """
        self.figure_, self.ax_ = axes_of("DensityDisplay.plot", ax)
        ranks, sizes = rank_clusters(np.asarray(self.labels))
        shown = np.minimum(ranks, max_clusters)
        for k in np.unique(shown):
            mark = MARKERS[k % len(MARKERS)]
            label = "smaller ones" if k == max_clusters else f"{self.name} of {sizes[k]:,}"
            rows = np.asarray(self.points)[shown == k]
            style = {"s": 14, "marker": mark, "facecolor": "none", "linewidth": 0.7, "alpha": 0.7}
            self.ax_.scatter(*rows.T, edgecolor=f"C{k % 10}", label=label, **style)
        shares = sorted(shares, reverse=True)
        levels = _levels(np.asarray(self.log_density), shares)
        styles = [LINESTYLES[i % len(LINESTYLES)] for i in reversed(range(len(shares)))]
        kwargs = {"colors": "black", "linewidths": 1.0, "linestyles": styles, **kwargs}
        self.contours_ = self.ax_.contour(self.x, self.y, self.log_density, levels, **kwargs)
        for share, style in zip(reversed(shares), reversed(styles)):
            line = {"color": "black", "linewidth": 1.0, "linestyle": style}
            self.ax_.plot([], [], label=f"{share:.0%} of the mass", **line)
        self.ax_.set(**dict(zip(("xlabel", "ylabel"), literal(self.names))))
        self.ax_.set_title(self.title or "", fontsize="medium")
        plain(self.ax_)
        self.ax_.legend(frameon=False, fontsize="small")
        return self


def _two_positions(columns, n_columns):
    """Return the positions of two columns as a list, if they are that."""
    given = list(columns) if np.ndim(columns) == 1 else []
    if any(not isinstance(j, Integral) or not 0 <= j < n_columns for j in given):
        given = []
    if len(set(given)) != 2 or len(given) != 2:
        raise ValueError(
            f"columns must be the positions of two columns, from 0 to {n_columns - 1}, "
            f"got {columns!r}."
        )
    return [int(j) for j in given]


def _read(estimator, j, column):
    """The numbers of a column, NaN where missing, and the sort of its family's cells.

    Where the estimator names no families, as with a likelihood of one's own, it is "number".
    """
    families = getattr(estimator, "families_", {})
    family = next((name for name, members in families.items() if j in members), None)
    cells = "number" if family is None else getattr(FAMILIES.get(family), "cells", None)
    found = None
    if column.temporal is not None:
        found = "holds dates or durations"
    elif cells not in BOUNDS:
        found = f"is of the family {family!r}"
    elif column.levels is not None and family is None:
        found = "holds levels"
    if found is not None:
        raise ValueError(
            f"columns must be two columns of numbers or counts: {column.label} {found}."
        )
    return as_numbers(column, family), cells


def _axis(values, cells, n_points):
    """Ascending numbers over the range of a column's and a margin, as its family describes them."""
    bound, low, high = BOUNDS[cells], np.nanmin(values), np.nanmax(values)
    width = MARGIN * (high - low) or MARGIN
    if cells == "count":
        width = max(width, 1.0)
        return np.unique(np.linspace(max(low - width, bound), high + width, n_points).round())
    start = low - width
    if start <= bound:
        start = values[values > bound].min(initial=high) / 2.0
    axis = np.linspace(start, high + width, n_points)
    # an atom has a probability, which cannot be compared with the densities beside it
    return axis[~np.isin(axis, values)] if cells.endswith("_or_atom") else axis


def _rows(X, n_columns, columns, grid):
    """The points of the grid as rows like those of X, all other cells missing."""
    if not hasattr(X, "columns"):
        rows = np.full((len(grid), n_columns), np.nan)
        rows[:, columns] = grid
        return rows
    cells = dict.fromkeys(X.columns, [None] * len(grid))
    for j, values in zip(columns, grid.T):
        cells[list(X.columns)[j]] = values
    return type(X)(cells)


def _levels(log_density, shares):
    """Ascending log densities above which these shares of the mass lie, the largest share first."""
    ordered = np.sort(log_density, axis=None)[::-1]
    mass = np.cumsum(np.exp(ordered - ordered[0]))
    places = np.searchsorted(mass, np.array(shares) * mass[-1]).clip(max=len(mass) - 1)
    levels = ordered[places]
    return levels + 1e-9 * np.arange(len(levels))  # contours must ascend
