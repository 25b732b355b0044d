"""Axes to draw on, and what several displays draw."""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np
from sklearn.utils._optional_dependencies import check_matplotlib_support

# What tells lines and points apart without their colours.
LINESTYLES = "-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (4, 1.5, 1, 1.5))
MARKERS = "o", "s", "^", "D", "v", "P", "X", "*", "."


def plain(ax):
    """A faint grid, and no frame on the right and above."""
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)


def axes_of(caller, ax, figsize=None):
    """The axes to draw on, and their figure."""
    check_matplotlib_support(caller)
    if ax is not None:
        return ax.figure, ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=figsize, layout="constrained")


def literal(names):
    """Names as they are written: a dollar sign begins no formula."""
    return [str(name).replace("$", r"\$") for name in names]


def sentence(ax, text):
    """Write a sentence where there is nothing to draw."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center")
    ax.set_axis_off()


def square(figure, ax, values, labels, title, **kwargs):
    """Draw a square matrix of probabilities, a line wherever the labels change; the image."""
    n = len(values)
    kwargs = {"cmap": "Blues", "vmin": 0, "vmax": 1, "interpolation": "nearest", **kwargs}
    image = ax.imshow(values, extent=(0, n, n, 0), **kwargs)
    bar = figure.colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    bar.set_label(title)
    bar.outline.set_visible(False)
    edges = np.flatnonzero(np.diff(labels)) + 1
    ax.hlines(edges, 0, n, color="0.35", linewidth=0.5)
    ax.vlines(edges, 0, n, color="0.35", linewidth=0.5)
    return image
