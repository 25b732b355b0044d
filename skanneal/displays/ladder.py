"""How easily a tempered chain moves along its ladder."""

# SPDX-License-Identifier: BSD-3-Clause

from typing import Any, Self

import numpy as np

from ._axes import MARKERS, axes_of, plain
from ._fitted import check_drawable


class LadderDisplay:
    """Acceptance of the steps between neighbouring rungs of a ladder: a low one is a bottleneck.

    Parameters
    ----------
    acceptance : ndarray of shape (n_chains, n_rungs - 1)
        Mean probability of crossing between neighbours.
    rungs : sequence of str of length n_rungs
        Names of the rungs, the target first.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    lines_ : list of matplotlib Line2D
        The chains' marks, then their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import LadderDisplay
    >>> acceptance = np.array([[0.6, 0.3], [0.5, 0.4]])
    >>> display = LadderDisplay(acceptance, ["all rows", "50 rows", "12 rows"]).plot()
    >>> len(display.lines_)
    3
    """

    def __init__(self, acceptance: Any, rungs: Any) -> None:
        self.acceptance = acceptance
        self.rungs = rungs

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a fitted tempered estimator's ladder.

        Parameters
        ----------
        estimator : TemperedGaussianMean or TemperedGPRegressor
            Fitted, by a method with a ladder.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            Passed to matplotlib for the line of the mean.

        Returns
        -------
        display : LadderDisplay

        Raises
        ------
        ValueError
            If there is one rung only, as with ``method="none"``.
        """
        check_drawable(cls, estimator, ["result_"], "a tempered estimator")
        acceptance = np.asarray(estimator.result_.swap_acceptance)
        if acceptance.shape[1] == 0:
            raise ValueError("The fit has one rung: there is no ladder to draw.")
        sizes, betas = estimator.sizes_, estimator.betas_.mean(axis=0)
        if (sizes == sizes[:, :1]).all():
            rungs = [f"power {beta:.2g}" for beta in betas]
        else:
            rungs = [f"{size:,.0f} rows" for size in sizes.mean(axis=0)]
        rungs = ["prior" if beta == 0 else rung for beta, rung in zip(betas, rungs)]
        return cls(acceptance, rungs).plot(ax, **kwargs)

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
        display : LadderDisplay
        """
        self.figure_, self.ax_ = axes_of("LadderDisplay.plot", ax)
        acceptance = np.atleast_2d(self.acceptance)
        between = np.arange(acceptance.shape[1]) + 0.5
        self.lines_ = []
        for chain, values in enumerate(acceptance):
            mark = {"marker": MARKERS[chain % len(MARKERS)], "markerfacecolor": "none"}
            label = f"Chain {chain}"
            self.lines_ += self.ax_.plot(between, values, linestyle="", label=label, **mark)
        kwargs = {"color": "black", "linewidth": 1.2, "label": "Mean", **kwargs}
        self.lines_ += self.ax_.plot(between, acceptance.mean(axis=0), **kwargs)
        self.ax_.set_xticks(np.arange(len(self.rungs)), self.rungs, rotation=45, ha="right")
        self.ax_.set(ylim=(0, 1), xlabel="Rung", ylabel="Acceptance between neighbours")
        plain(self.ax_)
        self.ax_.legend(frameon=False, fontsize="small")
        return self
