"""Warn of hyperparameters that stay at the end of a grid that restricts them.

Most ends restrict nothing. A family names in `restricting_ends` those of its grids whose end the
data may want to pass, and says what a user can do then.
"""

# SPDX-License-Identifier: BSD-3-Clause

import numpy as np

from ..families import FAMILIES

ENOUGH_DRAWS = 20  # of all chains together; of fewer draws nothing is said
N_NAMED = 3  # columns that a complaint names


def complaints_of_grid_ends(fitted):
    """Return a complaint for each hyperparameter of which more than half of the draws lie there.

    Parameters
    ----------
    fitted : dict
        Attributes of a fit; where atoms are instantiated, there are no complaints.

    Returns
    -------
    complaints : list of str
        One per hyperparameter, with all its columns.
    """
    draws = [draw for chain in fitted["draws_"] for draw in chain]
    if len(draws) < ENOUGH_DRAWS or not hasattr(draws[0], "hyperparameters"):
        return []
    draws = [draw.hyperparameters for draw in draws]
    encoder, complaints = fitted["_encoder"], []
    for family, columns in encoder.shown_families.items():
        labels = [encoder.names.label(encoder.apart.kept[column]) for column in columns]
        for coordinate, advice in FAMILIES[family].restricting_ends.items():
            values = np.array([draw[family][coordinate] for draw in draws])
            if values.ndim == 3:  # matrices, whose diagonals have grids
                values = np.diagonal(values, axis1=1, axis2=2)
            grids = fitted["hyperparameter_grids_"][family].get(coordinate, ())
            there = [
                name
                for name, grid, of_column in zip(labels, grids, values.T)
                if grid is not None and np.mean(np.isclose(of_column, grid[-1], atol=0.0)) > 0.5
            ]
            if there:
                complaints.append(
                    f"{coordinate} of the family {family!r} stays at the last point of its grid in "
                    f"{_listed(there)}: {advice}."
                )
    return complaints


def _listed(names):
    """Name the first columns and count the others."""
    more = len(names) - N_NAMED
    return ", ".join(names[:N_NAMED]) + (f" and {more} more" if more > 0 else "")
