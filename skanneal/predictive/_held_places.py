"""Which training values the rows of a component have: its draws are rounded to these.

Where numbers recur, a draw becomes one of the training values that recur (`MarginMap.drawn`). Which
these are may differ between components. So it is the one of a row of the draw's component whose
rank is nearest. That is how draws are rounded, and no part of the law: a draw moves by no more than
two standard errors of the mean rank of the component's rows, which is as well as their place is
known. One that would have to move farther, as all draws of a component of one row would, becomes
the value of its own rank.
"""

# SPDX-License-Identifier: BSD-3-Clause

from typing import NamedTuple

import numpy as np

from ..encoding._rounding import nearest_of


def held_places(view, places, labels):
    """Which training values the rows of each component have.

    Parameters
    ----------
    view : View
    places : dict of int to float64 array of shape (n,)
        By column, the place of each row's number among the training values; NaN if it has none.
    labels : int array of shape (n,)

    Returns
    -------
    held : dict of int to HeldPlaces
    """
    held = {}
    for place in sorted(places.keys() & view.features.keys()):
        known = np.flatnonzero(~np.isnan(places[place]))
        own, at = labels[known], places[place][known].astype(np.int32)
        order = np.lexsort((at, own))
        starts = np.searchsorted(own[order], np.arange(len(view.slots)))
        held[place] = HeldPlaces(starts, at[order])
    return held


class HeldPlaces(NamedTuple):
    """Places among the training values, ascending in each component.

    Attributes
    ----------
    starts : int array of shape (K + 1,)
        Where those of each component begin.
    places : int32 array
    """

    starts: np.ndarray
    places: np.ndarray

    def nearest(self, components, places):
        """For each place the nearest one that the component has; itself if none is near."""
        out = np.array(places)
        for k in np.unique(components[components < len(self.starts) - 1]):
            own, here = self.places[self.starts[k] : self.starts[k + 1]], components == k
            if len(own):
                near, reach = nearest_of(own, places[here]), 2.0 * own.std() / np.sqrt(len(own))
                out[here] = np.where(np.abs(near - places[here]) <= reach, near, places[here])
        return out
