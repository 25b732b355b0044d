"""Features of clusters as pictures."""

# SPDX-License-Identifier: BSD-3-Clause

import math
from typing import Any, Self

import numpy as np

from ..summary import rank_clusters
from ._axes import axes_of
from ._fitted import check_drawable

_ASPECT = 1.8  # width of the whole sheet over its height
_LEAST_ACROSS = 6  # pictures side by side, if there are so many
_TEXT = 0.26  # height of the line above a picture, as a share of the picture's height
_GAP = 0.12  # space between two pictures, as a share of a picture's width


class FeatureDisplay:
    """Features of clusters as pictures, the largest cluster first.

    Parameters
    ----------
    pictures : ndarray of shape (n_shown, height, width)
        The pictures. The grey levels of each go from its least to its greatest value.
    sizes : ndarray of int of shape (n_shown,)
        Number of rows in each cluster, written above its picture.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    image_ : matplotlib AxesImage
        The image of all pictures.

    Examples
    --------
    >>> import numpy as np
    >>> from skanneal.displays import FeatureDisplay
    >>> pictures = np.array([[[0.1, 0.4], [0.4, 0.1]], [[0.5, 0.0], [0.5, 0.0]]])
    >>> display = FeatureDisplay(pictures, np.array([60, 40])).plot()
    >>> [text.get_text() for text in display.ax_.texts]
    ['60', '40']
    """

    def __init__(self, pictures: Any, sizes: Any) -> None:
        self.pictures = pictures
        self.sizes = sizes

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        image_shape: Any,
        *,
        n_features: int = 40,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the features of a fitted estimator.

        Parameters
        ----------
        estimator : AcceleratedDPMixture
            Fitted on pictures, one per row.
        image_shape : tuple of int
            Height and width of a picture. The columns of X are its pixels, row by row.
        n_features : int, default=40
            If there are more clusters, the largest are shown.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **kwargs : dict
            Passed to ``imshow``.

        Returns
        -------
        display : FeatureDisplay
        """
        check_drawable(
            cls, estimator, ["features_", "component_labels_"], "an AcceleratedDPMixture"
        )
        if n_features < 1:
            raise ValueError(f"n_features must be at least 1, got {n_features}.")
        features = np.asarray(estimator.features_)
        n_pixels = math.prod(features.shape[1:])
        if len(image_shape) != 2 or math.prod(image_shape) != n_pixels:
            raise ValueError(
                f"image_shape must be a height and a width whose product is {n_pixels}, the "
                f"numbers in a feature; got {image_shape!r}."
            )
        ranks, sizes = rank_clusters(estimator.component_labels_)
        largest = np.asarray(estimator.component_labels_)[np.unique(ranks, return_index=True)[1]]
        pictures = features.reshape(-1, *image_shape)[largest[:n_features]]
        return cls(pictures, sizes[:n_features]).plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw; return the display itself.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure, whose size depends on the number of pictures.
        **kwargs : dict
            Passed to ``imshow``.

        Returns
        -------
        display : FeatureDisplay
        """
        pictures = np.asarray(self.pictures, dtype=np.float64)
        n, height, width = pictures.shape
        text, gap = max(1, round(_TEXT * height)), max(1, round(_GAP * width))
        row, column = height + text, width + gap
        n_across = min(n, max(_LEAST_ACROSS, math.ceil(math.sqrt(n * _ASPECT * row / column))))
        n_down = math.ceil(n / n_across)
        sheet = np.full((n_down * row, n_across * column - gap), np.nan)
        places = [(i // n_across * row + text, i % n_across * column) for i in range(n)]
        for (top, left), picture in zip(places, pictures):
            low, high = picture.min(), picture.max()
            sheet[top : top + height, left : left + width] = (picture - low) / ((high - low) or 1.0)
        inches = 0.75 / column  # a picture's width
        figsize = (inches * sheet.shape[1] + 0.4, inches * sheet.shape[0] + 0.4)
        self.figure_, self.ax_ = axes_of("FeatureDisplay.plot", ax, figsize=figsize)
        kwargs = {"cmap": "gray_r", "vmin": 0, "vmax": 1, "interpolation": "nearest", **kwargs}
        self.image_ = self.ax_.imshow(np.ma.masked_invalid(sheet), **kwargs)
        for (top, left), size in zip(places, self.sizes):
            place = left + (width - 1) / 2, top - 0.5 - 0.1 * text
            self.ax_.text(*place, f"{size:,}", ha="center", va="bottom", fontsize="x-small")
        self.ax_.set_axis_off()
        return self
