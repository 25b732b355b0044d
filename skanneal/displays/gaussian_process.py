"""What a Gaussian process says between its observations."""

# SPDX-License-Identifier: BSD-3-Clause

import inspect
from typing import Any, Self

import numpy as np

from .._native._types import TableLike
from ._axes import axes_of, literal, plain
from ._fitted import check_drawable

MARGIN = 0.1  # of the range of the rows, on either side
WIDTH = 1.96  # standard deviations of a band of 95 %


class GPDisplay:
    """Mean of new observations along a column, and the band that holds 95 % of them.

    Parameters
    ----------
    x : ndarray of shape (n_points,)
        Values of the column.
    mean, std : ndarray of shape (n_points,)
        Mean and standard deviation of a new observation.
    x_observed, y_observed : ndarray of shape (n_rows,) or None, default=None
        Observations.
    name : str, default="x"
        Name of the column.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    line_ : matplotlib Line2D
        The mean.
    band_ : matplotlib PolyCollection
        The band.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import GPDisplay
    >>> x = np.linspace(0, 6, 50)
    >>> display = GPDisplay(x, np.sin(x), np.full(50, 0.1)).plot()
    >>> display.line_.get_label()
    'Mean'
    """

    def __init__(
        self,
        x: Any,
        mean: Any,
        std: Any,
        x_observed: Any = None,
        y_observed: Any = None,
        *,
        name: Any = "x",
    ) -> None:
        self.x = x
        self.mean = mean
        self.std = std
        self.x_observed = x_observed
        self.y_observed = y_observed
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: TableLike,
        y: Any,
        *,
        column: Any = 0,
        grid_resolution: int = 200,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a fitted regressor along a column; the other columns are at their medians.

        Parameters
        ----------
        estimator : TemperedGPRegressor
            Fitted; or any regressor whose ``predict`` takes ``return_std``.
        X : array-like of shape (n_rows, n_columns)
            Observations are drawn at these.
        y : array-like of shape (n_rows,)
            The observations.
        column : int, default=0
            Position of the column.
        grid_resolution : int, default=200
            Points along the column.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            Passed to matplotlib for the line of the mean.

        Returns
        -------
        display : GPDisplay
        """
        check_drawable(cls, estimator, ["predict"], "a regressor")
        if not _takes_std(estimator.predict):
            raise ValueError(
                f"GPDisplay draws a regressor whose predict takes return_std: that of this "
                f"{type(estimator).__name__} does not."
            )
        rows, observed = np.asarray(X, np.float64), np.asarray(y, np.float64)
        own = rows[:, column]
        margin = MARGIN * (np.ptp(own) or 1.0)
        x = np.linspace(own.min() - margin, own.max() + margin, grid_resolution)
        grid = np.tile(np.median(rows, axis=0), (grid_resolution, 1))
        grid[:, column] = x
        names = getattr(estimator, "feature_names_in_", None)
        name = f"column {column}" if names is None else str(names[column])
        as_fitted = grid if names is None else type(X)(dict(zip(names, grid.T)))
        mean, std = estimator.predict(as_fitted, return_std=True)
        return cls(x, mean, std, own, observed, name=name).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; return the display itself.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            Passed to matplotlib for the line of the mean.

        Returns
        -------
        display : GPDisplay
        """
        self.figure_, self.ax_ = axes_of("GPDisplay.plot", ax)
        low, high = self.mean - WIDTH * self.std, self.mean + WIDTH * self.std
        band = {"facecolor": "C0", "alpha": 0.25, "edgecolor": "none", "label": "95 % of new ones"}
        self.band_ = self.ax_.fill_between(self.x, low, high, **band)
        for edge in (low, high):
            self.ax_.plot(self.x, edge, color="0.4", linewidth=0.7, linestyle="--")
        kwargs = {"color": "black", "linewidth": 1.6, "label": "Mean", **kwargs}
        (self.line_,) = self.ax_.plot(self.x, self.mean, **kwargs)
        if self.x_observed is not None:
            marks = {"marker": "o", "s": 14, "facecolor": "none", "edgecolor": "0.2"}
            self.ax_.scatter(self.x_observed, self.y_observed, label="Observed", **marks)
        self.ax_.set(xlabel=literal([self.name])[0], ylabel="y")
        plain(self.ax_)
        self.ax_.legend(frameon=False, fontsize="small")
        return self


def _takes_std(predict):
    """Whether a method takes `return_std`, by its name or, as a pipeline's, among any others."""
    parameters = inspect.signature(predict).parameters.values()
    return any(p.name == "return_std" or p.kind is p.VAR_KEYWORD for p in parameters)
