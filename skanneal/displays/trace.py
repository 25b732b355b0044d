"""A scalar of each chain against time or work."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any, Self

import numpy as np

from ..summary import r_hat as between
from ._axes import LINESTYLES, axes_of, plain
from ._fitted import check_drawable

_TITLES = {
    "seconds": "Seconds",
    "sweeps": "Sweeps",
    "log_joint": "Log joint density",
    "n_components": "Number of components",
    "n_assigned": "Rows assigned",
    "n_views": "Number of views",
}


class TraceDisplay:
    """A scalar of each chain against time or work.

    Parameters
    ----------
    x : ndarray of shape (n_chains, n_records)
        Seconds or sweeps; NaN where a chain has no record.
    y : ndarray of shape (n_chains, n_records)
        The scalar.
    full_data : ndarray of bool of shape (n_chains, n_records) or None, default=None
        The records that see all rows; the axes are fitted to them. Earlier records are drawn
        faintly, because a log joint density on a subsample cannot be compared with that on all
        rows.
    name : str, default="log_joint"
        What y is, for the axis label.
    x_name : {"seconds", "sweeps"}, default="seconds"
        What x is, for the axis label.
    r_hat : float or None, default=None
        R-hat of the scalar, for the legend: near 1 where chains agree.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    lines_ : list of matplotlib Line2D
        One per chain.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import TraceDisplay
    >>> sweeps = np.tile(np.arange(50.0), (4, 1))
    >>> log_joint = -100 / (1 + sweeps) + np.random.default_rng(0).normal(size=sweeps.shape)
    >>> display = TraceDisplay(sweeps, log_joint, x_name="sweeps").plot()
    >>> display.ax_.get_xlabel()
    'Sweeps'
    """

    def __init__(
        self,
        x: Any,
        y: Any,
        *,
        full_data: Any = None,
        name: Any = "log_joint",
        x_name: Any = "seconds",
        r_hat: Any = None,
    ) -> None:
        self.x = x
        self.y = y
        self.full_data = full_data
        self.name = name
        self.x_name = x_name
        self.r_hat = r_hat

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        name: Any = "log_joint",
        x: Any = "seconds",
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw an entry of a fitted estimator's ``trace_``.

        Parameters
        ----------
        estimator : estimator
            Fitted; if it wraps another estimator, that one is drawn.
        name : str, default="log_joint"
            Key of the entry.
        x : {"seconds", "sweeps"}, default="seconds"
            What to draw it against.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            Passed to matplotlib for the lines.

        Returns
        -------
        display : TraceDisplay
        """
        if not hasattr(estimator, "trace_"):  # one around another
            estimator = getattr(estimator, "estimator_", estimator)
        check_drawable(cls, estimator, ["trace_"], "an estimator of chains")
        trace = estimator.trace_
        if name not in trace:
            raise ValueError(f"name must be one of {sorted(trace)}, got {name!r}.")
        if x not in ("seconds", "sweeps"):
            raise ValueError(f"x must be 'seconds' or 'sweeps', got {x!r}.")
        full_data = None  # every record of a sampler that does not grow its data
        if "n_assigned" in trace:
            n_assigned = np.asarray(trace["n_assigned"])
            full_data = n_assigned == np.nan_to_num(n_assigned).max(initial=0)
        r_hat = between(trace[name]) if full_data is None else None
        r_hat = getattr(estimator, "r_hat_", {}).get(name, r_hat)
        options = {"full_data": full_data, "name": name, "x_name": x, "r_hat": r_hat}
        return cls(trace[x], trace[name], **options).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; return the display itself.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            Passed to matplotlib for the lines.

        Returns
        -------
        display : TraceDisplay
        """
        self.figure_, self.ax_ = axes_of("TraceDisplay.plot", ax)
        kwargs = {"linewidth": 1.6, **kwargs}
        x, y = np.atleast_2d(self.x), np.atleast_2d(self.y)
        self.lines_ = [
            self._plot_chain(chain, x[chain], y[chain], kwargs) for chain in range(len(y))
        ]
        self._set_apart_subsamples(x, y)
        x_title, y_title = (_TITLES.get(name, name) for name in (self.x_name, self.name))
        self.ax_.set(xlabel=x_title, ylabel=y_title)
        self.ax_.margins(x=0.02)
        plain(self.ax_)
        if len(y) > 1:
            place = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": min(len(y), 6)}
            if self.r_hat is not None and np.isfinite(self.r_hat):
                place["title"] = f"R-hat {self.r_hat:.2f}"
            self.ax_.legend(frameon=False, fontsize="small", handlelength=2.2, **place)
        return self

    def _plot_chain(self, chain, x, y, kwargs):
        full = np.isfinite(y) if self.full_data is None else np.atleast_2d(self.full_data)[chain]
        style = {"linestyle": LINESTYLES[chain % len(LINESTYLES)]}
        kwargs = {"label": f"Chain {chain}", **style, **kwargs}
        (line,) = self.ax_.plot(x, np.where(full, y, np.nan), **kwargs)
        if not full.all():
            # Up to and including the first record on all rows, so that the line has no gap.
            first = np.argmax(full) if full.any() else len(y)
            faint = {**kwargs, "color": line.get_color(), "alpha": 0.35, "label": "_early"}
            self.ax_.plot(x[: first + 1], y[: first + 1], **faint)
        return line

    def _set_apart_subsamples(self, x, y):
        """Shade what comes before all rows, which can lie far off; fit the axes to the rest."""
        present = np.isfinite(x) & np.isfinite(y)
        full = present if self.full_data is None else present & self.full_data
        if not full.any() or (full == present).all():
            return
        start, stop = x[present].min(), x[full].min()
        self.ax_.axvspan(start, stop, color="0.95", linewidth=0, zorder=0)
        if stop - start > 0.2 * (x[present].max() - start):  # else the word does not fit in
            place = {
                "x": (start + stop) / 2,
                "y": 0.03,
                "transform": self.ax_.get_xaxis_transform(),
            }
            self.ax_.text(**place, s="subsamples", ha="center", color="0.4", fontsize="small")
        low, high = y[full].min(), y[full].max()
        height = (high - low) or 1.0
        low = max(y[present].min(), low - height / 2)
        high = min(y[present].max(), high + height)
        margin = 0.05 * ((high - low) or 1.0)
        self.ax_.set_ylim(low - margin, high + margin)
